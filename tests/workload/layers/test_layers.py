"""Layers of shared text: what prompts begin with, whose text a stream is, and the forms of load generators."""

from collections import Counter
from itertools import combinations, islice

import numpy as np
import pytest

from kvsim.content import own_stream
from kvsim.workload.arrivals import Poisson
from kvsim.workload.layers import LayerMap, Shared, layer_map
from kvsim.workload.layers.benchmarks import FORMS, generated_shared_prefix, prefix_repetition, shared_prefix
from kvsim.workload.lengths import Constant, Uniform
from kvsim.workload.stream import GeneratedTraffic, Workload

SYSTEM = Shared(name="system", tokens=64)
TENANT = Shared(name="tenant", tokens=Uniform(min=100, max=200), texts=8, theta=1)
DOCUMENTS = Shared(name="documents", tokens=50, texts=40, theta=0.8, count=3)


def workload(layers, count=300, prompt=None, **options):
    traffic = GeneratedTraffic(
        arrivals=Poisson(rate=8),
        prompt_tokens=prompt or Constant(value=1000),
        output_tokens=Constant(value=9),
        requests=count,
    )
    return Workload(traffic, seed=7, layers=layers, **options)


def runs_of(request, layers):
    """The shared runs of a prompt by the name of their layer."""
    told = layer_map(layers)
    return [(told.of(run.stream), run) for run in request.content.runs]


def test_layers_stand_in_their_order_and_the_rest_is_the_requests_own():
    layers = [SYSTEM, TENANT, DOCUMENTS]
    for request in workload(layers):
        named = runs_of(request, layers)
        assert [name for name, _ in named] == ["system", "tenant", *["documents"] * 3, "session"]
        assert named[-1][1].stream == own_stream(request.id)
        assert request.content.tokens == request.prompt_tokens == 1000


def test_a_text_has_one_length_in_all_prompts():
    lengths = {}
    for request in workload([SYSTEM, TENANT]):
        run = request.content.runs[1]
        assert lengths.setdefault(run.stream, run.tokens) == run.tokens
    assert len(lengths) == 8
    assert len(set(lengths.values())) > 1


def test_several_texts_are_different_ones():
    for request in workload([DOCUMENTS]):
        assert len({run.stream for run in request.content.runs[:3]}) == 3


def test_more_different_texts_than_a_steep_law_gives_are_filled_up_in_order():
    steep = Shared(name="documents", tokens=5, texts=4, theta=60, count=4)
    assert [sorted(picks) for picks in islice(steep.picks(np.random.default_rng(0)), 20)] == [[0, 1, 2, 3]] * 20


def test_in_fixed_order_the_same_texts_make_the_same_beginning():
    drawn = Shared(name="documents", tokens=50, texts=3, count=2)
    fixed = Shared(name="documents", tokens=50, texts=3, count=2, order="fixed")
    for layer, beginnings in ((drawn, 6), (fixed, 3)):
        seen = {tuple(run.stream for run in request.content.runs[:2]) for request in workload([layer])}
        assert len(seen) == beginnings


def test_texts_in_turn_are_used_equally_often():
    layer = Shared(name="group", tokens=50, texts=7, pick="in-turn")
    seen = Counter(request.content.runs[0].stream for request in workload([layer], 70))
    assert set(seen.values()) == {10}


def test_how_many_texts_a_prompt_has_can_be_drawn():
    layer = Shared(name="documents", tokens=50, texts=30, count=Uniform(min=1, max=4))
    seen = Counter(len(request.content.runs) - 1 for request in workload([layer], 800))
    assert set(seen) == {1, 2, 3, 4}
    assert min(seen.values()) > 140


def test_a_layer_further_in_changes_nothing_about_those_before_it():
    alone = [request.content.runs[0] for request in workload([DOCUMENTS])]
    with_more = [request.content.runs[0] for request in workload([DOCUMENTS, TENANT])]
    assert alone == with_more


def test_layers_leave_arrivals_and_outputs_as_they_are():
    told = [(one.id, one.arrival_ps, one.output_tokens) for one in workload([])]
    assert [(one.id, one.arrival_ps, one.output_tokens) for one in workload([SYSTEM, DOCUMENTS])] == told


def test_the_chunk_in_which_texts_are_drawn_changes_nothing():
    layer = Shared(name="documents", tokens=5, texts=40, theta=1, count=Uniform(min=1, max=5))
    few, many = (list(islice(layer.picks(np.random.default_rng(1), chunk), 500)) for chunk in (3, 1024))
    assert few == many


def test_two_prompts_agree_layer_by_layer():
    shared = Counter(
        one.content.common(other.content) for one, other in combinations(workload([SYSTEM, DOCUMENTS], 60), 2)
    )
    assert set(shared) <= {64, 114, 164, 214}
    assert shared[64] > shared[114] > shared[164]


def test_a_map_tells_whose_text_a_stream_is():
    told = layer_map([SYSTEM, TENANT, DOCUMENTS])
    assert told == LayerMap(("system", "tenant", "documents"), (0, 1, 9), ("system", "group", "group"))
    assert [told.of(stream) for stream in (0, 1, 8, 9, 48, -1)] == [
        *("system", "tenant", "tenant", "documents", "documents", "session"),
    ]
    with pytest.raises(KeyError, match="stream 3 belongs to no layer"):
        LayerMap().of(3)


def test_the_workload_tells_how_widely_each_layer_is_shared():
    told = workload([SYSTEM, DOCUMENTS], 1)
    [request] = told
    assert told.layers().split(request.content.runs, 1000) == (64, 150, 0, 786, 0)


@pytest.mark.parametrize(
    ("form", "texts", "prompt_tokens", "output_tokens", "requests"),
    [
        (prefix_repetition(), 10, 512, 128, None),
        (generated_shared_prefix(), 64, 2176, 256, 1024),
        (shared_prefix(), 10, 150, 50, 100),
        (shared_prefix(num_groups=3, num_prompts_per_group=4, question_len=7), 3, 107, 50, 12),
    ],
)
def test_the_forms_of_load_generators(form, texts, prompt_tokens, output_tokens, requests):
    assert (form.layer.texts, form.prompt_tokens, form.output_tokens) == (texts, prompt_tokens, output_tokens)
    assert form.requests == requests


@pytest.mark.parametrize("name", list(FORMS))
def test_prompts_of_a_form_share_its_prefix_and_nothing_else(name):
    form = FORMS[name]()
    requests = list(workload([form.layer], 50, Constant(value=form.prompt_tokens)))
    assert {one.content.common(two.content) for one, two in combinations(requests, 2)} <= {0, form.layer.tokens}
    assert all(request.prompt_tokens == form.prompt_tokens for request in requests)


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        ({"name": ""}, "name"),
        ({"tokens": 0}, "tokens"),
        ({"texts": 0}, "texts"),
        ({"theta": -1}, "theta"),
        ({"count": 3}, "count"),
        ({"pick": "random"}, "pick"),
        ({"order": "random"}, "order"),
        ({"each": "request"}, "each"),
    ],
)
def test_a_number_that_cannot_be_is_refused_by_name(wrong, argument):
    with pytest.raises(ValueError, match=f"^{argument}: "):
        Shared(**{"name": "system", "tokens": 10} | wrong)


def test_a_form_refuses_a_number_that_cannot_be():
    with pytest.raises(ValueError, match="num_groups"):
        shared_prefix(num_groups=0)
