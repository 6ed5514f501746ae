"""A real vLLM's scheduler and memory manager, step by step: every field of every step.

Source: vLLM 0.33.0's own scheduler and KV cache manager, run without model or GPU on seeded workloads; a few cases are
committed (`data/vllm`), all `vllm_*` are read from KVSIM_DATA where it is set. Tolerance: none. Each case is replayed
by every engine of kvsim that can follow its settings.
"""

import json
import os
from pathlib import Path

import pytest

from kvsim.cli.main import main
from kvsim.engine.replay import compare_records
from kvsim.engine.replay.vllm import engines_for, replay_vllm
from kvsim.engine.replay.vllm.settings import settings_of

pytestmark = pytest.mark.oracle

COMMITTED = Path(__file__).parent / "data" / "vllm"
SHARED = Path(os.environ["KVSIM_DATA"]) / "engine_cases" / "vllm" if "KVSIM_DATA" in os.environ else None
NAMES = [
    "async_d1",
    "basic_d1",
    "block1_d1",
    "chunked",
    "chunked_d1",
    "hybrid_d1",
    "no_reserve_d1",
    "nocache",
    "nocache_d1",
    "nochunk_d1",
    "preempt",
    "preempt_d1",
    "priority_d1",
    "sliding_d1",
    "spec_d1",
    "tiny",
]


def cases(folder):
    return sorted(folder.glob("vllm_*.json"))


def case_of(path):
    return json.loads(path.read_text(encoding="utf-8"))


def recorded(case):
    lines = case.with_suffix(".out.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def equals_the_recording(path):
    case, records = case_of(path), recorded(path)
    engines = len(engines_for(settings_of(case["config"])))
    for engine in range(engines):
        ours = replay_vllm(case["config"], case["requests"], engine=engine)
        count, difference = compare_records(ours, iter(records))
        assert difference is None
        assert count == len(records) > 1
    assert "summary" in records[-1]
    return engines


@pytest.mark.parametrize("case", cases(COMMITTED), ids=lambda case: case.stem)
def test_the_committed_recording_is_reproduced_in_every_field(case):
    equals_the_recording(case)


@pytest.mark.skipif(SHARED is None, reason="KVSIM_DATA names no folder of recorded runs")
@pytest.mark.parametrize("name", NAMES)
def test_the_recordings_at_hand_are_reproduced_in_every_field(name):
    case = SHARED / f"vllm_{name}.json"
    assert case in cases(SHARED)
    engines = equals_the_recording(case)
    alone = ("async", "hybrid", "priority", "sliding", "spec")
    assert engines == (1 if name.startswith(alone) else 2)


@pytest.mark.skipif(SHARED is None, reason="KVSIM_DATA names no folder of recorded runs")
def test_no_recording_is_left_out():
    assert [case.stem for case in cases(SHARED)] == [f"vllm_{name}" for name in NAMES]


def test_the_committed_recordings_hold_what_they_are_there_for():
    """Chunks beside decodes, queues, hits, evictions, a preemption, drafts, windows: else they would prove nothing."""
    runs = {path.stem: recorded(path) for path in cases(COMMITTED)}
    *steps, summary = runs["vllm_nocache_d1"]
    assert len(steps) == summary["summary"]["steps"] == 105
    assert any(step["waiting"] for step in steps)
    assert any({1} < {tokens for _, tokens in step["sched"]} for step in steps)
    assert summary["summary"]["peak_used"] == 60
    totals = {name: run[-1]["summary"] for name, run in runs.items()}
    assert [totals["vllm_tiny"][key] for key in ("preemptions", "evicted", "hit_tokens")] == [1, 12, 48]
    assert [totals["vllm_hybrid_d1"][key] for key in ("evicted", "hit_tokens")] == [115, 1200]
    assert any({4} == {tokens for _, tokens in step["sched"]} for step in runs["vllm_spec_d1"][:-1])


def test_the_command_line_says_that_the_recording_is_equal(capsys):
    case = COMMITTED / "vllm_tiny.json"
    assert main(["replay", str(case), "--against", str(case.with_suffix(".out.jsonl"))]) == 0
    assert capsys.readouterr().out == "equal: 23 steps and the summary\n"
