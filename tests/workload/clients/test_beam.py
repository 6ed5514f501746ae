"""Beam search as the memory sees it: who is dropped when, and who goes on in its place."""

import numpy as np
import pytest

from kvsim.workload.clients.beam import Beam


def replacements(turnover, candidates=4, output_tokens=500, seed=1):
    return Beam(turnover=turnover).replacements(np.random.default_rng(seed), candidates, output_tokens)


def test_nobody_is_dropped_without_turnover_and_all_but_the_best_with_a_whole_one():
    assert replacements(0.0) == ()
    every = replacements(1.0, candidates=3, output_tokens=4)
    assert [(emitted, dropped) for emitted, dropped, _ in every] == [(2, 1), (2, 2), (3, 1), (3, 2)]


def test_the_best_is_never_dropped_and_nobody_goes_on_in_its_own_place():
    found = replacements(0.3)
    assert all(dropped != 0 and kept != dropped for _, dropped, kept in found)
    assert {kept for _, _, kept in found} == {0, 1, 2, 3}


def test_a_candidate_is_dropped_as_often_as_the_turnover_says():
    found = replacements(0.2, candidates=5, output_tokens=5002)
    assert len(found) == pytest.approx(0.2 * 4 * 5000, rel=0.05)


def test_replacements_come_in_order_of_time_and_before_the_last_token():
    emitted = [at for at, _, _ in replacements(0.5, output_tokens=60)]
    assert emitted == sorted(emitted)
    assert min(emitted) >= 2
    assert max(emitted) <= 59


@pytest.mark.parametrize("output_tokens", [1, 2])
def test_an_output_of_two_tokens_or_less_has_none(output_tokens):
    assert replacements(1.0, output_tokens=output_tokens) == ()


@pytest.mark.parametrize("turnover", [-0.1, 1.1, float("nan")])
def test_a_turnover_is_a_share(turnover):
    with pytest.raises(ValueError, match="turnover"):
        Beam(turnover=turnover)
