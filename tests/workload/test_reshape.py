"""Other traffic made of the same: windows, samples, longer requests, repetitions."""

from itertools import islice

import pytest

from kvsim.content import own_stream
from kvsim.errors import InputError
from kvsim.request import PS_PER_S
from kvsim.workload.arrivals import Constant as Evenly
from kvsim.workload.arrivals import Poisson
from kvsim.workload.lengths import Constant, Exponential
from kvsim.workload.reshape import Reshape, Reshaped
from kvsim.workload.stream import GeneratedTraffic, Workload
from kvsim.workload.streams import Streams
from kvsim.workload.trace import TraceTraffic


def generated(requests=400, arrivals=None):
    return GeneratedTraffic(
        arrivals=arrivals or Poisson(rate=4),
        prompt_tokens=Exponential(mean=100),
        output_tokens=Constant(value=7),
        requests=requests,
    )


def rows(traffic, **shape):
    return list(Reshaped(traffic, Reshape(**shape)).rows(Streams(3)))


def test_nothing_done_is_the_traffic_itself():
    assert rows(generated()) == list(generated().rows(Streams(3)))


def test_a_window_keeps_what_arrives_in_it_and_begins_at_its_start():
    whole = list(generated().rows(Streams(3)))
    kept = rows(generated(), from_s=20, until_s=50)
    assert kept == [(time - 20 * PS_PER_S, *rest) for time, *rest in whole if 20 <= time / PS_PER_S < 50]
    assert len(kept) == pytest.approx(120, abs=45)


def test_a_window_ends_traffic_that_has_no_end():
    assert len(rows(generated(None, Evenly(rate=10)), until_s=30)) == 299


def test_a_sample_lowers_the_rate_by_count_and_leaves_times_alone():
    whole = list(generated().rows(Streams(3)))
    kept = rows(generated(), share=0.25)
    assert set(kept) < set(whole)
    assert len(kept) == pytest.approx(100, abs=40)


def test_lengths_are_multiplied_and_rounded_up():
    whole = list(generated().rows(Streams(3)))
    assert rows(generated(), prompt_times=1.5, output_times=0.1) == [
        (time, -(-prompt * 3 // 2), 1) for time, prompt, output in whole
    ]


def test_the_rate_is_multiplied_by_a_time_warp_that_keeps_every_request():
    whole = list(generated().rows(Streams(3)))
    warped = rows(generated(), rate_times=4)
    assert [time for time, *_ in warped] == [(2 * time + 4) // 8 for time, *_ in whole]
    assert [rest for _, *rest in warped] == [rest for _, *rest in whole]
    twice = rows(generated(), rate_times=2, until_s=30, repeat=2)
    half = len(twice) // 2
    assert [time for time, *_ in twice[half:]] == [time + 15 * PS_PER_S for time, *_ in twice[:half]]


def test_further_samples_are_as_much_longer():
    traffic = Reshaped(generated(), Reshape(output_times=3))
    assert next(iter(Workload(traffic, samples=2))).more_outputs == (21,)
    trace = Reshaped(TraceTraffic("azure-conv-2023", requests=5), Reshape(output_times=2))
    assert all(request.more_outputs == (request.output_tokens,) for request in Workload(trace, samples=2))


def test_repetitions_follow_after_a_window_or_a_mean_gap():
    window = rows(generated(), until_s=30, repeat=3)
    third = len(window) // 3
    assert [time for time, *_ in window[third : 2 * third]] == [time + 30 * PS_PER_S for time, *_ in window[:third]]
    assert [rest for _, *rest in window[:third]] == [rest for _, *rest in window[-third:]]
    evenly = rows(generated(10, Evenly(rate=2)), repeat=2)
    assert [time for time, *_ in evenly] == pytest.approx([PS_PER_S * k / 2 for k in range(1, 21)], rel=1e-9)


def test_prompts_keep_what_they_share_and_own_what_is_theirs():
    def trace():
        return TraceTraffic("mooncake-conversation", requests=60, identities=True)

    plain = [request.content for request in Workload(trace())]
    kept = list(Workload(Reshaped(trace(), Reshape(from_s=9, repeat=2))))
    skipped = len(plain) - len(kept) // 2
    assert skipped > 0
    for number, request in enumerate(kept):
        original = plain[skipped + number % (len(kept) // 2)]
        assert [run for run in request.content.runs if run.stream >= 0] == [
            run for run in original.runs if run.stream >= 0
        ]
        assert {run.stream for run in request.content.runs if run.stream < 0} <= {own_stream(number)}
        assert request.content.tokens == request.prompt_tokens


@pytest.mark.parametrize("shape", [{"share": 0.5}, {"prompt_times": 2}])
def test_prompts_that_begin_alike_are_not_changed_one_by_one(shape):
    trace = TraceTraffic("mooncake-conversation", requests=60, identities=True)
    with pytest.raises(InputError, match=next(iter(shape))):
        rows(trace, **shape)


def test_nothing_left_is_an_error():
    with pytest.raises(InputError, match="no request is left"):
        rows(generated(), from_s=5000)


def test_a_stream_of_repetitions_is_not_held():
    assert len(list(islice(Reshaped(generated(), Reshape(repeat=10**9)).rows(Streams(0)), 5_000))) == 5_000


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        ({"from_s": -1}, "from_s"),
        ({"from_s": 5, "until_s": 5}, "until_s"),
        ({"share": 0}, "share"),
        ({"share": 1.1}, "share"),
        ({"prompt_times": 0}, "prompt_times"),
        ({"output_times": 0}, "output_times"),
        ({"repeat": 0}, "repeat"),
    ],
)
def test_a_number_that_cannot_be_is_refused_by_name(wrong, argument):
    with pytest.raises(ValueError, match=f"^{argument}: "):
        Reshape(**wrong)
