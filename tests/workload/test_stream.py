"""The stream of requests: what is on each, what stays the same when something else changes."""

import json
import tracemalloc
from itertools import islice, pairwise

import pytest

from kvsim.errors import InputError
from kvsim.request import Request
from kvsim.workload.arrivals import Constant, Gamma, Poisson
from kvsim.workload.clients.limits import Patience
from kvsim.workload.lengths import Constant as ConstantLength
from kvsim.workload.lengths import Exponential, Lognormal
from kvsim.workload.stream import GeneratedTraffic, Workload
from kvsim.workload.trace import TraceTraffic


def generated(requests=200, arrivals=None, prompt_tokens=None, output_tokens=None, **options):
    return GeneratedTraffic(
        arrivals=arrivals or Poisson(rate=8),
        prompt_tokens=prompt_tokens or Lognormal(median=400, sigma=0.7, min=16, max=4096),
        output_tokens=output_tokens or Exponential(mean=110),
        requests=requests,
        **options,
    )


def column(workload, name):
    return [getattr(request, name) for request in workload]


def test_a_trace_becomes_requests_numbered_in_order_of_arrival():
    workload = Workload(TraceTraffic("azure-conv-2023", requests=2), max_tokens=512, priority=3, tenant="chat")
    assert list(workload) == [
        Request(0, 0, 374, 44, max_tokens=512, priority=3, tenant="chat"),
        Request(1, 4_314_579_000_000, 396, 109, max_tokens=512, priority=3, tenant="chat"),
    ]


def test_generated_requests_have_the_lengths_and_times_of_their_laws():
    workload = Workload(generated(3, Constant(rate=2), ConstantLength(value=5), ConstantLength(value=7)))
    assert list(workload) == [
        Request(0, 500_000_000_000, 5, 7),
        Request(1, 1_000_000_000_000, 5, 7),
        Request(2, 1_500_000_000_000, 5, 7),
    ]


def test_by_default_the_client_sets_no_limit_and_waits():
    request = next(iter(Workload(generated())))
    assert (request.max_tokens, request.patience_ps, request.priority, request.tenant) == (None, None, 0, "")


def test_an_oracle_limit_follows_each_true_output():
    workload = Workload(generated(), max_tokens={"times_output": 2})
    assert all(request.max_tokens == 2 * request.output_tokens for request in workload)


def test_iterating_again_gives_the_same_requests():
    workload = Workload(generated(), seed=3, cancel=Patience(after_s=1, share=0.5))
    assert list(workload) == list(workload)


def test_another_seed_gives_other_requests():
    for name in ("arrival_ps", "prompt_tokens", "output_tokens"):
        assert column(Workload(generated(), seed=1), name) != column(Workload(generated(), seed=2), name)


def test_the_chunk_in_which_values_are_drawn_changes_nothing():
    assert list(Workload(generated(chunk=7))) == list(Workload(generated(chunk=1024)))


def test_fewer_requests_are_the_head_of_more():
    assert list(Workload(generated(20))) == list(Workload(generated(200)))[:20]


def test_traffic_without_a_count_does_not_end():
    assert list(islice(Workload(generated(None)), 200)) == list(Workload(generated(200)))


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        ({"arrivals": Gamma(rate=8, cv=3)}, "arrival_ps"),
        ({"prompt_tokens": Exponential(mean=400)}, "prompt_tokens"),
        ({"output_tokens": Exponential(mean=50)}, "output_tokens"),
    ],
)
def test_a_change_in_one_law_leaves_the_draws_of_the_others_untouched(change, changed):
    before, after = Workload(generated()), Workload(generated(**change))
    for name in ("arrival_ps", "prompt_tokens", "output_tokens"):
        assert (column(before, name) == column(after, name)) == (name != changed)


def test_clients_that_give_up_change_nothing_else():
    patient, hasty = (
        list(Workload(generated())),
        list(Workload(generated(), cancel=Patience(after_s=2, share=0.3))),
    )
    given_up = [request for request in hasty if request.patience_ps is not None]
    assert 20 <= len(given_up) <= 100
    assert {request.patience_ps for request in given_up} == {2_000_000_000_000}
    for request in given_up:
        request.patience_ps = None
    assert hasty == patient


def test_doubling_a_poisson_rate_halves_every_gap():
    slow, fast = (column(Workload(generated(arrivals=Poisson(rate=rate))), "arrival_ps") for rate in (4, 8))
    assert slow == pytest.approx([2 * arrival for arrival in fast], rel=1e-9)


def test_arrivals_never_decrease():
    assert all(a <= b for a, b in pairwise(column(Workload(TraceTraffic("azure-conv-2023", rate=20)), "arrival_ps")))


def test_an_arrival_past_the_end_of_the_clock_is_an_error():
    workload = Workload(TraceTraffic("azure-conv-2023", rate=1e-5))
    with pytest.raises(InputError, match="past the end of the 64-bit clock"):
        list(workload)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"seed": -1}, "seed"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": {"times_output": 0}}, "times_output"),
        ({"priority": 1.5}, "priority"),
        ({"priority": 1 << 63}, "priority"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused_by_name(options, argument):
    with pytest.raises(ValueError, match=f"^{argument}: "):
        Workload(generated(), **options)


@pytest.mark.parametrize(("options", "argument"), [({"requests": 0}, "requests"), ({"chunk": 0}, "chunk")])
def test_generated_traffic_refuses_a_count_that_makes_no_sense(options, argument):
    with pytest.raises(ValueError, match=f"^{argument}: "):
        generated(**options)


def test_the_report_is_plain_and_says_what_made_the_requests():
    report = Workload(generated(), max_tokens={"times_output": 2}, cancel=Patience(after_s=2, share=0.3)).describe()
    assert json.loads(json.dumps(report, allow_nan=False)) == {
        "source": "generated",
        "arrivals": {"process": "poisson", "rate": 8},
        "rate_per_s": 8,
        "prompt_tokens": {"distribution": "lognormal", "median": 400, "sigma": 0.7, "min": 16, "max": 4096},
        "output_tokens": {"distribution": "exponential", "mean": 110},
        "requests_asked": 200,
        "prefix_identity": "absent",
        "max_tokens": {"times_output": 2},
        "max_tokens_provenance": "oracle",
        "cancel": {"after_s": 2, "share": 0.3},
        "samples": 1,
        "beam": None,
        "layers": [],
        "priority": 0,
        "tenant": "",
        "warm": None,
        "mix": None,
    }
    json.dumps(Workload(TraceTraffic("azure-conv-2023", rate=4)).describe(), allow_nan=False)


@pytest.fixture
def long_trace(tmp_path):
    path = tmp_path / "long.csv"
    rows = (
        f"2023-11-16 {s // 3600:02}:{s // 60 % 60:02}:{s % 60:02}.1234567,{s % 4000 + 1},{s % 500 + 1}"
        for s in range(20_000)
    )
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "\n".join(rows))
    return path


@pytest.mark.parametrize("source", ["trace", "generated"])
def test_a_long_stream_is_never_held_in_memory(source, long_trace):
    traffic = TraceTraffic(long_trace, rate=8) if source == "trace" else generated(20_000)
    next(iter(Workload(traffic)))  # imports and tables, once
    tracemalloc.start()
    try:
        assert sum(1 for _ in Workload(traffic)) == 20_000
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # As a list, 20,000 requests would take more than 2 MB.
    assert peak_bytes < 500_000
