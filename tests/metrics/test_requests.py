"""Request records: how long a request will go on, and what counts as one blocked allocation."""

import pytest

from kvsim.metrics.requests import Journey, RequestLog, allowed_output
from kvsim.metrics.tables import Dropped
from kvsim.request import Request, Sequence
from kvsim.step import Short


def request(prompt: int = 100, output: int = 50, max_tokens: int | None = None) -> Request:
    return Request(3, 10, prompt, output, max_tokens=max_tokens, priority=2, tenant="a")


def journey(**lengths: int) -> Journey:
    one = request(**lengths)
    return Journey(one, Sequence(one.id, one.prompt_tokens, None), *allowed_output(one, 1000))


def short(cause: str) -> Short:
    return Short(cause, 32, 16, 8)


@pytest.mark.parametrize(
    ("output", "max_tokens", "limit", "expected"),
    [
        (50, None, 1000, (50, "eos")),
        (50, 60, 1000, (50, "eos")),
        (50, 50, 1000, (50, "eos")),
        (50, 49, 1000, (49, "max_tokens")),
        (50, None, 150, (50, "eos")),
        (50, None, 149, (49, "max_model_len")),
        (50, 30, 149, (30, "max_tokens")),
        (50, 30, 130, (30, "max_tokens")),
        (50, 30, 129, (29, "max_model_len")),
        (50, 49, 101, (1, "max_model_len")),
    ],
)
def test_a_request_ends_at_the_first_of_its_true_length_its_clients_limit_and_the_models(
    output, max_tokens, limit, expected
):
    assert allowed_output(request(100, output, max_tokens), limit) == expected


def test_the_last_sampled_token_is_never_computed():
    assert journey(prompt=100, output=50).written_in_all == 149


def test_a_retry_with_the_same_cause_is_no_new_event_and_a_changed_cause_is():
    log, one = RequestLog(), journey()
    for time, cause in enumerate(("capacity", "capacity", "fragmentation", "fragmentation", "capacity")):
        log.blocked(time, one, short(cause), "wait")
    assert [(event.time_ps, event.cause) for event in log.events] == [
        (0, "capacity"),
        (2, "fragmentation"),
        (4, "capacity"),
    ]


def test_an_episode_that_has_ended_opens_anew():
    log, one = RequestLog(), journey()
    log.blocked(0, one, short("capacity"), "wait")
    one.blocked_cause = None  # it got its slots
    log.blocked(9, one, short("capacity"), "preempt")
    assert [tuple(event) for event in log.events] == [
        (0, 3, "capacity", "wait", 32, 16, 8),
        (9, 3, "capacity", "preempt", 32, 16, 8),
    ]


def test_episodes_of_different_requests_are_told_apart():
    log = RequestLog()
    for one in (journey(), journey()):
        log.blocked(0, one, short("capacity"), "wait")
    assert len(log.events) == 2


def test_what_is_computed_below_the_high_water_mark_is_computed_again():
    log, one = RequestLog(), journey()
    log.preempted(5, one, 70)
    log.written(one, 0, 50)
    log.written(one, 50, 40)  # 20 of these were written before
    log.written(one, 90, 10)
    assert (one.lost_tokens, one.recomputed_tokens, one.preemptions, log.preemptions) == (70, 70, 1, 1)


def test_a_second_preemption_before_the_mark_does_not_lower_it():
    log, one = RequestLog(), journey()
    log.preempted(5, one, 70)
    log.written(one, 0, 30)
    log.preempted(9, one, 30)
    log.written(one, 0, 100)
    assert (one.lost_tokens, one.recomputed_tokens, one.preemptions) == (100, 30 + 70, 2)


def test_a_preemption_knows_when_its_request_ran_again():
    log, one = RequestLog(), journey()
    log.admitted(1, one, 0)
    log.preempted(5, one, 70)
    assert log.losses[0].resumed_ps is None
    log.admitted(8, one, 0)
    log.preempted(9, one, 30)
    log.end(12, one, "aborted", 4)
    assert [(loss.time_ps, loss.resumed_ps) for loss in log.losses] == [(5, 8), (9, None)]


def test_preemptions_are_handed_over_in_order_once_it_is_known_when_their_requests_came_back():
    class Two(Dropped):
        rows = 2

        def __init__(self):
            self.came = []

        def losses(self, losses):
            self.came.append([(loss.time_ps, loss.resumed_ps) for loss in losses])

    pieces = Two()
    log, away, back = RequestLog(pieces), journey(), journey()
    for one in (away, back):
        log.admitted(0, one, 0)
    log.preempted(1, away, 70)
    for time_ps in (2, 4, 6):
        log.preempted(time_ps, back, 70)
        log.admitted(time_ps + 1, back, 0)
    assert (pieces.came, log.preemptions) == ([], 4)
    log.admitted(8, away, 0)
    log.preempted(9, back, 70)
    assert pieces.came == [[(1, 8), (2, 3), (4, 5), (6, 7)]]
    log.end(10, back, "aborted", 4)
    log.hand_over()
    assert pieces.came[1:] == [[(9, None)]]
    assert log.preemptions == 5


def test_what_is_found_cached_counts_apart_at_the_first_admission_and_after_preemptions():
    log, one = RequestLog(), journey(prompt=100)
    for now_ps, hit_tokens in ((20, 64), (50, 96), (80, 32)):
        log.admitted(now_ps, one, hit_tokens)
    log.end(90, one, "finished", 1)
    [record] = log.ended
    assert (record.asked_tokens, record.hit_tokens, record.rehit_tokens) == (100, 64, 96 + 32)
    assert record.first_scheduled_ps == 20


def test_a_record_holds_the_request_and_what_became_of_it():
    log, one = RequestLog(), journey(prompt=100, output=50, max_tokens=40)
    log.arrive(one)
    one.first_scheduled_ps, one.first_token_ps = 20, 30
    log.end(90, one, "finished", 40)
    [record] = log.ended
    assert record._asdict() == {
        "id": 3,
        "arrival_ps": 10,
        "prompt_tokens": 100,
        "output_tokens": 40,
        "max_tokens": 40,
        "priority": 2,
        "tenant": "a",
        "first_scheduled_ps": 20,
        "first_token_ps": 30,
        "end_ps": 90,
        "end": "finished",
        "finish_reason": "max_tokens",
        "generated_tokens": 40,
        "preemptions": 0,
        "lost_tokens": 0,
        "recomputed_tokens": 0,
        "swapped_tokens": 0,
        "samples": 1,
        "longest_tokens": 0,
        "asked_tokens": 0,
        "hit_tokens": 0,
        "rehit_tokens": 0,
        "hit_layers": (0, 0, 0, 0, 0),
        "regret_tokens": 0,
        "session": None,
        "turn": None,
        "slo_class": "",
        "away_ps": 0,
    }


@pytest.mark.parametrize("end", ["rejected", "cancelled", "aborted", "unfinished"])
def test_only_a_finished_request_has_a_finish_reason(end):
    log, one = RequestLog(), journey()
    log.end(90, one, end, 3)
    assert log.ended[0].finish_reason is None


def test_outputs_cut_at_the_models_limit_are_counted():
    log = RequestLog()
    for output in (50, 900, 901):
        log.arrive(journey(prompt=100, output=output))
    assert (log.arrived, log.clipped) == (3, 1)
