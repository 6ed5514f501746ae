"""How a run begins: what its first requests need, and arrivals that the 64-bit clock cannot hold."""

import gc
import json

import pytest

from kvsim.cli.main import main
from kvsim.engine.live import first_need
from kvsim.engine.run import simulate
from kvsim.errors import InputError, PastClockError, RunError
from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.paged import PagedAllocator
from kvsim.metrics.requests import entering
from kvsim.request import Request
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.timing.interface import LinearTiming

LAST_PS = (1 << 63) - 1


def coming(*arrivals_ps):
    """Requests of one prompt and one output token, and then one that no clock holds."""
    yield from (Request(number, arrival_ps, 1, 1) for number, arrival_ps in enumerate(arrivals_ps))
    raise PastClockError("the next one is past the end of the clock")


def serve(requests, *, horizon_ps=None, step_ps=10):
    scheduler = ContinuousScheduler(PagedAllocator(64, block_size=1))
    log = simulate(requests, scheduler, LinearTiming(step_ps=step_ps), max_model_len=32, horizon_ps=horizon_ps)
    return [record.end_ps for record in log.recording.requests.ended], log


def test_a_run_that_stops_before_an_arrival_past_the_clock_is_served():
    ends_ps, log = serve(coming(0, 100), horizon_ps=500)
    assert ends_ps == [10, 110]
    assert log.end_ps == 500


def test_the_window_goes_on_to_the_horizon_as_with_a_stream_that_has_no_end():
    endless = (Request(number, 100 * number, 1, 1) for number in range(1000))
    _, known = serve(coming(0, 100), horizon_ps=150)
    _, unknown = serve(endless, horizon_ps=150)
    assert known.recording.memory.closed is None
    assert known.recording.memory.totals.slots_ps == unknown.recording.memory.totals.slots_ps


@pytest.mark.parametrize("horizon_ps", [None, LAST_PS + 1])
def test_a_run_that_would_get_there_is_wrong_input_before_it_starts(horizon_ps):
    with pytest.raises(InputError, match="past the end of the clock"):
        serve(coming(0, 100), horizon_ps=horizon_ps)


def test_an_arrival_past_the_clock_is_found_behind_what_is_read_ahead_too():
    arrivals_ps = [10 * number for number in range(1500)]
    ends_ps, _ = serve(coming(*arrivals_ps), horizon_ps=20_000)
    assert len(ends_ps) == 1500
    with pytest.raises(InputError, match="past the end of the clock"):
        serve(coming(*arrivals_ps))


def test_a_workload_with_no_arrival_within_the_clock_is_wrong_input():
    with pytest.raises(InputError, match="the workload has no requests within the 64-bit clock"):
        serve(coming(), horizon_ps=500)


def test_any_other_mistake_in_the_workload_stays_one_whatever_the_horizon():
    def broken():
        yield Request(0, 0, 1, 1)
        raise InputError("trace.csv: row 2: not a time")

    with pytest.raises(InputError, match="row 2"):
        serve(broken(), horizon_ps=5)


def test_a_step_that_the_clock_cannot_hold_is_a_run_that_failed():
    with pytest.raises(RunError, match=r"a step lasts 1e\+07 s, beyond the 64-bit clock \(9.22e\+06 s\); .*smaller"):
        serve([Request(0, 0, 1, 1)], step_ps=10**19)


def test_ten_arrivals_a_day_may_be_many_where_the_run_lasts_a_day(tmp_path, capsys):
    """A gap of 10,000 s a request: 1,000 of them, which are read ahead, take longer than the clock lasts."""
    scenario = tmp_path / "slow.yaml"
    scenario.write_text(
        "model: llama-3.1-8b\ngpu: RTX 4090\npool: {blocks: 2588}\nengine: {max_model_len: 4096}\nhorizon: 1d\n"
        "workload: {rate: 0.0001/s, arrivals: constant, requests: 5000, prompt_tokens: 100, output_tokens: 5}\n"
    )
    assert main(["run", str(scenario), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["finished"] == 8
    assert main(["run", str(scenario), "--json", "--set", "horizon=null"]) == 2
    assert "past the end of the 64-bit clock" in capsys.readouterr().err


def test_the_first_need_of_a_request_is_what_its_client_declared_where_nothing_is_ever_preempted():
    journey = entering(Request(0, 0, 10, 5, max_tokens=30), 64)
    for preemption, need in (("recompute", 16), ("never", 40)):
        scheduler = ContinuousScheduler(ContiguousAllocator(128, chunk=8), preemption=preemption, max_model_len=64)
        assert first_need(scheduler, journey) == need


@pytest.mark.parametrize("stepwise", [False, True])
def test_a_run_leaves_no_rings_of_objects_for_a_collector(stepwise):
    gc.collect()
    gc.disable()
    try:
        requests = [Request(n, n * 700, 20, 9) for n in range(200)]
        scheduler = ContinuousScheduler(PagedAllocator(256, block_size=4), max_num_seqs=8, max_num_batched_tokens=64)
        log = simulate(requests, scheduler, LinearTiming(step_ps=1000), max_model_len=64, stepwise=stepwise)
        left = len(log.recording.requests.ended)
        del log, scheduler, requests
        assert gc.collect() < left  # what the run itself hangs together by, not something for each request
    finally:
        gc.enable()
