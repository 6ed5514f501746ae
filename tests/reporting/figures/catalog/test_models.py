"""Figures of models: the numbers of the catalogue's footprints, and of the pool of a run."""

from dataclasses import replace

import pytest

from kvsim.catalog.footprint import Footprint
from kvsim.catalog.models import model, models
from kvsim.reporting.figures.catalog.bytes_per_token import FAMILIES, bytes_per_token
from kvsim.reporting.figures.catalog.concurrency import LENGTHS, at_once, concurrency, has_pool
from kvsim.reporting.figures.catalog.kv_share import kv_share, share_percent
from kvsim.reporting.figures.catalog.lengths import LENGTHS as TO_A_MILLION
from kvsim.reporting.figures.catalog.lengths import length_text
from tests.reporting.figures.small_runs import pressed


def test_every_model_of_the_catalogue_is_in_one_family():
    kinds = [kind for family in FAMILIES.values() for kind in family]
    assert len(kinds) == len(set(kinds))
    assert {one.attention for one in models()} <= set(kinds)


def test_a_dot_is_the_kv_of_a_token_and_the_model_of_the_run_is_marked():
    [axes] = bytes_per_token(pressed()[:1]).axes
    drawn = sorted(x for line in axes.lines if line.get_alpha() == 0.75 for x in line.get_xdata())
    assert drawn == pytest.approx(sorted(Footprint(one).kv_bytes_per_token / 1024 for one in models()))
    assert any(list(line.get_xdata()) == [128.0, 128.0] for line in axes.lines)
    assert "llama-3.1-8b: 128 KiB" in [text.get_text() for text in axes.texts]


def test_the_share_of_kv_is_that_of_the_footprint():
    """Llama-3.1-8B: 131,072 bytes a token, 16.06 GB of weights."""
    shown = Footprint(model("llama-3.1-8b"))
    kv = 131_072 * 131_072
    assert share_percent(shown, 131_072) == pytest.approx(100 * kv / (kv + shown.weight_bytes))
    [axes] = kv_share(pressed()[:1]).axes
    line = next(line for line in axes.lines if line.get_label() == "llama-3.1-8b")
    assert list(line.get_xdata()) == list(TO_A_MILLION)
    assert line.get_ydata()[5] == pytest.approx(share_percent(shown, 131_072))
    assert line.get_ydata()[6] != line.get_ydata()[6]  # beyond its context: only dotted


def test_formats_and_ranks_of_the_run_count():
    result = pressed()[0]
    kept = dict(result.scenario_resolved)
    try:
        result.scenario_resolved |= {"model.kv_dtype": {"value": "fp8"}, "tensor_parallel": {"value": 2}}
        [axes] = kv_share([result]).axes
        line = next(line for line in axes.lines if line.get_label() == "llama-3.1-8b on 2 GPUs, fp8 KV")
        shown = Footprint(model("llama-3.1-8b"), tensor_parallel=2, kv_dtype="fp8")
        assert line.get_ydata()[0] == pytest.approx(share_percent(shown, 4096))
    finally:
        result.scenario_resolved = kept


def test_requests_at_once_take_whole_blocks_or_the_whole_limit():
    contiguous, reserve, paged = pressed()
    assert at_once(paged, 512) == 6400 // 16 // 32
    assert at_once(paged, 513) == 6400 // 16 // 33
    assert at_once(contiguous, 512) == 12
    assert at_once(reserve, 512) == 6400 // 2048


def test_a_line_is_what_fits_and_variants_that_agree_share_one():
    results = pressed()
    [axes] = concurrency(results).axes
    labels = [line.get_label() for line in axes.lines if not line.get_label().startswith("_")]
    assert labels == ["contiguous, paged", "reserve"]
    line = next(line for line in axes.lines if line.get_label() == "contiguous, paged")
    assert list(line.get_ydata()) == [at_once(results[0], length) for length in LENGTHS if length <= 2048]


def test_a_request_lies_in_the_pool_of_one_replica():
    """Two replicas of 3,200 slots hold none of 4,096 tokens, though their pools together would."""
    paged = replace(pressed()[2], pools=[{"replica": 0}, {"replica": 1}])
    assert at_once(paged, 1024) == 2 * (3200 // 1024)
    assert at_once(paged, 4096) == 0 < at_once(pressed()[2], 4096)


def test_a_pool_that_holds_no_request_of_any_length_has_no_figure():
    small = replace(pressed()[2], metrics={**pressed()[2].metrics, "pool_tokens": 496, "pool_blocks": 31})
    assert not has_pool([small])
    assert has_pool([small, pressed()[2]])
    with pytest.raises(ValueError, match="pool"):
        concurrency([small])


def test_every_variant_of_a_line_is_named_as_long_as_there_is_room():
    contiguous, reserve, paged = (replace(result, name=result.name * 8) for result in pressed())
    [axes] = concurrency([contiguous, reserve, paged]).axes
    first, _ = [line.get_label() for line in axes.lines if not line.get_label().startswith("_")]
    assert "contiguous" in first
    assert "paged" in first
    many = [replace(paged, name=f"{number} {paged.name}") for number in range(9)]
    [axes] = concurrency([*many, reserve]).axes
    assert next(line.get_label() for line in axes.lines if "paged" in str(line.get_label())).endswith(" and 7 more")


@pytest.mark.parametrize(("tokens", "text"), [(512, "512"), (4096, "4K"), (2**19, "512K"), (2**20, "1M")])
def test_lengths_are_written_as_people_do(tokens, text):
    assert length_text(tokens) == text
