"""Who is let in, with how much: budget, seats, thresholds, gates (rules 10, 11, 14 to 16 of vLLM's scheduler)."""

from tests.scheduling.vllm.story import Story


def test_running_requests_come_first_and_prompts_fill_the_rest_of_the_budget():
    story = Story(max_num_batched_tokens=16)
    story.submit("a", 10)
    story.submit("b", 10)
    assert story.step() == {"a": 10, "b": 6}
    story.submit("c", 20)
    assert story.step() == {"a": 1, "b": 4, "c": 11}


def test_the_first_that_does_not_fit_stops_admission():
    """4 free blocks: "b" needs 5, "c" would fit and does not overtake."""
    story = Story(blocks=6)
    story.submit("a", 8)
    story.submit("b", 20)
    story.submit("c", 4)
    assert story.step() == {"a": 8}
    assert story.waiting == ["b", "c"]


def test_without_chunks_a_prompt_waits_for_a_step_with_room_for_all_of_it():
    story = Story(max_num_batched_tokens=16, enable_chunked_prefill=False)
    story.submit("a", 10)
    story.submit("b", 10)
    story.submit("c", 2)
    assert story.step() == {"a": 10}
    assert story.step() == {"a": 1, "b": 10, "c": 2}


def test_the_threshold_caps_chunks_only_while_others_are_there():
    story = Story(max_num_batched_tokens=100, long_prefill_token_threshold=10)
    story.submit("a", 90)
    assert story.step() == {"a": 90}
    story.submit("b", 90)
    assert story.step() == {"a": 1, "b": 10}


def test_the_adaptive_threshold_is_at_least_a_fair_share_of_the_budget():
    """100 tokens over four requests: 25 each; over two: 50."""
    story = Story(max_num_batched_tokens=100, long_prefill_token_threshold=10, long_prefill_adaptive=True)
    for name in "abcd":
        story.submit(name, 90)
    assert story.step() == {"a": 25, "b": 25, "c": 25, "d": 25}
    story.give_up("c")
    story.give_up("d")
    assert story.step() == {"a": 50, "b": 50}


def test_active_seqs_bound_who_runs_in_the_place_of_max_num_seqs():
    story = Story(max_num_seqs=8, max_num_active_seqs=2)
    for name in "abc":
        story.submit(name, 4)
    assert story.step() == {"a": 4, "b": 4}
    story.give_up("a")
    assert story.step() == {"b": 1, "c": 4}


def test_the_gate_wants_room_for_the_whole_prompt_and_takes_a_chunk():
    for reserve, admitted in ((True, {"a": 8}), (False, {"a": 8, "b": 8})):
        story = Story(blocks=6, max_num_batched_tokens=16, reserve_full_isl=reserve)
        story.submit("a", 8)
        story.submit("b", 20)
        assert story.step() == admitted


def test_the_watermark_is_demanded_only_while_something_runs():
    story = Story(blocks=8, watermark_blocks=5)
    story.submit("a", 16)
    story.submit("b", 4)
    assert story.step() == {"a": 16}
    assert story.step() == {"a": 1}
    story.give_up("a")
    assert story.step() == {"b": 4}


def test_what_is_cached_is_not_computed_and_two_of_one_step_share_already():
    story = Story()
    story.submit("a", 10, shared=8)
    story.submit("b", 10, shared=8)
    assert story.step() == {"a": 10, "b": 2}
    assert story.hits == {"a": 0, "b": 8}


def test_a_last_token_never_lies_beyond_the_models_limit():
    story = Story(max_model_len=10)
    story.submit("a", 8)
    assert [story.step(), story.step(), story.step()] == [{"a": 8}, {"a": 1}, {}]


# Prompts in every N-th step only (rule 20).


def test_prompts_wait_for_their_step_while_others_decode():
    story = Story(prefill_schedule_interval=3)
    story.submit("a", 4)
    assert story.step() == {"a": 4}
    story.submit("b", 4)
    assert [story.step() for _ in range(3)] == [{"a": 1}, {"a": 1}, {"a": 1, "b": 4}]


def test_chunks_wait_too():
    story = Story(prefill_schedule_interval=2, max_num_batched_tokens=8)
    story.submit("a", 4)
    story.submit("b", 10)
    assert [story.step() for _ in range(3)] == [{"a": 4, "b": 4}, {"a": 1}, {"a": 1, "b": 6}]


def test_nothing_is_held_when_nobody_decodes():
    story = Story(prefill_schedule_interval=5, max_num_batched_tokens=8)
    story.submit("a", 20)
    assert [story.step(), story.step()] == [{"a": 8}, {"a": 8}]


def test_an_engine_that_cannot_drain_its_queue_holds_nothing():
    """With two seats "c" still waits after the step that was free to admit, so that it need not wait any longer."""
    story = Story(prefill_schedule_interval=4, max_num_seqs=2)
    for name in "abc":
        story.submit(name, 4)
    assert story.step() == {"a": 4, "b": 4}
    story.give_up("a")
    assert story.step() == {"b": 1, "c": 4}


def test_who_misses_one_token_only_is_no_prompt():
    story = Story(prefill_schedule_interval=9)
    story.submit("a", 8, shared=8)
    assert story.step() == {"a": 8}
    story.submit("b", 9, shared=8)
    assert story.step() == {"a": 1, "b": 1}
