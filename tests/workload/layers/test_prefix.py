"""System prompts: what generated prompts begin with alike, and how often each is used."""

from collections import Counter
from itertools import combinations

import pytest

from kvsim.content import Run, own_stream
from kvsim.workload.arrivals import Poisson
from kvsim.workload.layers import Shared
from kvsim.workload.lengths import Constant, Uniform
from kvsim.workload.stream import GeneratedTraffic, Workload


def workload(count=200, prompt=None, **prefix):
    traffic = GeneratedTraffic(
        arrivals=Poisson(rate=8),
        prompt_tokens=prompt or Uniform(min=50, max=300),
        output_tokens=Constant(value=9),
        requests=count,
    )
    return Workload(traffic, seed=7, layers=[Shared(name="system", **prefix)] if prefix else [])


def requests(count=200, prompt=None, **prefix):
    return list(workload(count, prompt, **prefix))


def test_two_prompts_agree_in_their_system_prompt_and_in_nothing_else():
    contents = [request.content for request in requests(40, tokens=100, texts=3)]
    shared = Counter(one.common(other) for one, other in combinations(contents, 2))
    assert set(shared) == {0, 100}
    assert min(shared.values()) > 100


def test_a_prompt_includes_its_system_prompt_and_has_a_token_more_at_least():
    bare, whole = requests(), requests(tokens=100)
    assert [one.prompt_tokens for one in whole] == [max(one.prompt_tokens, 101) for one in bare]
    assert all(one.content.tokens == one.prompt_tokens for one in whole)


def test_a_system_prompt_changes_nothing_but_lengths_and_contents():
    told = [(one.id, one.arrival_ps, one.output_tokens) for one in requests()]
    assert [(one.id, one.arrival_ps, one.output_tokens) for one in requests(tokens=40, texts=5)] == told
    assert all(one.content is None for one in requests())


@pytest.mark.parametrize(("theta", "expected"), [(0, [1 / 4] * 4), (1, [12 / 25, 6 / 25, 4 / 25, 3 / 25])])
def test_system_prompts_are_drawn_evenly_or_by_zipfs_law(theta, expected):
    count = 20_000
    drawn = Counter(one.content.runs[0].stream for one in requests(count, tokens=40, texts=4, theta=theta))
    for group, share in enumerate(expected):
        # Five standard deviations of a binomial share.
        assert drawn[group] / count == pytest.approx(share, abs=5 * (share * (1 - share) / count) ** 0.5)


@pytest.mark.parametrize(
    ("wrong", "argument"), [({"tokens": 0}, "tokens"), ({"texts": 0}, "texts"), ({"theta": -1}, "theta")]
)
def test_a_number_that_cannot_be_is_refused_by_name(wrong, argument):
    with pytest.raises(ValueError, match=argument):
        Shared(**{"name": "system", "tokens": 10} | wrong)


def test_one_system_prompt_is_everybodys_and_one_of_several_is_a_groups():
    for texts, split in ((1, (10, 0, 0, 15, 0)), (3, (0, 10, 0, 15, 0))):
        told = workload(1, tokens=10, texts=texts)
        [request] = told
        assert told.layers().split(request.content.runs, 25) == split


def test_a_workload_that_shares_nothing_has_no_layers_but_its_own():
    assert workload(1).layers().split([Run(own_stream(0), 0, 9)], 9) == (0, 0, 0, 9, 0)
