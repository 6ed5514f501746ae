"""Fits to recorded traces against those that another program made of the same files (`fits.json`), and their distances.

Families of one part have one likelihood, so both should be equally far from the sample; a mixture's EM ends where it
began to look, so ours may be another, and must be about as near.
"""

import json
import os
from functools import cache
from pathlib import Path

import pytest

from kvsim.workload.fit.workload import fit_workload
from kvsim.workload.statistics.inspect import inspect
from kvsim.workload.trace.recording import Recording

pytestmark = pytest.mark.oracle

TRACES = {
    "azure_code_2023": "azure_llm_2023/AzureLLMInferenceTrace_code.csv.gz",
    "azure_conv_2023": "azure_llm_2023/AzureLLMInferenceTrace_conv.first2600s.csv.gz",
    "mooncake_conversation": "mooncake/conversation_trace.jsonl.gz",
    "sharegpt8k": "lengths_vidur_etalon/sharegpt_8k_filtered_stats_llama2_tokenizer.csv.gz",
    "burstgpt1_slice": "burstgpt/BurstGPT_1.first400.csv.gz",
}
FAMILIES = ("exponential", "lognormal", "gamma", "weibull")


@cache
def traces():
    folder = os.environ.get("KVSIM_DATA")
    if not folder:
        pytest.skip("KVSIM_DATA names no folder of recorded traces")
    return Path(folder, "traces")


@cache
def fit(trace):
    return fit_workload(inspect(Recording(traces() / TRACES[trace])))


@cache
def published():
    return json.loads((traces() / "fits.json").read_text())


@pytest.mark.parametrize("what", ["prompt", "output"])
@pytest.mark.parametrize("trace", TRACES)
def test_families_are_as_far_from_the_lengths_as_another_program_found(trace, what):
    theirs = published()[f"{trace}.{what}"]["fits"]
    ours = {law.law: law.ks for law in getattr(fit(trace), what)}
    for family in FAMILIES:
        assert ours[family] == pytest.approx(theirs[family]["ks"], abs=0.001)
    assert ours["mixture"] <= theirs["lognormal_mixture"]["ks"] + 0.005
    assert ours["quantiles"] < 0.01 or trace == "burstgpt1_slice"


def test_the_grid_is_the_published_one():
    for what in ("prompt", "output"):
        (grid,) = (
            law.parameters["quantiles"] for law in getattr(fit("azure_code_2023"), what) if law.law == "quantiles"
        )
        assert grid == pytest.approx(published()[f"azure_code_2023.{what}"]["quantile_grid_0_100"], abs=0.01)


def test_the_bursty_code_trace_has_the_published_two_rates_and_sojourns():
    (ours,) = (process for process in fit("azure_code_2023").arrivals if process.process == "mmpp")
    theirs = published()["arrival_models"]["azure_code_2023"]["mmpp2"]
    assert ours.parameters["rates_per_s"] == pytest.approx(theirs["rates_per_s"], rel=0.01)
    assert ours.parameters["sojourns_s"] == pytest.approx(theirs["mean_sojourn_s"], rel=0.01)


def test_mooncakes_bunches_are_poisson_once_they_are_spread():
    """Gamma of shape .984 there; the spreading is at random, so no closer than some percent."""
    fits = {process.process: process for process in fit("mooncake_conversation").arrivals}
    assert fits["gamma"].parameters["cv"] ** -2 == pytest.approx(0.984, abs=0.03)
    assert fit("mooncake_conversation").chosen["arrivals"] == "poisson"
