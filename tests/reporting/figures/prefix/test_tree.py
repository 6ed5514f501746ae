"""The tree of prefixes: checked against prompts laid out token by token."""

from collections import Counter
from random import Random

import pytest

from kvsim import Scenario, run
from kvsim.errors import InputError
from kvsim.reporting.figures.prefix.tree import joined, tree_of, walk
from kvsim.reporting.figures.prefix.tree_figure import prefix_tree
from kvsim.reporting.run_folder import write_run
from tests.fake_results import fake_result
from tests.reporting.figures.small_runs import PRESSED, sharing


def table(*prompts):
    """A table of prompts, each a list of (stream, offset, tokens)."""
    rows = [(number, *run) for number, runs in enumerate(prompts) for run in runs]
    return dict(zip(("request", "stream", "offset", "tokens"), map(list, zip(*rows, strict=True)), strict=True))


def prefixes(*prompts):
    """Every prefix of every prompt, token by token, with how many begin with it."""
    laid = [[(stream, offset + at) for stream, offset, tokens in runs for at in range(tokens)] for runs in prompts]
    return Counter(tuple(tokens[: length + 1]) for tokens in laid for length in range(len(tokens)))


def test_every_token_of_every_prefix_is_counted_once():
    draw = Random(5)
    for _ in range(50):
        prompts = [
            [(draw.randrange(3), draw.choice((0, 0, 3)), draw.randrange(1, 6)) for _ in range(draw.randrange(1, 4))]
            for _ in range(draw.randrange(1, 8))
        ]
        expected = prefixes(*prompts)
        for root in (tree_of(table(*prompts)), joined(tree_of(table(*prompts)))):
            assert root.requests == len(prompts)
            nodes = list(walk(root))
            counted = Counter((above + at, node.requests) for node, _, above in nodes for at in range(node.tokens))
            assert counted == Counter((len(prefix) - 1, count) for prefix, count in expected.items())


def test_nodes_stand_side_by_side_below_what_they_share():
    root = tree_of(table([(0, 0, 10), (1, 0, 5)], [(0, 0, 10), (2, 0, 7)], [(0, 0, 4)], [(9, 0, 3)]))
    places = {(above, left): (node.tokens, node.requests) for node, left, above in walk(root)}
    assert places == {(0, 0): (4, 3), (4, 0): (6, 2), (10, 0): (7, 1), (10, 1): (5, 1), (0, 3): (3, 1)}


def test_stretches_of_the_same_requests_are_one_node():
    root = joined(tree_of(table([(0, 0, 10), (1, 0, 5), (2, 0, 5)], [(0, 0, 10)])))
    assert [(node.tokens, node.requests) for node, _, _ in walk(root)] == [(10, 2), (10, 1)]


def test_a_run_records_what_its_prompts_share():
    result = sharing()
    asked = sum(result.tables["requests"]["prompt_tokens"])
    nodes = list(walk(tree_of(result.tables["prompts"])))
    assert sum(node.tokens * node.requests for node, _, _ in nodes) == asked
    roots = [node for node, _, above in nodes if above == 0]
    assert sorted(node.tokens for node in roots) == [256] * len(roots)
    assert sum(node.requests for node in roots) == result.metrics["arrived"]
    assert list(result.prompts.columns) == ["request", "start", "stream", "offset", "tokens"]


def test_what_the_tree_shares_is_what_a_large_cache_finds():
    """No prompt is there twice at once when it could be found, so that the hit rate comes near it from below."""
    result = sharing()
    nodes = [node for node, _, _ in walk(tree_of(result.tables["prompts"]))]
    asked = sum(node.tokens * node.requests for node in nodes)
    ideal = 1 - sum(node.tokens for node in nodes) / asked
    assert 0.8 * ideal < result.metrics["hit_rate"] <= ideal


def test_the_heading_says_what_is_shared_and_large_nodes_their_size():
    figure = prefix_tree(sharing())
    text = " ".join(text.get_text() for text in figure.texts)
    assert "prompt tokens are" in text
    assert f"found cached: {sharing().metrics['hit_rate']:.0%}" in text
    roots = [node for node, _, above in walk(tree_of(sharing().tables["prompts"])) if above == 0]
    told = [text.get_text() for text in figure.axes[0].texts]
    assert f"256 × {max(node.requests for node in roots)}" in told


def test_a_run_folder_has_the_tree_of_a_run_that_recorded_prompts(tmp_path):
    names = {path.name for path in write_run(sharing(), tmp_path)}
    assert {"prompts.parquet", "prefix_tree.png", "prefix_tree.svg"} <= names
    write_run(fake_result(), tmp_path)
    assert not list(tmp_path.glob("prefix_tree.*")) + list(tmp_path.glob("prompts.*"))


def test_only_runs_that_tell_prompts_apart_can_record_them():
    with pytest.raises(InputError, match="leave --prompts out"):
        run(Scenario.from_dict(PRESSED), prompts=True)
    with pytest.raises(ValueError, match="prompts=True"):
        _ = fake_result().prompts
    with pytest.raises(ValueError, match="no prompts"):
        prefix_tree(fake_result())
