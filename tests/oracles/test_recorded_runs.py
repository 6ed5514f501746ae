"""Two recorded runs of a real vLLM 0.19, replayed from model, card and flags; nothing is fitted to them.

The goals are the project's own: mean TPOT within 8 %, mean E2E within 10 %; where the pool and its use are recorded
(RTX 4090), requests running while others wait within 5 % of 34.2 on average, and KV use within 5 points at a moment.
"""

import os
from functools import cache
from pathlib import Path

import pytest

from kvsim.study.recorded.session import compare_run

pytestmark = pytest.mark.oracle

SHIPPED = Path(__file__).parent / "data" / "runs"
CARDS = {"rtx4090": None, "rtxpro6000": "RTX PRO 6000"}
"""The card where META names none."""


@cache
def shipped():
    return compare_run(SHIPPED / "vllm_019_rtx4090_meta.json", [SHIPPED / "vllm_019_rtx4090_requests.csv"])


@cache
def whole(card):
    folder = os.environ.get("KVSIM_DATA")
    if not folder:
        pytest.skip("KVSIM_DATA names no folder of measurements")
    stem = Path(folder) / "measured" / f"vllm_run_{card}_llama-3.1-8b"
    return compare_run(Path(f"{stem}_meta.json"), [Path(f"{stem}_requests.csv")], gpu=CARDS[card])


RUNS = [shipped, *(lambda card=card: whole(card) for card in CARDS)]


@pytest.mark.parametrize("run", RUNS, ids=["rtx4090 as shipped", *CARDS])
def test_mean_tpot_is_within_8_percent_and_mean_e2e_within_10(run):
    found = run().comparison
    assert abs(found.row("tpot_s.mean").error) <= 0.08
    assert abs(found.row("e2e_s.mean").error) <= 0.10


@pytest.mark.parametrize("run", RUNS[:2], ids=["as shipped", "whole"])
def test_on_the_rtx_4090_as_many_run_while_others_wait_and_the_pool_is_as_full(run):
    found = run().comparison
    assert abs(found.row("running_queueing").error) <= 0.05
    assert found.row("kv_share").distance <= 0.05


def test_the_record_has_34_2_running_while_others_wait():
    assert whole("rtx4090").comparison.row("running_queueing").measured == pytest.approx(34.2, abs=0.05)


@pytest.mark.parametrize("run", RUNS, ids=["rtx4090 as shipped", *CARDS])
def test_all_requests_finish_with_as_many_tokens_as_were_recorded(run):
    found = run().comparison
    assert list(found.simulated.requests.output_tokens) == list(found.measured.requests.output_tokens)
    assert list(found.simulated.requests.prompt_tokens) == list(found.measured.requests.prompt_tokens)


@pytest.mark.parametrize("run", RUNS, ids=["rtx4090 as shipped", *CARDS])
def test_a_run_says_what_its_step_times_rest_on(run):
    found = run().result
    assert found.provenance["timing"].startswith("published copies and matrix products of the card")
