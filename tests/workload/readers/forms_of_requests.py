"""A few rows of each format that tells requests one by one, written here to its schema; values are invented."""

from kvsim.workload.readers.options import ReadOptions
from tests.workload.readers.form import Form, lines

FORMS = (
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
    Form(
        "recorded-run",
        "request,in_len,out_len,arrival_s,queued_s,scheduled_s,first_token_s,last_token_s\n"
        "0,374,44,0.0,0.0,0.01,0.2,1.2\n1,396,109,4.314579,4.4,4.4,4.6,7.5\n",
        ".csv",
    ),
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
        "table",
        "arrival_s,prompt_tokens,output_tokens,session,hash_ids,priority,tenant,colour\n"
        "0.5,33,4,s,1 2 3,-1,t,red\n"
        "2,48,5,s,1 2 4,0,t,blue\n",
        ".csv",
        ReadOptions(block_tokens=16),
    ),
)
