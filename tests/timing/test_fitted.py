"""What lies outside the range that was fitted: which quantity, how far, for how long; leaps count as their steps do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.catalog.models import model
from kvsim.metrics.memory.ramp import Ramp
from kvsim.timing.fitted import FittedRange, Outside, Span, Watch, narrowest
from kvsim.timing.fitting.calibration import shipped
from kvsim.timing.steps.fitted import fitted_range
from kvsim.timing.steps.shapes import Layout, Shapes

SPANS = {
    "sequences": Span("decode", 1, 64),
    "context": Span("decode", 16, 1000),
    "tokens": Span("linear", 1, 2048),
    "chunk": Span("prefill", 64, 4096),
    "cached": Span("prefill", 0, 0),
}


def watch():
    return Watch(FittedRange(SPANS))


def said(seen):
    return {one.what: (one.value, one.share) for one in seen.outside()}


def test_a_run_inside_the_range_says_nothing():
    seen = watch()
    seen.step(5, 64, 64 * 1000, [])
    seen.step(5, 10, 160, [(64, 0)])
    assert seen.outside() == []


def test_each_quantity_tells_its_furthest_value_and_its_share_of_the_time():
    seen = watch()
    seen.step(60, 10, 10 * 500, [])
    seen.step(30, 128, 128 * 500, [])
    seen.step(10, 256, 256 * 500, [])
    assert said(seen) == {"sequences at once": (256, 0.4)}


def test_what_lies_below_counts_as_outside_too():
    seen = watch()
    seen.step(75, 1, 100, [(64, 0)])
    seen.step(25, 1, 8, [(16, 0)])
    assert said(seen) == {"context tokens a sequence": (8, 0.25), "new tokens of a prompt": (16, 0.25)}


def test_a_step_that_computes_nothing_lies_nowhere():
    seen = watch()
    seen.step(60, 0, 0, [])
    assert seen.outside() == []


def test_the_tokens_of_a_step_are_prompts_and_decodes_together():
    seen = watch()
    seen.step(10, 48, 4800, [(1001, 0), (1000, 0)])
    assert said(seen) == {"tokens in a step": (2049, 1.0)}


@given(
    rows=st.integers(1, 200),
    context=st.integers(1, 1200),
    more=st.integers(0, 199),
    steps=st.integers(1, 1500),
    first=st.integers(1, 1000),
    rise=st.integers(0, 50),
)
def test_a_leap_counts_as_its_steps_one_by_one(rows, context, more, steps, first, rise):
    context = rows * context + more % rows
    ramp, leaping, stepping = Ramp(first, rise), watch(), watch()
    leaping.leap(ramp.until, rows, context, steps)
    for step in range(steps):
        stepping.step(ramp.step(step), rows, context + rows * step, [])
    ours, theirs = said(leaping), said(stepping)
    assert ours.keys() == theirs.keys()
    for what, (value, share) in ours.items():
        assert share == theirs[what][1]
        assert value == pytest.approx(theirs[what][0], rel=1e-12)


def test_the_narrowest_family_names_the_span():
    assert narrowest([Span("linear", 1, 8192), Span("moe", 4, 2048)]) == Span("moe", 4, 2048)
    assert narrowest([]) is None


def test_a_person_reads_which_kernel_how_far_and_how_long():
    assert str(Outside(Span("decode_attention:bf16", 2, 65536), "context tokens a sequence", 131072, 0.345)) == (
        "decode attention in bf16, fitted to context tokens a sequence of 2 to 65,536; here up to 130,000 part of the "
        "time, 2 times as far"
    )
    assert str(Outside(Span("linear:bf16", 1024, 16384), "outputs", 151936, None)) == (
        "linear layers in bf16, fitted to outputs of 1,024 to 16,384; here 151,936 in every step, 9.3 times as far"
    )
    assert str(Outside(Span("prefill_attention:by_head", 0, 0), "cached tokens", 512, 0.01)) == (
        "prefill attention by head, fitted to cached tokens of 0 alone; here up to 510 seldom"
    )
    assert "here down to 8 most of the time" in str(Outside(Span("decode", 16, 99), "context", 8, 0.9))


def test_runs_that_differ_by_a_percent_say_the_same():
    span = Span("linear:bf16", 1, 2048)
    assert len({str(Outside(span, "tokens in a step", 4001 + part, part / 100)) for part in range(6, 50)}) == 1


def of(name, card="H100-SXM", **layout):
    shapes = Shapes(model(name), Layout(**layout))
    return fitted_range(shipped(), card, shapes, "decode_attention:bf16", "prefill_attention:by_head")


def test_a_head_of_attention_that_nobody_measured_is_outside_in_every_step():
    (found,) = [one for one in of("gemma-3-4b").shapes if one.what == "head dim" and "decode" in one.span.family]
    assert (found.value, found.share) == (256, None)


def test_the_lm_head_of_a_large_vocabulary_is_the_furthest_matrix():
    (found,) = [one for one in of("llama-3.1-8b").shapes if one.what == "outputs"]
    assert found.value == 128256


def test_a_gpu_without_fits_has_the_range_of_those_that_lend_to_it():
    assert of("llama-3.1-8b", "H200-SXM").spans["context"].high == of("llama-3.1-8b").spans["context"].high


def test_all_reduce_bounds_the_tokens_of_a_step_where_gpus_share_it():
    alone, shared = of("llama-3.1-8b"), of("llama-3.1-8b", tensor_parallel=4)
    assert shared.spans["tokens"].high <= alone.spans["tokens"].high
