"""A few rows of each format that tells sessions, or texts, written here to its schema; values are invented."""

import json

from tests.workload.readers.form import TEXT, Form, lines

FORMS = (
    Form(
        "weka",
        json.dumps(
            {
                "id": "w",
                "block_size": 64,
                "hash_id_scope": "local",
                "tool_tokens": 100,
                "system_tokens": 28,
                "requests": [
                    {"t": 0.0, "type": "n", "in": 130, "out": 5, "hash_ids": [1, 2, 3], "api_time": 2.0},
                    {
                        "t": 12.0,
                        "type": "n",
                        "in": 200,
                        "out": 6,
                        "hash_ids": [1, 2, 3],
                        "think_time": 10.5,
                        "api_time": 1.0,
                    },
                    {
                        "t": 20.0,
                        "type": "subagent",
                        "agent_id": "g",
                        "requests": [{"t": 1.0, "type": "n", "in": 64, "out": 3, "hash_ids": [9], "api_time": 1.0}],
                    },
                    {"t": 40.0, "type": "s", "in": 260, "out": 0, "hash_ids": [1, 2, 3, 4], "api_time": 1.0},
                    {"t": 50.0, "type": "s", "in": 260, "out": 8, "hash_ids": [1, 2, 3, 4, 5], "api_time": 1.0},
                ],
            }
        ),
        ".json",
    ),
    Form(
        "copilot",
        lines(
            {
                "session_id": "s",
                "turns": [
                    {
                        "llm_calls": [
                            {
                                "message_id": "m1",
                                "timestamp": "2026-06-01T10:00:00.000Z",
                                "duration_ms": 5200.0,
                                "result": "Success",
                                "model": "A",
                                "tokens": {"prompt": 20000, "completion": 310, "cached": 12000},
                            },
                            {
                                "message_id": "m2",
                                "timestamp": "2026-06-01T10:00:09.000Z",
                                "duration_ms": 3100.0,
                                "result": "UserCancel",
                                "model": "A",
                                "tokens": {"prompt": 22000, "completion": 50, "cached": 20000},
                            },
                        ]
                    }
                ],
            }
        ),
    ),
    Form(
        "tracelab",
        lines(
            {
                "session_id": "c:1",
                "round_id": "m1",
                "input_tokens_total": 100,
                "newly_append_tokens": 40,
                "output_tokens": 9,
                "model": "A",
                "timing_events": [
                    {"event_type": "user_message", "timestamp": "2026-06-01T05:40:20.000Z"},
                    {"event_type": "text", "timestamp": "2026-06-01T05:40:25.000Z"},
                ],
            },
            {
                "session_id": "c:1",
                "round_id": "m2",
                "input_tokens_total": 130,
                "newly_append_tokens": 30,
                "output_tokens": 4,
                "model": "A",
                "timing_events": [
                    {"event_type": "tool_result", "timestamp": "2026-06-01T05:40:27.500Z"},
                    {"event_type": "text", "timestamp": "2026-06-01T05:40:29.000Z"},
                ],
            },
        ),
    ),
    Form(
        "applied-compute",
        lines(
            {
                "num_turns": 2,
                "input_prompt_length": 16,
                "assistant_response_length": [4, 5],
                "tool_call_output_length": [8, 9],
                "tool_call_latency": [0.5, 2],
                "final_assistant_response_length": 3,
            }
        ),
    ),
    Form(
        "serving-benchmark",
        json.dumps({"input_lens": [10, 20, 30], "output_lens": [1, 0, 3], "start_times": [5.0, 6.0, 7.5]}),
        ".json",
    ),
    Form(
        "aiperf-records",
        lines(
            *(
                {
                    "metadata": {
                        "session_num": 0,
                        "x_request_id": id,
                        "x_correlation_id": session,
                        "parent_correlation_id": parent,
                        "root_correlation_id": "root",
                        "benchmark_phase": phase,
                        "request_start_ns": start_ms * 10**6,
                        "request_end_ns": end_ms * 10**6,
                        **more,
                    },
                    "metrics": {
                        "input_sequence_length": {"value": prompt, "unit": "tokens"},
                        "output_sequence_length": {"value": output, "unit": "tokens"},
                    },
                    "error": error,
                }
                for id, session, parent, phase, start_ms, end_ms, prompt, output, error, more in (
                    ("w", "warm", None, "warmup", 0, 100, 50, 5, None, {}),
                    ("a", "root", None, "profiling", 1000, 3000, 100, 20, None, {}),
                    ("k", "kid", "root", "profiling", 3200, 4000, 60, 8, None, {}),
                    ("x", "root", None, "profiling", 3100, 3300, 130, 9, {"code": 500}, {}),
                    ("b", "root", None, "profiling", 4500, 9000, 140, 30, None, {"cancellation_time_ns": 9 * 10**9}),
                )
            )
        ),
    ),
    Form(
        "guidellm",
        json.dumps(
            {
                "metadata": {"version": 1},
                "config": {},
                "benchmarks": [
                    {
                        "requests": {
                            "successful": [
                                {
                                    "request_id": "q2",
                                    "prompt_tokens": 70,
                                    "output_tokens": 9,
                                    "request_start_time": 12.5,
                                    "request_end_time": 13.0,
                                    "info": {"conversation_id": "c", "turn_index": 1},
                                },
                                {
                                    "request_id": "q1",
                                    "prompt_tokens": 40,
                                    "output_tokens": 8,
                                    "request_start_time": 10.0,
                                    "request_end_time": 11.5,
                                    "info": {"conversation_id": "c", "turn_index": 0},
                                },
                            ],
                            "incomplete": [
                                {
                                    "request_id": "q3",
                                    "prompt_tokens": 5,
                                    "output_tokens": 2,
                                    "request_start_time": 13.0,
                                    "request_end_time": 14.0,
                                    "info": {},
                                }
                            ],
                            "errored": [],
                            "total": None,
                        }
                    },
                    {
                        "requests": {
                            "successful": [
                                {
                                    "request_id": "q4",
                                    "prompt_tokens": 30,
                                    "output_tokens": 7,
                                    "start_time": 20.0,
                                    "end_time": 21.0,
                                }
                            ],
                        }
                    },
                ],
            }
        ),
        ".json",
    ),
    Form(
        "otel",
        json.dumps(
            {
                "trace_id": "t",
                "spans": [
                    {
                        "span_id": "a",
                        "parent_span_id": None,
                        "start_time": "2026-02-25T10:00:00.0",
                        "end_time": "2026-02-25T10:00:02.0",
                        "attributes": {
                            "gen_ai.input.messages": json.dumps([{"role": "user", "content": "x" * 40}]),
                            "gen_ai.output.text": "y" * 8,
                        },
                    },
                    {"span_id": "tool", "start_time": "", "end_time": "", "attributes": {}},
                    {
                        "span_id": "b",
                        "parent_span_id": "tool",
                        "start_time": "2026-02-25T10:00:03.5",
                        "end_time": "2026-02-25T10:00:04.0",
                        "attributes": {
                            "gen_ai.input.messages": json.dumps([{"role": "user", "content": "x" * 80}]),
                            "gen_ai.output.text": "z",
                        },
                    },
                ],
            },
            indent=1,
        ),
        ".json",
        TEXT,
    ),
    Form(
        "sharegpt",
        json.dumps(
            [
                {
                    "id": "a",
                    "conversations": [
                        {"from": "human", "value": "x" * 80},
                        {"from": "gpt", "value": "y" * 16},
                        {"from": "human", "value": "z" * 8},
                        {"from": "gpt", "value": "w" * 4},
                    ],
                },
                {
                    "id": "b",
                    "conversations": [{"from": "human", "value": "x" * 64}, {"from": "gpt", "value": "v" * 12}],
                },
            ],
            indent=1,
        ),
        ".json",
        TEXT,
    ),
    Form(
        "aiperf-turns",
        lines(
            {
                "session_id": "root",
                "turns": [
                    {"text": "x" * 40, "output_length": 10, "spawns": ["kid"]},
                    {"text": "y" * 8, "output_length": 5, "delay": 500},
                ],
            },
            {"session_id": "kid", "turns": [{"text": "z" * 12, "output_length": 4}]},
        ),
        options=TEXT,
    ),
    Form(
        "aiperf-single-turn",
        lines(
            {"text": "x" * 40, "timestamp": 0, "output_length": 64, "session_id": "u"},
            {"text": "y" * 41, "timestamp": 1500, "output_length": 64, "session_id": "u"},
        ),
        options=TEXT,
    ),
    Form("vllm-custom", lines({"prompt": "x" * 40}, {"prompt": "x" * 44, "output_tokens": 9}), options=TEXT),
    Form(
        "openai-batch",
        lines(
            {
                "custom_id": "r1",
                "body": {
                    "model": "m",
                    "messages": [{"role": "system", "content": "x" * 19}, {"role": "user", "content": "y" * 20}],
                    "max_tokens": 32,
                },
            }
        ),
        options=TEXT,
    ),
)
