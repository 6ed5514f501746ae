"""Who loses its blocks, and how it comes back (rules 12, 13 and 17 of vLLM's scheduler)."""

from tests.scheduling.vllm.story import Story


def crowded():
    """Three requests that fill 6 blocks of 4 and all need another at the next step."""
    story = Story(blocks=6)
    for name in "abc":
        story.submit(name, 8)
    story.step()
    return story


def test_the_last_admitted_loses_everything_and_goes_to_the_front():
    story = crowded()
    story.submit("d", 1)
    assert story.step() == {"a": 1, "b": 1}
    assert story.preempted == {"c": 8}
    assert (story.running, story.waiting) == (["a", "b"], ["c", "d"])


def test_a_step_with_a_preemption_admits_nobody():
    story = crowded()
    story.submit("d", 1)
    story.step()
    assert story.hits == {}


def test_who_comes_back_hits_its_own_blocks_as_far_as_they_are_still_there():
    """Of the two full blocks that "c" gave back "b" took the last one; 9 tokens are known, 4 of them still cached."""
    story = Story(blocks=7)
    for name in "abc":
        story.submit(name, 8)
    story.step()
    story.step()
    assert story.preempted == {"c": 8}
    story.give_up("a")
    assert story.step() == {"b": 1, "c": 5}
    assert story.hits == {"c": 4}


def test_by_priority_the_lowest_number_is_served_first_and_then_who_came_first():
    story = Story(policy="priority", max_num_seqs=1)
    for name, priority, arrival in (("a", 1, 0), ("b", 0, 5), ("c", 0, 3), ("d", 0, 3)):
        story.submit(name, 4, priority=priority, arrival=arrival)
    assert story.waiting == ["c", "d", "b", "a"]
    assert story.step() == {"c": 4}


def test_by_priority_the_highest_number_gives_way_even_if_it_was_scheduled_in_this_step():
    """Five blocks, three of "a" and two of "b": the third of "b" comes from "a", which ran before it in the list."""
    story = Story(blocks=5, policy="priority")
    story.submit("a", 8, priority=1)
    story.step()
    story.submit("b", 8)
    assert story.step() == {"a": 1, "b": 8}
    assert story.step() == {"b": 1}
    assert (story.preempted, story.running) == ({"a": 9}, ["b"])


def test_by_priority_those_behind_one_that_gives_way_itself_go_on():
    """Five blocks: "a" needs a fourth and has the highest number; "b" behind it has room in its second."""
    story = Story(blocks=5, policy="priority")
    story.submit("a", 11, priority=1)
    story.step()
    story.submit("b", 5)
    assert story.step() == {"a": 1, "b": 5}
    assert story.step() == {"b": 1}
    assert story.preempted == {"a": 12}


def test_by_priority_who_came_later_gives_way_and_of_those_who_came_together_the_first_admitted():
    for arrivals, victim in (((0, 1, 2), "c"), ((0, 0, 0), "a")):
        story = Story(blocks=6, policy="priority")
        for name, arrival in zip("abc", arrivals, strict=True):
            story.submit(name, 8, arrival=arrival)
        story.step()
        story.plan()
        assert story.preempted == {victim: 8}


def test_a_request_ends_with_its_last_token_and_frees_tail_first():
    story = Story(blocks=4)
    story.submit("a", 8, 2)
    story.plan()
    assert story.output() == {"a": "1"}
    story.plan()
    assert story.pool.free_blocks == 1
    assert story.output() == {"a": "1."}
    assert story.pool.queue() == [3, 4, 2, 1]


def test_who_gives_up_leaves_at_once_from_the_queue_or_from_the_batch():
    story = Story(max_num_seqs=1)
    story.submit("a", 4)
    story.submit("b", 4)
    story.step()
    story.give_up("b")
    story.give_up("a")
    assert (story.running, story.waiting, story.pool.free_blocks) == ([], [], 100)
    assert story.step() == {}
