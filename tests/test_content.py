"""Content as runs of streams agrees with the tokens that it stands for."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.content import LAYERS, Content, Layers, Run, own_stream

runs = st.lists(st.builds(Run, st.integers(0, 2), st.integers(0, 6), st.integers(0, 5)), max_size=6)


def tokens(some):
    return [(run.stream, run.offset + number) for run in some for number in range(run.tokens)]


@given(runs)
def test_content_holds_the_tokens_of_its_runs_in_as_few_runs_as_can_be(some):
    content = Content(some)
    assert tokens(content.runs) == tokens(some)
    assert content.tokens == len(tokens(some))
    joined = zip(content.runs, content.runs[1:], strict=False)
    assert not any(a.stream == b.stream and a.offset + a.tokens == b.offset for a, b in joined)


@given(runs, st.data())
def test_a_part_is_the_tokens_between_two_places(some, data):
    content = Content(some)
    start = data.draw(st.integers(0, content.tokens))
    end = data.draw(st.integers(start, content.tokens))
    assert tokens(content.part(start, end)) == tokens(some)[start:end]


@given(runs, runs, runs)
def test_contents_agree_as_far_as_their_tokens_do(head, one, other):
    ours, theirs = Content([*head, *one]), Content([*head, *other])
    agreed = 0
    for a, b in zip(tokens(ours.runs), tokens(theirs.runs), strict=False):
        if a != b:
            break
        agreed += 1
    assert ours.common(theirs) == agreed
    assert (ours == theirs) == (tokens(ours.runs) == tokens(theirs.runs))


# Layers of sharing.

NAMES = {0: "system", 1: "session"}


@given(runs, st.integers(0, 40), st.integers(0, 9))
def test_layers_are_those_of_the_tokens_one_by_one(some, asked, head):
    layers = Layers(NAMES.get, heads={2: head})
    expected = Counter()
    for stream, place in tokens(some)[:asked]:
        expected[NAMES.get(stream) or ("system" if place < head else "unknown")] += 1
    found = dict(zip(LAYERS, layers.split(some, asked), strict=True))
    assert +Counter(found) == expected


def test_a_stream_of_its_own_is_own_unless_the_workload_knows_better():
    mine = Run(own_stream(3), 0, 10)
    assert Layers().split([mine], 8) == (0, 0, 0, 8, 0)
    assert Layers(lambda stream: "session").split([mine], 8) == (0, 0, 8, 0, 0)


def test_a_layer_of_another_name_is_refused():
    with pytest.raises(ValueError, match="stream 4 is of layer 'team'; there are system, group, session, own, unknown"):
        Layers(lambda stream: "team").split([Run(4, 0, 2)], 2)
