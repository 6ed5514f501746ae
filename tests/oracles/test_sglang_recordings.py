"""A real SGLang's scheduler and radix tree, step by step: every field of every step of every recorded case.

Source: SGLang 0.5.23's own scheduler, unified radix tree and host tier, run without model or GPU on seeded workloads;
three cases are committed (`data/sglang`), all are read from KVSIM_DATA where it is set. Tolerance: none.
"""

import json
import os
from pathlib import Path

import pytest

from kvsim.cli.main import main
from kvsim.engine.replay import compare_records, replay

pytestmark = pytest.mark.oracle

COMMITTED = Path(__file__).parent / "data" / "sglang"
SHARED = Path(os.environ["KVSIM_DATA"]) / "engine_cases" / "sglang" if "KVSIM_DATA" in os.environ else None


def cases(folder):
    return [] if folder is None else sorted(folder.glob("sglang_*.json"))


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
def test_a_committed_recording_is_reproduced_in_every_field(case):
    equals_the_recording(case)


@pytest.mark.skipif(SHARED is None, reason="KVSIM_DATA names no folder of recorded runs")
@pytest.mark.parametrize("case", cases(SHARED), ids=lambda case: case.stem)
def test_every_recording_at_hand_is_reproduced_in_every_field(case):
    equals_the_recording(case)


@pytest.mark.skipif(SHARED is None, reason="KVSIM_DATA names no folder of recorded runs")
def test_every_kind_of_recording_is_at_hand():
    kinds = ["basic", "retract", "paged", "paged_retract", "lpm", "dfs", "mixed", "overlap", "noradix", "ignore_eos"]
    kinds += [
        f"ops_{policy}_p{page}"
        for policy in ["lru", "lfu", "fifo", "mru", "filo", "priority", "slru"]
        for page in (1, 16)
    ]
    kinds += [f"hicache_{policy}" for policy in ("write_back", "write_through", "write_through_selective")]
    names = {case.stem for case in cases(SHARED)}
    assert {f"sglang_{kind}_d1" for kind in kinds} <= names


def test_the_committed_recordings_hold_what_they_are_there_for():
    """Evictions, chunks, hits, a queue; a host that fills up: runs without them would prove nothing."""
    host, ops, stream = (recorded(case) for case in cases(COMMITTED))
    assert max(step["host_used"] for step in host[:-1]) < host[-2]["wrote"]
    assert {step["op"] for step in host[:-1]} == {"match", "insert", "lock", "unlock", "evict", "load"}
    assert sum(step.get("evicted", 0) for step in ops[:-1]) == ops[-1]["summary"]["evicted"] == 2016
    assert any(step["chunked"] for step in stream[:-1])
    assert any(step["waiting"] for step in stream[:-1])
    assert stream[-1]["summary"]["evicted"] == 160
    assert stream[-1]["summary"]["hit_tokens"] == 784


def test_the_command_line_says_that_a_recording_is_equal(capsys):
    _, ops, _ = cases(COMMITTED)
    assert main(["replay", str(ops), "--against", str(ops.with_suffix(".out.jsonl"))]) == 0
    assert capsys.readouterr().out == "equal: 88 steps and the summary\n"


def test_the_command_line_names_the_operation_that_differs(capsys, tmp_path):
    _, ops, _ = cases(COMMITTED)
    lines = ops.with_suffix(".out.jsonl").read_text(encoding="utf-8").replace('"evicted":128', '"evicted":129', 1)
    lines = lines.replace('"evicted": 128', '"evicted": 129', 1)
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text(lines, encoding="utf-8")
    assert main(["replay", str(ops), "--against", str(wrong)]) == 1
    assert "operation 4, field 'evicted': ours 128, recorded 129" in capsys.readouterr().out
