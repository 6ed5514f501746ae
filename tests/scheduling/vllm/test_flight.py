"""Two batches in flight, and drafts (rules 21 and 22 of vLLM's scheduler)."""

from tests.scheduling.vllm.story import Story


def test_a_decode_is_scheduled_again_before_its_token_is_known():
    story = Story(async_scheduling=True)
    story.submit("a", 4, 3)
    seen = [(story.plan(), story.output()) for _ in range(5)]
    assert seen == [
        ({"a": 4}, {}),
        ({"a": 1}, {"a": "1"}),
        ({"a": 1}, {"a": "1"}),
        ({}, {"a": "1."}),
        ({}, {}),
    ]


def test_a_block_of_unknown_tokens_is_stored_once_they_are_known():
    """Prompt 7: the 8th token is scheduled in the second step, and known when the first one's output has come."""
    story = Story(async_scheduling=True)
    story.submit("a", 7)
    story.step()
    story.plan()
    assert story.pool.stored == 1
    story.output()
    assert story.pool.stored == 1, "token 8 is known now, and in flight"
    story.plan()
    assert story.pool.stored == 2


def test_output_in_flight_at_a_preemption_is_delivered_and_until_then_it_stays_aside():
    """Both fill two blocks of 4 and need a third for token 9; "b" gives way with its 8th token in flight."""
    story = Story(blocks=4, async_scheduling=True)
    story.submit("a", 7)
    story.submit("b", 7)
    assert [story.step(), story.step()] == [{"a": 7, "b": 7}, {"a": 1, "b": 1}]
    assert story.plan() == {"a": 1}
    assert story.preempted == {"b": 8}
    assert story.output() == {"a": "1", "b": "1"}
    assert story.sequences["b"].tokens == 9
    assert story.waiting == ["b"]


def test_others_pass_one_whose_output_is_still_in_flight():
    """With a third step planned before the second one's output "b" cannot go on yet, and "c" does not wait for it."""
    story = Story(blocks=5, async_scheduling=True)
    story.submit("a", 7, 3)
    story.submit("b", 11, 50)
    story.step()
    story.step()
    story.plan()
    assert story.preempted == {"b": 12}
    story.submit("c", 1)
    story.plan()
    assert (story.running, story.waiting) == (["a", "c"], ["b"])


def test_what_is_in_flight_for_one_who_gave_up_is_lost():
    story = Story(async_scheduling=True)
    story.submit("a", 4)
    story.step()
    story.plan()
    story.give_up("a")
    assert (story.output(), story.pool.free_blocks) == ({}, 100)
    story.plan()
    assert story.output() == {}


# Drafts.


def test_drafts_are_verified_with_the_next_token_and_rejected_ones_are_written_again():
    story = Story(draft_tokens=3)
    story.submit("a", 4)
    assert story.step() == {"a": 4}
    assert story.plan() == {"a": 4}
    assert story.output(a=2) == {"a": "3"}
    assert (story.sequences["a"].tokens, story.sequences["a"].written) == (8, 7)


def test_a_request_ends_inside_its_accepted_drafts():
    story = Story(draft_tokens=3)
    story.submit("a", 4, 3)
    story.step()
    story.plan()
    assert story.output(a=3) == {"a": "2."}


def test_slots_for_the_drafter_come_on_top_and_stay():
    """4 + 3 drafter's slots are 2 blocks; then 4 written, 4 scheduled and 3 more: 3 blocks, kept though all fail."""
    story = Story(draft_tokens=3, lookahead_tokens=3)
    story.submit("a", 4)
    story.step()
    assert story.pool.free_blocks == 98
    story.plan()
    assert story.pool.free_blocks == 97
    story.output(a=0)
    assert story.pool.free_blocks == 97


def test_blocks_of_accepted_tokens_are_stored_when_the_output_comes():
    story = Story(draft_tokens=3)
    story.submit("a", 4)
    story.step()
    story.plan()
    assert story.pool.stored == 1
    story.output(a=3)
    assert story.pool.stored == 2


def test_one_that_lacks_a_single_token_joins_with_drafts_in_step_with_the_others():
    story = Story(draft_tokens=3)
    story.submit("a", 9, shared=8)
    story.step()
    story.submit("b", 9, shared=8)
    assert story.plan() == {"a": 4, "b": 4}
    assert story.output(b=1)["b"] == "2"


def test_or_waits_if_the_budget_does_not_hold_them():
    story = Story(draft_tokens=3, max_num_batched_tokens=9)
    story.submit("a", 9, shared=8)
    story.step()
    story.submit("b", 9, shared=8)
    story.submit("c", 9, shared=8)
    assert story.step() == {"a": 4, "b": 4}
    assert story.waiting == ["c"]


def test_a_first_token_alone_has_no_drafts_yet():
    story = Story(draft_tokens=3)
    story.submit("a", 1)
    assert [story.step(), story.step()] == [{"a": 1}, {"a": 4}]


def test_drafts_in_flight_count_as_tokens_until_they_are_rejected():
    story = Story(draft_tokens=2, async_scheduling=True)
    story.submit("a", 4)
    assert [story.step(), story.plan()] == [{"a": 4}, {"a": 3}]
    assert story.output() == {"a": "1"}
    assert story.plan() == {"a": 3}
    assert story.output(a=0) == {"a": "1"}
    # 4 known and computed, 1 accepted: 5 + 3 of the batch in flight.
    assert story.sequences["a"].written == 8
