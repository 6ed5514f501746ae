"""How much of the prompts has come before: counted by hand, and what a cache without end finds in a run."""

import pytest

from kvsim import Scenario, run
from kvsim.content import Content, Run
from kvsim.request import Request
from kvsim.study.planning.reuse import found_share, repeated_share
from tests.study.planning.small import AT, SCENARIO


def request(number, *runs):
    content = Content([Run(*one) for one in runs])
    return Request(number, 0, content.tokens, 1, content=content)


def test_a_prompt_counts_as_far_as_it_begins_like_one_before():
    first = request(0, (5, 0, 100), (-1, 0, 50))
    longer = request(1, (5, 0, 120), (-3, 0, 30))
    other = request(2, (6, 0, 40), (5, 0, 60))
    assert found_share([first]) == 0
    assert found_share([first, longer]) == pytest.approx(100 / 300)
    assert found_share([first, longer, other]) == pytest.approx(100 / 400)
    assert found_share([]) == 0


def test_it_is_the_hit_rate_of_a_run_whose_cache_never_forgets():
    shared = {"workload.prompt_tokens": 320, "workload.prefix": {"tokens": 256, "groups": 3}, "workload.requests": 1000}
    scenario = Scenario.from_dict(SCENARIO).changed(shared, AT)
    whole = {"allocator": {"name": "paged", "prefix_caching": True}, "pool.tokens": 2_000_000, "workload.rate": "2/s"}
    metrics = run(scenario.changed(whole, AT)).metrics
    assert repeated_share(scenario) == pytest.approx(metrics["hit_rate"], abs=0.005)
    assert repeated_share(scenario.changed({"allocator.prefix_caching": True}, AT)) == 0


def test_prompts_of_which_nothing_is_said_have_not_come_before():
    assert repeated_share(Scenario.from_dict(SCENARIO)) == 0
