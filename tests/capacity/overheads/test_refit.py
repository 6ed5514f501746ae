"""The rule without a model's own logs: other models' peaks shape it, its own do not."""

import pytest

from kvsim.capacity.overheads import refit
from kvsim.capacity.overheads.estimate import stated_rule
from kvsim.capacity.overheads.refit import rule_without


@pytest.fixture
def peaks(monkeypatch):
    """The logged peaks, to be changed at will."""
    found = [dict(start) for start in refit._peaks()]
    monkeypatch.setattr(refit, "_peaks", lambda: found)
    rule_without.cache_clear()
    yield found
    rule_without.cache_clear()


def test_without_nobody_the_rule_is_the_stated_one():
    assert rule_without("") == stated_rule()


def test_a_models_own_peaks_do_not_move_its_rule_and_move_the_others(peaks):
    own, others = rule_without("qwen3-30b-a3b"), rule_without("llama-3.1-8b")
    for start in peaks:
        if start["model"] == "qwen3-30b-a3b":
            start["activation_gib"] *= 3
    rule_without.cache_clear()
    assert rule_without("qwen3-30b-a3b") == own
    assert rule_without("llama-3.1-8b").expert_workspaces > 2 * others.expert_workspaces


def test_the_counted_numbers_are_found_again_without_any_one_model(peaks):
    for name in {start["model"] for start in peaks}:
        rule = rule_without(name)
        assert rule.logit_bytes["sort"] == pytest.approx(38, rel=0.02)
        assert rule.logit_bytes["pivot"] == pytest.approx(14, rel=0.01)
        assert rule.library_gib == pytest.approx(0.046, abs=0.005)


def test_a_number_that_only_one_models_peaks_depend_on_stays_as_stated_without_it():
    # Its logits are smaller than its MLP; everyone else's are larger.
    assert rule_without("mistral-small-3.1-24b").hidden_copies == stated_rule().hidden_copies


def test_the_numbers_of_other_engines_are_left_alone():
    assert rule_without("llama-3.1-8b").logit_bytes["fused"] == stated_rule().logit_bytes["fused"]
