"""The schedule policies, and SGLang's theorem about the one that goes by the longest match."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory.radix.naive_tree import tokens_of
from tests.scheduling.sglang.workloads import drain, request, scheduler


def order_of(engine, requests):
    """In what order they are tried, one admission a pass."""
    return [one.name for made in drain(engine, requests) for one, _ in made.admitted]


def one_at_a_time(policy, slots=10_000, **settings):
    return scheduler(slots, schedule_policy=policy, max_running_requests=1, **settings)


def test_fcfs_goes_by_arrival_and_lof_by_the_longest_output():
    requests = [request(n, (n, 0, 5), max_new=max_new) for n, max_new in enumerate([3, 9, 6])]
    assert order_of(one_at_a_time("fcfs"), requests) == ["r0", "r1", "r2"]
    requests = [request(n, (n, 0, 5), max_new=max_new) for n, max_new in enumerate([3, 9, 6])]
    assert order_of(one_at_a_time("lof"), requests) == ["r1", "r2", "r0"]


def test_random_is_the_same_each_time():
    runs = [order_of(one_at_a_time("random"), [request(n, (n, 0, 5)) for n in range(8)]) for _ in range(2)]
    assert runs[0] == runs[1] != [f"r{n}" for n in range(8)]


def test_lpm_takes_the_longest_match_first():
    engine = one_at_a_time("lpm")
    drain(engine, [request(0, (1, 0, 100))])
    requests = [request(1, (2, 0, 100)), request(2, (1, 0, 40), (3, 0, 5)), request(3, (1, 0, 90), (4, 0, 5))]
    assert order_of(engine, requests) == ["r3", "r2", "r1"]


def test_lpm_puts_off_who_finds_little_but_shares_with_somebody_before_it():
    requests = [request(0, (1, 0, 40), (2, 0, 5)), request(1, (1, 0, 40), (3, 0, 5)), request(2, (4, 0, 5))]
    engine = scheduler(schedule_policy="lpm", max_running_requests=2)
    assert [one.name for one, _ in drain(engine, requests)[0].admitted] == ["r0", "r2"]


def test_over_128_waiting_lpm_is_fcfs():
    engine = one_at_a_time("lpm")
    drain(engine, [request(1000, (1, 0, 100), max_new=1)])
    crowd = [request(n, (n + 10, 0, 2), max_new=1) for n in range(130)] + [
        request(999, (1, 0, 90), (2, 0, 1), max_new=1)
    ]
    names = order_of(engine, crowd)
    assert names[:4] == ["r0", "r1", "r2", "r999"]  # three had gone when 128 were left


def test_dfs_weight_takes_the_branch_where_most_wait():
    engine = scheduler(schedule_policy="dfs-weight")
    drain(engine, [request(0, (1, 0, 50)), request(1, (2, 0, 50))])
    requests = [request(2, (1, 0, 50), (3, 0, 5)), request(3, (2, 0, 50), (4, 0, 5)), request(4, (2, 0, 50), (5, 0, 5))]
    assert order_of(engine, requests) == ["r3", "r4", "r2"]  # all in one pass


def test_hrrn_takes_who_has_most_of_its_prompt_cached_or_waited_for_most_tokens():
    engine = one_at_a_time("hrrn")
    drain(engine, [request(0, (1, 0, 50))])
    requests = [request(1, (2, 0, 60), max_new=1), request(2, (3, 0, 10), max_new=1), request(3, (1, 0, 50), max_new=1)]
    assert order_of(engine, requests) == ["r1", "r3", "r2"]  # nobody has waited at first: by name; then by ratio


def test_shortest_prefill_first_also_cuts_a_long_chunk_short():
    engine = scheduler(schedule_policy="shortest-prefill-first", chunked_prefill_size=50)
    engine.submit(request(0, (1, 0, 120)))
    engine.plan(), engine.settle()
    engine.submit(request(1, (2, 0, 30)))
    engine.submit(request(2, (3, 0, 10)))
    made = engine.plan()
    assert [(one.name, tokens) for one, tokens in made.scheduled] == [("r0", 10), ("r2", 10), ("r1", 30)]


@pytest.mark.parametrize("policy", ["lpm", "dfs-weight", "hrrn", "shortest-prefill-first"])
def test_without_a_tree_a_policy_that_looks_into_it_is_fcfs(policy):
    requests = [request(0, (1, 0, 30)), request(1, (2, 0, 5))]
    assert order_of(one_at_a_time(policy, radix=False), requests) == ["r0", "r1"]


def test_under_fcfs_a_prompt_that_waits_is_touched_now_and_then_and_so_outlives_others():
    def left_of_the_first(waiting):
        engine = scheduler(100)
        drain(engine, [request(0, (1, 0, 30), max_new=1), request(1, (2, 0, 30), max_new=1)])
        engine._order._passes = 0  # the next pass touches
        drain(engine, [request(2, (3, 0, 50), max_new=1), *waiting])
        return engine.rows.tree.match(request(9, (1, 0, 30)).content).tokens

    assert left_of_the_first([]) == 0
    assert left_of_the_first([request(3, (1, 0, 30), (4, 0, 1), max_new=1)]) == 30


def test_of_those_that_wait_the_first_is_touched_last():
    engine = one_at_a_time("fcfs", slots=100)
    drain(engine, [request(0, (1, 0, 30), max_new=1), request(1, (2, 0, 30), max_new=1)])
    engine._order._passes = 0  # the next pass touches
    waiting = [request(n + 2, (n, 0, 30), (10 + n, 0, 1), max_new=1) for n in (1, 2)]
    passes = drain(engine, [request(2, (3, 0, 50), max_new=1), *waiting])
    assert [hit for made in passes for _, hit in made.admitted] == [0, 30, 0]  # 30 tokens had to go


segments = st.lists(st.tuples(st.integers(1, 3), st.just(0), st.sampled_from([1, 3, 40])), max_size=4)


@settings(max_examples=200)
@given(st.lists(segments, min_size=1, max_size=20), st.integers(0, 40))
def test_the_longest_match_first_computes_each_edge_of_the_tree_of_all_prompts_once(prompts, spare):
    """Theorem 3.1 of the SGLang paper (arXiv 2312.07104): depth-first order is optimal, and lpm is depth-first.

    Idealised: one admission a pass, no prompt a prefix of another (each ends in a token of its own), at most 128
    waiting, room for the longest request (with the output token and the page that admission asks beside it).
    """
    requests = [request(n, *prompt, (100 + n, 0, 1), max_new=1) for n, prompt in enumerate(prompts)]
    texts = [tokens_of(one.content.runs) for one in requests]
    distinct = {tuple(text[:length]) for text in texts for length in range(1, len(text) + 1)}
    longest = max(one.prompt_tokens for one in requests)
    engine = one_at_a_time("lpm", slots=longest + 3 + spare)
    computed = sum(tokens for made in drain(engine, requests) for _, tokens in made.scheduled)
    assert computed == len(distinct)
