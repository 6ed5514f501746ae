"""What clients decide: max_tokens and patience."""

from itertools import islice

import numpy as np
import pytest

from kvsim.workload.clients.limits import Patience, max_tokens_rule


def test_the_models_limit_is_left_to_the_engine():
    rule = max_tokens_rule("model_limit")
    assert rule.of(10) is None
    assert rule.describe() == {"max_tokens": "model_limit", "max_tokens_provenance": "client"}


def test_a_fixed_limit_does_not_depend_on_the_output():
    rule = max_tokens_rule(512)
    assert [rule.of(1), rule.of(9_999)] == [512, 512]
    assert rule.describe() == {"max_tokens": 512, "max_tokens_provenance": "client"}


def test_a_multiple_of_the_true_output_rounds_up_and_is_labelled_oracle():
    rule = max_tokens_rule({"times_output": 1.5})
    assert [rule.of(n) for n in (1, 2, 3, 100)] == [2, 3, 5, 150]
    assert rule.describe() == {"max_tokens": {"times_output": 1.5}, "max_tokens_provenance": "oracle"}


def test_a_multiple_is_the_decimal_that_was_written():
    assert max_tokens_rule({"times_output": 1.1}).of(10) == 11
    assert max_tokens_rule({"times_output": 0.001}).of(10) == 1


def test_a_rule_is_taken_as_it_is():
    rule = max_tokens_rule(512)
    assert max_tokens_rule(rule) is rule


@pytest.mark.parametrize(
    "spec", [0, -1, 2**53 + 1, True, 1.5, "max", None, {"times": 2}, {"times_output": 1, "x": 2}, {}]
)
def test_a_rule_that_is_none_is_refused_by_name(spec):
    with pytest.raises(ValueError, match=r"^max_tokens: "):
        max_tokens_rule(spec)


@pytest.mark.parametrize("factor", [0, -1, 1_000_001, 10**400, float("nan"), float("inf"), "2"])
def test_a_factor_that_is_no_factor_is_refused_by_name(factor):
    with pytest.raises(ValueError, match=r"^times_output: "):
        max_tokens_rule({"times_output": factor})


def patiences(share, chunk=1024, count=2_000):
    return list(islice(Patience(after_s=1.5, share=share).patiences_ps(np.random.default_rng(0), chunk), count))


def test_the_share_of_clients_that_give_up_is_the_share_asked():
    got = patiences(0.25)
    assert set(got) == {None, 1_500_000_000_000}
    assert 2_000 - got.count(None) == pytest.approx(500, abs=60)


def test_all_or_none_may_give_up():
    assert set(patiences(1)) == {1_500_000_000_000}
    assert set(patiences(0)) == {None}


def test_who_gives_up_does_not_depend_on_the_chunk():
    assert patiences(0.25, chunk=7) == patiences(0.25, chunk=1024)


def test_a_larger_share_keeps_those_who_gave_up_before():
    fewer, more = patiences(0.1), patiences(0.3)
    assert all(b is not None for a, b in zip(fewer, more, strict=True) if a is not None)


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"after_s": 0}, "after_s"),
        ({"after_s": float("nan")}, "after_s"),
        ({"after_s": 1, "share": 1.1}, "share"),
        ({"after_s": 1, "share": -0.1}, "share"),
        ({"after_s": 1, "share": float("nan")}, "share"),
    ],
)
def test_a_patience_that_is_none_is_refused_by_name(given, argument):
    with pytest.raises(ValueError, match=f"^{argument}: "):
        Patience(**given)
