"""A run whose pool fills up, so that requests wait, are preempted and refused, in a folder as `kvsim run` leaves it."""

import pytest

from kvsim.metrics.result import to_json
from kvsim.metrics.tables import ParquetPieces
from kvsim.reporting.comparison import comparison_summary
from kvsim.reporting.run_folder import SUMMARY, folder_names
from kvsim.scenario import Scenario
from kvsim.study import run
from tests.fake_results import fake_result

SCENARIO = {
    "name": "small <b>&", "model": "llama-3.1-8b", "gpu": "RTX 4090",
    "engine": {"profile": "vllm@0.33", "max_num_seqs": 16, "max_model_len": 2048},
    "pool": {"blocks": 120}, "slo": {"ttft": "2s"},
    "workload": {
        "rate": "20/s", "requests": 60, "prefix": {"tokens": 48, "groups": 2, "theta": 1},
        "prompt_tokens": {"distribution": "uniform", "min": 60, "max": 2060},
        "output_tokens": {"distribution": "uniform", "min": 1, "max": 90},
        "mix": [{"tenant": "a", "max_tokens": 40}, {"tenant": "b|c", "weight": 2}],
    },
}  # fmt: skip


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The run folder."""
    where = tmp_path_factory.mktemp("exports") / "run"
    with ParquetPieces(where) as pieces:
        run(Scenario.from_dict(SCENARIO), pieces=pieces).save(where)
    return where


@pytest.fixture(scope="session")
def result():
    """The same run with its tables in memory."""
    return run(Scenario.from_dict(SCENARIO))


@pytest.fixture(scope="session")
def comparison(tmp_path_factory):
    """The folder of a comparison of two made-up runs."""
    where = tmp_path_factory.mktemp("exports") / "comparison"
    results = [fake_result("paged/1"), fake_result("reserve | max")]
    for result, name in zip(results, folder_names([one.name for one in results]), strict=True):
        result.save(where / name)
    (where / SUMMARY).write_text(to_json(comparison_summary("azure", results)), "utf-8")
    return where
