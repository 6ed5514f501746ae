"""Presets: lengths with the quantiles of their recordings, arrivals with the clustering of their process."""

import csv
import gzip
import json
import os
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from kvsim.errors import InputError
from kvsim.workload.lengths import Preset
from kvsim.workload.presets import arrival_presets, length_preset, length_presets
from kvsim.workload.presets.arrivals import preset_arrivals
from tests.workload.arrivals.dispersion import counts, own_idc

MANY = 400_000
VARIABLES = [
    (name, of) for name, entry in length_presets().items() for of in entry if of not in ("about", "source", "licence")
]
STATES = [name for name, entry in arrival_presets().items() if entry["process"] == "mmpp"]
DATA = os.environ.get("KVSIM_DATA")
RECORDED = {
    "azure-conv": ("azure_llm_2023/AzureLLMInferenceTrace_conv.first2600s.csv.gz", "ContextTokens", "GeneratedTokens"),
    "azure-code": ("azure_llm_2023/AzureLLMInferenceTrace_code.csv.gz", "ContextTokens", "GeneratedTokens"),
    "sharegpt-8k": ("lengths_vidur_etalon/sharegpt*.csv.gz", "num_prefill_tokens", "num_decode_tokens"),
    "summarisation-4k": ("lengths_vidur_etalon/arxiv*.csv.gz", "num_prefill_tokens", "num_decode_tokens"),
    "bwb-translation": ("lengths_vidur_etalon/bwb*.csv.gz", "num_prefill_tokens", "num_decode_tokens"),
    "burstgpt-chat": ("burstgpt/BurstGPT_1.first400.csv.gz", "Request tokens", "Response tokens"),
    "mooncake-conv": ("mooncake/conversation_trace.jsonl.gz", "input_length", "output_length"),
}


def test_every_preset_says_where_it_is_from():
    for entry in (*length_presets().values(), *arrival_presets().values()):
        assert all(entry[word] for word in ("about", "source", "licence"))


def test_the_presets_of_the_reference_are_there():
    named = "azure-conv azure-code mooncake-conv sharegpt-8k summarisation-4k bwb-translation burstgpt-chat"
    assert set(named.split()) < set(length_presets())
    assert {"servegen-m-large", "servegen-m-mid", "reasoning", "agentic-coding"} < set(length_presets())
    assert {"steady-chat", "bursty-code", "mooncake", "quiet-then-busy", "diurnal-large"} < set(arrival_presets())


class Evenly:
    """In place of a generator: uniform numbers without chance, so that quantiles come out without its noise."""

    def random(self, count):
        return (np.arange(count) + 0.5) / count


@pytest.mark.parametrize(("name", "of"), VARIABLES)
def test_quantiles_are_the_recordings(name, of):
    law = Preset(preset=name, of=of)
    drawn = law.draw(Evenly(), MANY) / (1000 if of == "think_s" else 1)
    recorded = law.recorded["percentiles"]
    # A token more or less is the rounding of a quantile between two lengths.
    for percent in (50, 95, 99):
        assert np.percentile(drawn, percent) == pytest.approx(recorded[percent], rel=0.01, abs=1)


@pytest.mark.parametrize(
    ("name", "of"), [(name, of) for name, of in VARIABLES if of in ("prompt_tokens", "output_tokens")]
)
def test_the_mean_is_the_recordings(name, of):
    law = Preset(preset=name, of=of)
    # Beyond the 99th percentile two lines stand for what was seen.
    assert law.draw(Evenly(), MANY).mean() == pytest.approx(law.recorded["mean"], rel=0.05)


def test_what_a_generator_draws_is_that_law():
    law = Preset(preset="azure-code", of="prompt_tokens")
    drawn = law.draw(np.random.default_rng(5), MANY)
    for percent in (50, 95, 99):
        assert np.percentile(drawn, percent) == pytest.approx(law.recorded["percentiles"][percent], rel=0.05)


