"""What a simulated run is as a measurement: tokens come when they come, and none is lost."""

from dataclasses import replace

import numpy as np
import pytest

from kvsim.scenario import Scenario
from kvsim.study import run
from kvsim.study.recorded.simulated import gauges, output_tokens


def test_every_output_token_has_come_by_the_end_and_none_before_the_first_step(result):
    end_s = result.metrics["simulated_s"]
    times_s = np.linspace(0, end_s, 200)
    emitted = output_tokens(result, times_s)
    assert result.metrics["preemptions"] > 0
    assert emitted[0] == 0
    assert emitted[-1] == pytest.approx(result.requests.generated_tokens.sum(), rel=1e-12)
    assert (np.diff(emitted) >= 0).all()


def test_nothing_is_emitted_while_nothing_runs():
    lengths = {"prompt_tokens": 100, "output_tokens": 20}
    sparse = run(Scenario.from_dict({"model": "llama-3.1-8b", "gpu": "RTX 4090", "pool": {"blocks": 120},
                                     "workload": {"rate": "1/s", "requests": 12, **lengths}}))  # fmt: skip
    starts_s, durations_s = (sparse.steps[name].to_numpy() for name in ("start_s", "duration_s"))
    ends_s = starts_s + durations_s
    gaps = np.flatnonzero(starts_s[1:] > ends_s[:-1] + 1e-3)
    assert len(gaps) > 3
    for gap in gaps:
        over, middle = output_tokens(sparse, np.array([ends_s[gap], (ends_s[gap] + starts_s[gap + 1]) / 2]))
        assert over == middle == pytest.approx(round(over / 20) * 20, abs=1e-9)


def test_a_run_whose_every_request_is_rejected_emits_nothing(result):
    idle = replace(result, tables={**result.tables, "steps": {name: [] for name in result.tables["steps"]}})
    none = {**result.tables["requests"], "first_token_s": [None] * result.metrics["arrived"]}
    idle.tables |= {"requests": {**none, "generated_tokens": [0] * result.metrics["arrived"]}}
    assert (output_tokens(idle, np.array([0.0, 5.0])) == 0).all()


def test_gauges_hold_from_a_row_of_memory_to_the_next(result):
    memory = result.memory
    between = (memory.time_s.to_numpy()[:-1] + memory.time_s.to_numpy()[1:]) / 2
    read = gauges(result, between)
    assert read["running"].tolist() == memory.running[:-1].tolist()
    assert read["waiting"].tolist() == memory.waiting[:-1].tolist()
