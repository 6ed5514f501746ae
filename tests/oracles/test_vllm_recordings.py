"""A real vLLM's memory manager, step by step: every field of every step with prefix caching off.

Source: vLLM 0.33.0's own scheduler and KV cache manager, run without model or GPU on seeded workloads; one case is
committed (`data/vllm`), all `vllm_nocache*` are read from KVSIM_DATA where it is set. Tolerance: none.
"""

import json
import os
from pathlib import Path

import pytest

from kvsim.cli.main import main
from kvsim.engine.replay import compare_records, replay

pytestmark = pytest.mark.oracle

COMMITTED = Path(__file__).parent / "data" / "vllm"
SHARED = Path(os.environ["KVSIM_DATA"]) / "engine_cases" / "vllm" if "KVSIM_DATA" in os.environ else None


def cases(folder):
    return sorted(folder.glob("vllm_nocache*.json"))


def recorded(case):
    lines = case.with_suffix(".out.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def equals_the_recording(case):
    records = recorded(case)
    count, difference = compare_records(replay(json.loads(case.read_text(encoding="utf-8"))), iter(records))
    assert difference is None
    assert count == len(records) > 1
    assert "summary" in records[-1]


@pytest.mark.parametrize("case", cases(COMMITTED), ids=lambda case: case.stem)
def test_the_committed_recording_is_reproduced_in_every_field(case):
    equals_the_recording(case)


@pytest.mark.skipif(SHARED is None, reason="KVSIM_DATA names no folder of recorded runs")
@pytest.mark.parametrize("name", ["vllm_nocache", "vllm_nocache_d1"])
def test_the_recordings_at_hand_are_reproduced_in_every_field(name):
    case = SHARED / f"{name}.json"
    assert case in cases(SHARED)
    equals_the_recording(case)


@pytest.mark.skipif(SHARED is None, reason="KVSIM_DATA names no folder of recorded runs")
def test_no_recording_without_caching_is_left_out():
    assert [case.stem for case in cases(SHARED)] == ["vllm_nocache", "vllm_nocache_d1"]


def test_the_committed_recording_holds_what_it_is_there_for():
    """Chunks beside decodes, a queue, blocks that run out: a run without them would prove nothing."""
    [case] = cases(COMMITTED)
    *steps, summary = recorded(case)
    assert len(steps) == summary["summary"]["steps"] == 105
    assert any(step["waiting"] for step in steps)
    assert any({1} < {tokens for _, tokens in step["sched"]} for step in steps)
    assert summary["summary"]["peak_used"] == json.loads(case.read_text())["config"]["num_blocks"] - 1


def test_the_command_line_says_that_the_recording_is_equal(capsys):
    [case] = cases(COMMITTED)
    assert main(["replay", str(case), "--against", str(case.with_suffix(".out.jsonl"))]) == 0
    assert capsys.readouterr().out == "equal: 105 steps and the summary\n"