@pytest.mark.oracle
@pytest.mark.skipif(not DATA, reason="KVSIM_DATA is not set")
@pytest.mark.parametrize("name", list(RECORDED))
def test_lengths_have_the_quantiles_of_the_file_itself(name):
    pattern, *columns = RECORDED[name]
    [path] = (Path(DATA) / "traces").glob(pattern)
    with gzip.open(path, "rt", encoding="utf-8-sig") as file:
        rows = [json.loads(line) for line in file] if ".jsonl" in path.name else list(csv.DictReader(file))
    for of, column in zip(("prompt_tokens", "output_tokens"), columns, strict=True):
        values = np.array([float(row[column]) for row in rows])
        values = values[values > 0]
        drawn = Preset(preset=name, of=of).draw(Evenly(), MANY)
        for percent in (50, 95, 99):
            assert np.percentile(drawn, percent) == pytest.approx(np.percentile(values, percent), rel=0.05, abs=1)


@pytest.mark.parametrize("name", STATES)
def test_arrivals_have_the_clustering_of_their_own_process(name):
    process = preset_arrivals(name)
    windows = max(4_000, round(20 * sum(process.sojourns_s) / 60) * 20)
    found = counts(process, 60, windows)
    assert found.var() / found.mean() == pytest.approx(own_idc(process, 60), rel=0.2)


def test_code_completion_clusters_as_measured():
    found = counts(preset_arrivals("bursty-code"), 60, 5_000)
    assert found.var() / found.mean() == pytest.approx(161, rel=0.1)
    gaps = np.diff(list(islice(preset_arrivals("bursty-code").arrivals_ps(np.random.default_rng(2)), 60_000)))
    assert gaps.std() / gaps.mean() > 8.8  # of three states; measured 13.2


def test_without_a_rate_a_preset_has_its_own_and_with_one_that():
    assert preset_arrivals("bursty-code").rate == pytest.approx(2.566, rel=0.01)
    assert preset_arrivals("steady-chat").rate == pytest.approx(5.9, rel=0.02)
    assert preset_arrivals("diurnal-large").rate == 194.82
    for name in arrival_presets():
        times = list(islice(preset_arrivals(name, 40.0).arrivals_ps(np.random.default_rng(0)), 10))
        assert len(times) == 10
        assert preset_arrivals(name, 40.0).rate == 40


def test_an_hour_of_the_diurnal_preset_is_as_busy_as_recorded():
    found = counts(preset_arrivals("diurnal-large", 2.0), 3600, 24 * 6).reshape(6, 24).sum(axis=0)
    profile = np.array(arrival_presets()["diurnal-large"]["profile"])
    expected = 2.0 * 3600 * 6 * profile / profile.mean()
    assert np.abs(found - expected).max() < 4.5 * expected.max() ** 0.5


def test_ten_clients_send_most_of_the_client_mix():
    # ServeGen: the ten largest of 162 send 63 %.
    assert sum(preset_arrivals("client-mix").shares[:10]) == pytest.approx(0.631, abs=0.005)


def test_the_second_form_is_the_fitted_mixture():
    law = Preset(preset="mooncake-conv", of="output_tokens", form="lognormals")
    drawn = law.draw(np.random.default_rng(0), MANY)
    recorded = length_preset("mooncake-conv")["output_tokens"]["percentiles"]
    # Fitted with a Kolmogorov-Smirnov distance of 0.011.
    distance = max(abs(np.mean(drawn <= value) - percent / 100) for percent, value in enumerate(recorded))
    assert distance < 0.02
    assert (drawn.min(), drawn.max()) == (1, 2000)


def test_a_name_that_is_not_there_is_answered_with_near_ones():
    with pytest.raises(InputError, match="unknown length preset 'azure-con'; did you mean azure-conv"):
        length_preset("azure-con")
    with pytest.raises(InputError, match="unknown arrival preset"):
        preset_arrivals("busy")
    with pytest.raises(ValueError, match=r"^arrivals: preset diurnal-large takes profile; got scale"):
        preset_arrivals("diurnal-large", 5.0, scale="count")
