"""SGLang's passes: who joins, who waits, who gives up its slots, and that no slot is ever lost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.errors import RunError
from kvsim.scheduling.sglang.policy.order import AGNOSTIC, AWARE
from tests.memory.radix.audit import audit
from tests.scheduling.sglang.workloads import OUTPUT_STREAM, drain, request, scheduler


def sched(made):
    return [(one.name, tokens) for one, tokens in made.scheduled]


def hits(made):
    return [(one.name, tokens) for one, tokens in made.admitted]


def test_two_equal_prompts_in_one_batch_are_both_computed():
    engine = scheduler()
    first, *_ = drain(engine, [request(0, (1, 0, 50)), request(1, (1, 0, 50))])
    assert sched(first) == [("r0", 50), ("r1", 50)]
    assert hits(first) == [("r0", 0), ("r1", 0)]


def test_a_prompt_found_whole_computes_its_last_token_again():
    engine = scheduler()
    drain(engine, [request(0, (1, 0, 50))])
    assert hits(drain(engine, [request(1, (1, 0, 50))])[0]) == [("r1", 49)]


def test_an_answer_is_found_by_who_quotes_it_but_for_its_last_token():
    engine = scheduler()
    drain(engine, [request(0, (1, 0, 50), max_new=10)])
    made = drain(engine, [request(1, (1, 0, 50), (OUTPUT_STREAM, 0, 10), (2, 0, 5))])[0]
    assert hits(made) == [("r1", 59)]


def test_prompts_are_computed_before_anybody_decodes():
    engine = scheduler()
    engine.submit(request(0, (1, 0, 10)))
    engine.plan(), engine.settle()
    engine.submit(request(1, (2, 0, 10)))
    made = engine.plan()
    assert (made.mode, sched(made)) == ("prefill", [("r1", 10)])
    engine.settle()
    assert sched(engine.plan()) == [("r0", 1), ("r1", 1)]


def test_with_mixed_chunks_they_decode_along():
    engine = scheduler(chunked_prefill_size=8, enable_mixed_chunk=True)
    engine.submit(request(0, (1, 0, 5)))
    engine.plan(), engine.settle()
    engine.submit(request(1, (2, 0, 10)))
    made = engine.plan()
    assert (made.mode, sched(made)) == ("mixed", [("r1", 7), ("r0", 1)])


def test_a_prompt_over_the_chunk_is_cut_to_whole_pages_and_goes_on_first():
    engine = scheduler(1600, page_size=16, chunked_prefill_size=48)
    one, other = request(0, (1, 0, 20)), request(1, (2, 0, 40))
    engine.submit(one), engine.submit(other)
    assert sched(engine.plan()) == [("r0", 20), ("r1", 16)]
    engine.settle()
    engine.submit(request(2, (3, 0, 5)))
    assert sched(engine.plan()) == [("r1", 24), ("r2", 5)]


def test_without_chunks_the_first_prompt_may_exceed_the_tokens_of_a_pass():
    engine = scheduler(max_prefill_tokens=30)
    passes = drain(engine, [request(0, (1, 0, 50)), request(1, (2, 0, 10))])
    assert [sched(made) for made in passes[:2]] == [[("r0", 50)], [("r1", 10)]]


def test_admission_stops_at_the_first_that_does_not_fit_until_somebody_leaves():
    engine = scheduler(200)
    passes = drain(engine, [request(0, (1, 0, 90)), request(1, (2, 0, 120)), request(2, (3, 0, 5))])
    assert sched(passes[0]) == [("r0", 90)]
    assert [sched(made) for made in passes[1:4]] == [[("r0", 1)]] * 3
    assert sched(passes[4]) == [("r1", 120), ("r2", 5)]


@pytest.mark.parametrize(("slots", "admitted"), [(15, False), (16, True)])
def test_what_is_admitted_must_leave_a_slot_beside_prompt_output_and_page(slots, admitted):
    engine = scheduler(slots)
    engine.submit(request(0, (1, 0, 10), max_new=4))
    assert bool(engine.plan().admitted) == admitted


def test_a_finished_prompt_is_a_node_of_its_own_and_worth_more_than_its_answer():
    engine = scheduler()
    drain(engine, [request(0, (1, 0, 10), max_new=4, priority=2)])
    nodes = sorted(engine.rows.tree.nodes(), key=lambda node: node.created)
    assert [(node.tokens, node.priority, node.hits) for node in nodes] == [(10, 3, 1), (3, 2, 1)]


def test_the_one_with_the_least_output_is_retracted_waits_last_and_keeps_its_output():
    engine = scheduler(106, schedule_conservativeness=0.01)
    early, late = request(0, (1, 0, 40), max_new=50), request(1, (2, 0, 30), max_new=30)
    engine.submit(early)
    for _ in range(4):
        engine.plan(), engine.settle()
    seen = {}

    def after(made, served):
        if made.retracted and not seen:
            assert made.retracted == engine.waiting == [late]
            assert sched(made) == [("r0", 1)]
            # This pass's own token is in by now, and was not when the ratio was set.
            assert engine.ratio.value == pytest.approx((early.outputs - 1 + 20) / (early.max_new + 1))
            seen.update(early=early.outputs - 1, late=late.outputs)

    passes = drain(engine, [late], also=[early], after=after)
    # With the slots for the tokens that both were to compute, one more than there are.
    assert early.prompt_tokens + late.prompt_tokens + seen["early"] + seen["late"] == 106 + 1
    # Its prompt went too, to make room for 20 tokens ahead; its output is computed again, not generated again.
    assert [sched(made) for made in passes if made.admitted] == [[("r1", 30)], [("r1", 30 + seen["late"])]]
    assert late.outputs == late.max_new


def test_the_ratio_falls_with_each_decode_and_starts_anew_when_idle():
    engine = scheduler()
    drain(engine, [request(0, (1, 0, 5), max_new=11)])
    assert engine.ratio.value == pytest.approx(0.7 - 10 * (0.7 - 0.7 * 0.14) / 600)
    engine.ratio.reset()
    assert engine.ratio.value == 0.7


def test_with_overlap_a_result_reaches_the_tree_one_pass_later_and_the_last_token_is_not_computed_twice():
    engine = scheduler(overlap=True)
    engine.submit(request(0, (1, 0, 10), max_new=2))
    engine.plan()
    assert engine.settle() == []
    assert engine.rows.tree.tokens == 0
    assert sched(engine.plan()) == [("r0", 1)]
    assert [one.finished for one in engine.settle()] == [False]
    assert engine.rows.tree.tokens == 10
    assert engine.plan().mode == "idle"
    assert [one.finished for one in engine.settle()] == [True]


def test_without_a_tree_requests_of_fixed_length_are_admitted_by_how_the_pool_drains():
    """Added up, two of these never fit together; played out, the short one makes room for the long one in time."""

    def in_the_first_pass(*lengths, **more):
        requests = [request(n, (n, 0, 30), max_new=max_new, **more) for n, max_new in enumerate(lengths)]
        return len(drain(scheduler(130, radix=False), requests)[0].scheduled)

    assert in_the_first_pass(60, 10) == 1
    assert in_the_first_pass(60, 10, ignore_eos=True) == 2
    # SGLang looks for the place of the newcomer among all but the last: one that drains last comes out too early.
    assert in_the_first_pass(10, 60, ignore_eos=True) == 1


def test_a_decode_that_nothing_else_makes_room_for_aborts_the_last_one():
    engine = scheduler(20)
    doomed = request(0, (1, 0, 10), max_new=5)
    engine.submit(doomed)
    engine.plan(), engine.settle()
    doomed.max_new = 100  # as if it had been queued without regard to the pool
    passes = []
    for _ in range(20):
        passes.append(engine.plan())
        engine.settle()
    assert [made.aborted for made in passes if made.aborted] == [[doomed]]
    assert engine.rows.held == 0


def test_a_batch_that_turns_out_not_to_fit_ends_the_run_with_a_reason():
    engine = scheduler(20)
    large = request(0, (1, 0, 30))
    large.end = 30  # as if admission had let it in
    with pytest.raises(RunError, match="out of memory: a batch needs 30 slots more and 20 are free"):
        engine.rows.extend([large])


flags = st.fixed_dictionaries(
    {
        "chunked_prefill_size": st.sampled_from([None, 24, 64]),
        "max_prefill_tokens": st.sampled_from([40, 16384]),
        "max_running_requests": st.sampled_from([1, 3, 16]),
        "schedule_policy": st.sampled_from(AGNOSTIC + AWARE),
        "schedule_conservativeness": st.sampled_from([0.01, 1.0]),
        "enable_mixed_chunk": st.booleans(),
        "overlap": st.booleans(),
    }
)
prompts = st.lists(st.tuples(st.integers(1, 2), st.just(0), st.integers(1, 30)), min_size=1, max_size=3)
arrivals = st.lists(st.tuples(prompts, st.integers(1, 25), st.booleans(), st.integers(0, 9)), min_size=1, max_size=10)


@settings(max_examples=200)
@given(flags, arrivals, st.sampled_from([1, 8]), st.booleans())
def test_every_request_finishes_and_no_slot_is_lost(flags, arrivals, page_size, radix):
    engine = scheduler(160, page_size=page_size, radix=radix, **flags)
    pool, tree = engine.rows.pool, engine.rows.tree
    coming = [
        (when, request(number, *prompt, max_new=max_new, ignore_eos=fixed))
        for number, (prompt, max_new, fixed, when) in enumerate(arrivals)
    ]
    everybody = [one for _, one in coming]

    def check(made, served):
        own = sum(pool.ceil(one.committed) - one.protected for one in everybody if one.holds)
        assert pool.free + tree.tokens + own == pool.slots
        assert sum(one.holds for one in everybody) == engine.rows.held <= flags["max_running_requests"]
        if radix:
            audit(tree)
        while coming and coming[0][0] <= len(passes):
            engine.submit(coming.pop(0)[1])
        passes.append(made)

    passes = []
    coming.sort(key=lambda one: one[0])
    while not all(one.finished for one in everybody):
        check(engine.plan(), engine.settle())
        assert len(passes) < 3000
    assert all(one.outputs == one.max_new for one in everybody)
    assert tree.protected_tokens == 0
    assert pool.free + tree.tokens == pool.slots
