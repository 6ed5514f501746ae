"""The committed reports are what the scenarios give today (`make reports` rebuilds them)."""

import json
from pathlib import Path

import pytest

from kvsim.metrics.result import to_json
from kvsim.reporting.comparison import comparison_summary
from kvsim.scenario import load_all
from kvsim.study import compare

ROOT = Path(__file__).parents[1]
STUDIES = sorted(path.parent.name for path in (ROOT / "reports").glob("*/summary.json"))


def test_there_is_a_report():
    assert "azure-conversation" in STUDIES


@pytest.mark.parametrize("study", STUDIES)
def test_a_committed_report_is_what_its_scenario_gives(study):
    variants = load_all(ROOT / "scenarios" / f"{study}.yaml")
    results = compare([(variant.label, variant) for variant in variants])
    committed = json.loads((ROOT / "reports" / study / "summary.json").read_text("utf-8"))
    found = json.loads(to_json(comparison_summary(variants[0].name, results)))
    if variants[0].trace is None:
        # Traffic drawn from distributions is the same with the same numpy, which promises no more than that.
        for ours, theirs in zip(found["variants"], committed["variants"], strict=True):
            assert ours["provenance"] == theirs["provenance"]
            assert ours["metrics"]["mean_running"] == pytest.approx(theirs["metrics"]["mean_running"], rel=0.05)
    else:
        assert found == committed
