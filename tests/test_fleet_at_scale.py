"""The report of fleets at scale says what its files say, and can be made again."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
REPORT = ROOT / "reports" / "fleet-at-scale"
COSTS = sorted(REPORT.glob("*/cost.json"))


@pytest.fixture(scope="module")
def told():
    """The module that writes the README."""
    spec = importlib.util.spec_from_file_location("fleet_at_scale_told", REPORT / "told.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_figure_of_the_readme_is_that_of_its_files(told):
    assert (REPORT / "README.md").read_text() == told.readme(REPORT)


@pytest.mark.parametrize("cost", COSTS, ids=lambda path: path.parent.name)
def test_a_cost_is_that_of_the_summary_beside_it(cost):
    took, summary = json.loads(cost.read_text()), json.loads((cost.parent / "summary.json").read_text())
    metrics = summary["metrics"]
    assert took["requests"] == metrics["arrived"] == metrics["finished"]
    assert sum(row["finished"] for row in summary["replicas"]) == metrics["finished"]
    assert all(one["cpu_s"] > 0 and one["peak_memory_bytes"] > 0 for one in took["processes"].values())


def test_there_is_a_cost_for_each_run_of_the_report():
    assert {path.parent.name for path in COSTS} == {"least-kv", "prefix-aware", "round-robin-1000"}


@pytest.mark.slow
def test_the_report_can_be_made_again_at_a_small_size(tmp_path):
    pytest.importorskip("distributed", reason="needs the extra `cluster`")
    again = tmp_path / "reports" / "fleet-at-scale"
    again.mkdir(parents=True)
    for name in ("rerun.py", "told.py"):
        shutil.copy(REPORT / name, again)
    shutil.copytree(ROOT / "scenarios", tmp_path / "scenarios")
    subprocess.run([sys.executable, str(again / "rerun.py"), "--set", "workload.requests=3000"], check=True)
    costs = [json.loads(path.read_text()) for path in again.glob("*/cost.json")]
    assert [cost["requests"] for cost in costs] == [3000] * 3
    assert "looks at all replicas" in (again / "README.md").read_text()
    assert [piece["replicas"] for piece in json.loads((again / "moved.json").read_text())["pieces"]] == [1, 40, 40]
