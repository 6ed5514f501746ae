"""A few rows of each format, written here to its published schema; values are invented."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from kvsim.workload.readers.options import ReadOptions
from kvsim.workload.recording import Recording


@dataclass(frozen=True)
class Form:
    """A small trace: its format, its text, and what a reader must be told."""

    format: str
    text: str
    suffix: str = ".jsonl"
    options: ReadOptions = field(default_factory=ReadOptions)

    def write(self, folder: Path, text: str | None = None) -> Path:
        path = folder / f"trace{self.suffix}"
        path.write_text(self.text if text is None else text)
        return path

    def read(self, folder: Path, **options):
        return Recording(self.write(folder), options=self.options, **options)


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


TEXT = ReadOptions(chars_per_token=4, output_tokens=7)

FORMS = {
    form.format: form
    for form in (
        Form(
            "azure",
            "TIMESTAMP,ContextTokens,GeneratedTokens\n"
            "2023-11-16 18:15:46.6805900,374,44\n"
            "2023-11-16 18:15:50.9951690,396,109\n",
            ".csv",
        ),
        Form(
            "burstgpt",
            "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
            "100.0,s1,5,GPT-4,50,20,70,Conversation log\n"
            "112.0,,2,ChatGPT,0,0,0,API log\n"
            "130.0,s1,4,GPT-4,90,30,120,Conversation log\n",
            ".csv",
        ),
        Form("vidur", "arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,374,44\n4.314579,396,109\n", ".csv"),
        Form("lengths", "num_prefill_tokens,num_decode_tokens,pd_ratio\n74,918,0.08\n290,905,0.32\n", ".csv"),
        Form(
            "splitwise",
            "request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size\n"
            "0,2,7,0.0,1,374,44\n1,2,8,4.314479,1,396,109\n",
            ".csv",
        ),
        Form(
            "blis",
            "request_id,tenant_id,slo_class,session_id,prefix_group,prefix_length,input_tokens,output_tokens,"
            "deadline_us,arrival_time_us,status\n"
            "0,t1,standard,s1,sys,40,512,64,0,0,ok\n"
            "1,t1,standard,s1,sys,40,600,80,0,2500000,ok\n"
            "2,t2,batch,,,0,2048,256,9000000,3000000,timeout\n",
            ".csv",
        ),
        Form(
            "mooncake",
            lines(
                {"timestamp": 0, "session_id": "a", "input_length": 1000, "output_length": 5, "hash_ids": [7, 9]},
                {"delay": 40, "session_id": "a", "input_length": 1500, "output_length": 6, "hash_ids": [7, 9, 8]},
                {"timestamp": 30, "input_length": 600, "output_length": 4, "hash_ids": [7, 5], "priority": 2},
            ),
        ),
        Form(
            "bailian",
            lines(
                {
                    "chat_id": 1,
                    "parent_chat_id": -1,
                    "timestamp": 61.5,
                    "input_length": 40,
                    "output_length": 9,
                    "type": "text",
                    "turn": 1,
                    "hash_ids": [1, 2, 3],
                },
                {
                    "chat_id": 2,
                    "parent_chat_id": 1,
                    "timestamp": 75.25,
                    "input_length": 64,
                    "output_length": 8,
                    "type": "text",
                    "turn": 2,
                    "hash_ids": [1, 2, 4, 5],
                },
            ),
        ),
        Form(
            "servegen-offline",
            lines(
                {"request_id": 0, "type": "text", "input_length": 31, "hash_ids": [0, 1], "img_ids": []},
                {"request_id": 1, "type": "text", "input_length": 33, "hash_ids": [0, 2, 3], "img_ids": []},
            ),
            options=ReadOptions(output_tokens=7),
        ),
        Form(
            "llmservingsim",
            lines(
                {
                    "input_toks": 18,
                    "output_toks": 3,
                    "arrival_time_ns": 500,
                    "input_tok_ids": list(range(18)),
                    "output_tok_ids": [1, 2, 3],
                },
                {
                    "session_id": "x",
                    "arrival_time_ns": 2_000_000_000,
                    "sub_requests": [
                        {"input_toks": 100, "output_toks": 10, "tool_duration_ns": 7},
                        {"input_toks": 120, "output_toks": 11, "tool_duration_ns": 0},
                    ],
                },
            ),
        ),
        Form(
            "dynamo",
            lines(
                {"event_type": "request_payload", "request_id": "p"},
                {
                    "schema": "dynamo.request.trace.v1",
                    "event_type": "request_end",
                    "agent_context": {"session_id": "parent"},
                    "request": {
                        "request_id": "p",
                        "output_tokens": 2,
                        "request_received_ms": 100,
                        "total_time_ms": 10,
                        "replay": {"trace_block_size": 4, "input_length": 8, "input_sequence_hashes": [501, 502]},
                    },
                },
                {
                    "schema": "dynamo.request.trace.v1",
                    "event_type": "request_end",
                    "agent_context": {"session_id": "child", "parent_session_id": "parent"},
                    "request": {
                        "request_id": "c",
                        "output_tokens": 3,
                        "request_received_ms": 120,
                        "total_time_ms": 5,
                        "replay": {"trace_block_size": 4, "input_length": 6, "input_sequence_hashes": [501]},
                    },
                },
            ),
        ),
        Form(
            "dynamo-agentic",
            lines(
                {"schema": "dynamo.agentic_mooncake", "version": 2, "block_size": 4, "hash_id_scope": "local"},
                {
                    "request_id": "r",
                    "play_id": "p",
                    "session_id": "root",
                    "input_length": 4,
                    "output_length": 2,
                    "hash_ids": [1],
                    "not_before_ms": 3,
                    "dependencies": [],
                },
                {
                    "request_id": "c",
                    "play_id": "p",
                    "session_id": "kid",
                    "input_length": 5,
                    "output_length": 2,
                    "hash_ids": [1, 2],
                    "not_before_ms": 0,
                    "dependencies": [{"request_id": "r", "trigger": "dispatch", "delay_ms": 5, "relation": "spawn"}],
                },
            ),
        ),
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
        Form(
            "table",
            "arrival_s,prompt_tokens,output_tokens,session,hash_ids,priority,tenant,colour\n"
            "0.5,33,4,s,1 2 3,-1,t,red\n"
            "2,48,5,s,1 2 4,0,t,blue\n",
            ".csv",
            ReadOptions(block_tokens=16),
        ),
    )
}
