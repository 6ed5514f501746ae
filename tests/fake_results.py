"""A Result as a run would leave it, made up: for tests of everything that only reads Results."""

from array import array

from kvsim.content import LAYERS
from kvsim.metrics.result import Result
from kvsim.step import CLASSES

POOL_TOKENS = 41_408
BLOCK_TOKENS = 16


def spread(mean):
    """A latency in seconds as the JSON contract describes it."""
    return {
        "mean": mean,
        "p50": mean * 0.8,
        "p90": mean * 1.9,
        "p95": mean * 2.4,
        "p99": mean * 3.5,
        "max": mean * 5,
    }


def memory_table(rows, waste, fill):
    """Levels that rise to `fill` of the pool and fall again, `waste` of the allocated without valid KV."""
    table = {name: array("q") for name in CLASSES}
    table |= {"time_s": array("d"), "running": array("q"), "waiting": array("q"), "largest_hole": array("q")}
    for row in range(rows):
        swing = min(1.0, row / 40) * (0.85 + 0.15 * ((row * 7919) % 101) / 100) * (row < rows - 1)
        allocated = int(POOL_TOKENS * fill * swing)
        level = dict.fromkeys(CLASSES, 0)
        level["internal"] = int(allocated * waste * 0.7)
        level["reserved"] = int(allocated * waste) - level["internal"]
        level["used"] = allocated - level["internal"] - level["reserved"]
        level["external"] = int((POOL_TOKENS - allocated) * waste * 0.5)
        level["free"] = POOL_TOKENS - sum(level.values())
        for name, slots in level.items():
            table[name].append(slots)
        table["time_s"].append(row * 0.25)
        table["running"].append(allocated // 1200)
        table["waiting"].append(max(0, int(30 * swing) - 20))
        table["largest_hole"].append(level["free"] // 2)
    shares = {"fragmentation": [0.5] * rows, "unusable": [0.25 if number else None for number in table["waiting"]]}
    return table | {name: array("q", [0] * rows) for name in ("host", "shared", "duplicate")} | shares


def steps_table(rows):
    return {
        "start_s": array("d", [row * 0.25 for row in range(rows - 1)]),
        "duration_s": array("d", [0.25] * (rows - 1)),
        "steps": array("q", [10 if row % 3 else 1 for row in range(rows - 1)]),
        "prefill_tokens": array("q", [0 if row % 3 else 900 for row in range(rows - 1)]),
        "decode_tokens": array("q", [300 if row % 3 else 30 for row in range(rows - 1)]),
        "padding_tokens": array("q", [0] * (rows - 1)),
        "context_tokens": array("q", [30_000] * (rows - 1)),
        "running": array("q", [30] * (rows - 1)),
        "waiting": array("q", [2] * (rows - 1)),
        "request_s": array("d", [0.4] * (rows - 1)),
    }


def requests_table(count):
    rejected = [index % 50 == 49 for index in range(count)]
    return {
        "id": array("q", range(count)),
        "arrival_s": array("d", [index * 0.1 for index in range(count)]),
        "prompt_tokens": array("q", [400 + index for index in range(count)]),
        "output_tokens": array("q", [100] * count),
        "max_tokens": [None if index % 2 else 256 for index in range(count)],
        "priority": array("q", [0] * count),
        "tenant": [None] * count,
        "slo_class": [None] * count,
        "session": [None] * count,
        "turn": [None] * count,
        "first_scheduled_s": [None if no else index * 0.1 + 0.5 for index, no in enumerate(rejected)],
        "first_token_s": [None if no else index * 0.1 + 0.7 for index, no in enumerate(rejected)],
        "end_s": [index * 0.1 if no else index * 0.1 + 4.0 for index, no in enumerate(rejected)],
        "end": ["rejected" if no else "finished" for no in rejected],
        "finish_reason": [None if no else "eos" for no in rejected],
        "generated_tokens": [0 if no else 100 for no in rejected],
        "preemptions": array("q", [index % 10 == 3 for index in range(count)]),
        "lost_tokens": array("q", [500 * (index % 10 == 3) for index in range(count)]),
        "recomputed_tokens": array("q", [500 * (index % 10 == 3) for index in range(count)]),
        "swapped_tokens": array("q", [0] * count),
        "hit_tokens": array("q", [0] * count),
        "rehit_tokens": array("q", [0] * count),
        **{f"hit_{layer}_tokens": array("q", [0] * count) for layer in LAYERS},
        "regret_tokens": array("q", [0] * count),
        "samples": array("q", [1] * count),
        "queue_s": [None if no else 0.5 for no in rejected],
        "prefill_s": [None if no else 0.2 for no in rejected],
        "ttft_s": [None if no else 0.7 for no in rejected],
        "tpot_s": [None if no else 3.3 / 99 for no in rejected],
        "e2e_s": [None if no else 4.0 for no in rejected],
        "replica": [0] * len(rejected),
    }


def events_table():
    kinds = [("capacity", "preempt"), ("fragmentation", "wait"), ("never", "reject"), ("outgrown", "abort")]
    count = 40
    return {
        "time_s": array("d", [10 + row * 1.5 for row in range(count)]),
        "request": array("q", range(count)),
        "cause": [kinds[row % 4 if row % 5 == 0 else 0][0] for row in range(count)],
        "outcome": [kinds[row % 4 if row % 5 == 0 else 0][1] for row in range(count)],
        "need_tokens": array("q", [16] * count),
        "free_tokens": array("q", [8] * count),
        "largest_hole_tokens": array("q", [8] * count),
    }


def preemptions_table():
    return {
        "time_s": array("d", [10 + row * 1.5 for row in range(10)]),
        "resumed_s": [None if row == 9 else 11 + row * 1.5 for row in range(10)],
        "request": array("q", range(3, 103, 10)),
        "lost_tokens": array("q", [500] * 10),
        "swapped_tokens": array("q", [0] * 10),
    }


def fake_metrics(waste=0.04, fill=0.9, count=100):
    allocated = fill * 0.8
    mean = dict.fromkeys(CLASSES, 0.0)
    mean["internal"] = allocated * waste * 0.7
    mean["reserved"] = allocated * waste * 0.3
    mean["external"] = 0.1 * waste
    mean["used"] = allocated * (1 - waste)
    mean["free"] = 1.0 - sum(mean.values())
    return {
        "pool_tokens": POOL_TOKENS,
        "pool_blocks": POOL_TOKENS // BLOCK_TOKENS,
        "mean_share": mean,
        "peak_share": {name: min(1.0, share * 1.3) for name, share in mean.items()},
        "mean_running": 24.25,
        "max_running": 38,
        "mean_waiting": 3.5,
        "arrived": count,
        "finished": count - count // 50 - 1,
        "rejected": count // 50,
        "cancelled": 0,
        "aborted": 1,
        "unfinished": 0,
        "preemptions": 10,
        "lost_tokens": 5000,
        "recomputed_tokens": 4800,
        "copied_bytes": 0,
        "duplicate_share": None,
        "blocked": {"capacity": 34, "fragmentation": 2, "never": 2, "outgrown": 1, "activation": 0},
        "hit_rate": None,
        "queue_s": spread(0.5),
        "prefill_s": spread(0.2),
        "ttft_s": spread(0.7),
        "tpot_s": spread(0.033),
        "itl_s": spread(0.034),
        "e2e_s": spread(4.0),
        "output_tokens_per_s": 812.5,
        "requests_per_s": 7.75,
        "goodput_per_s": 6.5,
        "slo_classes": None,
        "simulated_s": 99.75,
        "steps": 2793,
        "window_s": [0.0, 90.0],
    }


def fake_result(name="paged", waste=0.04, fill=0.9, rows=400, count=100, wall_s=0.42):
    return Result(
        name=name,
        seed=7,
        version="0.1.0",
        scenario_given=f"# Question: does it fit?\nname: {name}\nmodel: llama-3.1-8b\n",
        scenario_resolved={
            "model": {"value": "llama-3.1-8b", "source": "scenario.yaml:3"},
            "allocator.block_size": {"value": BLOCK_TOKENS, "source": "default"},
            "engine.max_model_len": {"value": 8192, "source": "scenario.yaml:4"},
            "window.until": {"value": "auto", "source": "default"},
        },
        provenance={"timing": "datasheet", "pool": "given: 2,588 blocks", "workload": "azure-conv-2023"},
        expected_error={
            "tpot_median": 0.08,
            "tpot_p90": 0.143,
            "ttft_median": 0.724,
            "ttft_p90": 0.862,
            "runs": 198,
            "basis": "dense models under vllm on other GPUs, nothing fitted, 198 served runs",
        },
        not_modelled=["small blocks come free"],
        metrics=fake_metrics(waste, fill, count),
        pools=[{"replica": 0, "rank": 0, "tier": "gpu", "group": 0, "tokens": POOL_TOKENS}],
        tables={
            "requests": requests_table(count),
            "steps": steps_table(rows),
            "memory": memory_table(rows, waste, fill),
            "events": events_table(),
            "preemptions": preemptions_table(),
        },
        wall_s=wall_s,
    )
