"""The page on the validity envelope says what the data files say, and the committed one is that of today."""

import json
import re
from pathlib import Path

import pytest

from kvsim.capacity.answers.expected import error_table
from kvsim.catalog.engines import profiles
from kvsim.cli.main import main
from kvsim.reporting.validity.page import validity_page
from kvsim.timing.expected import error_classes

ROOT = Path(__file__).parents[3]
DATA = ROOT / "kvsim" / "timing" / "data"


@pytest.fixture(scope="module")
def page():
    return validity_page()


def section(page, title):
    """The lines of the table under a heading."""
    part = page.split(f"# {title}\n", 1)[1]
    lines = [line for line in part[: part.find("\n#")].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_committed_page_is_the_one_that_is_written_today(page):
    assert (ROOT / "reports" / "validity" / "README.md").read_text("utf-8") == page


def test_make_reports_writes_it():
    assert "kvsim validate --envelope reports/validity/README.md" in (ROOT / "Makefile").read_text("utf-8")


def test_every_table_has_as_many_cells_in_each_row(page):
    tables = re.findall(r"(?:^\|.*\n)+", page, flags=re.MULTILINE)
    assert len(tables) >= 11
    for table in tables:
        widths = {line.replace(r"\|", "").count("|") for line in table.splitlines()}
        assert len(widths) == 1


def test_every_class_of_served_runs_has_a_row_with_its_errors(page):
    for timing, title in (("calibrated", "Step times `calibrated`"),
                          ("roofline", "Step times `roofline`, from data sheets: the default")):  # fmt: skip
        rows = section(page, title)[2:]
        classes = [one for one in error_classes() if one.timing == timing]
        assert len(rows) == len(classes) > 20
        for row, one in zip(rows, classes, strict=True):
            assert row[4] == f"{int(one.tpot['n']):,}"
            assert float(row[5].rstrip(" %")) == pytest.approx(100 * one.tpot["median"], rel=0.06, abs=0.5)
            assert (row[8] == "") == (one.ttft is None)


def test_every_fit_has_a_row_with_its_range_its_error_and_its_source(page):
    calibrations = json.loads((DATA / "calibrations.json").read_text("utf-8"))["gpus"]
    found = 0
    for title, family in (("Decode attention", "decode_attention"), ("Prefill attention", "prefill_attention"),
                          ("Linear layers", "linear"), ("Mixture of experts", "moe"),
                          ("All-reduce", "all_reduce")):  # fmt: skip
        heads, _, *rows = section(page, title)
        for row in rows:
            told = dict(zip(heads, row, strict=True))
            fit = calibrations[told["GPU"]][f"{family}:{told['kind']}".replace("\\", "")]
            assert told["rows"] == f"{fit['rows']:,}"
            assert told["source"].replace("\\", "") == fit["source"]
            assert float(told["median"].rstrip(" %")) == pytest.approx(100 * fit["median_abs_error"], rel=0.06)
            for key, (low, high) in fit["fitted_range"].items():
                ends = [float(end.replace(",", "")) for end in told[key.replace("_", " ")].split(" to ")]
                assert (ends[0], ends[-1]) == pytest.approx((low, high), rel=0.01)
            found += 1
    assert found == sum(len(own) for own in calibrations.values())


def test_the_errors_of_planned_pools_are_those_of_the_check(page):
    classes = error_table()["classes"]
    rows = section(page, "KV memory planned")[2:]
    assert [row[1] for row in rows] == [str(classes[name]["n"]) for name in ("given", "roomy", "tight")]
    assert float(rows[2][3].rstrip(" %")) == pytest.approx(100 * classes["tight"]["p90"], rel=0.03)


def test_every_engine_every_stated_efficiency_and_every_profile_is_there(page):
    engines = json.loads((DATA / "engines.json").read_text("utf-8"))["engines"]
    assert [row[0] for row in section(page, "Engines: what a step costs beside its kernels")[2:]] == list(engines)
    stated = json.loads((DATA / "roofline.json").read_text("utf-8"))
    rows = section(page, "The default: data sheets and stated efficiencies")[2:]
    assert [row[0].replace(" ", "_") for row in rows] == list(stated)
    assert [float(row[1]) for row in rows] == pytest.approx([one["value"] for one in stated.values()], rel=1e-4)
    assert all(row[3] for row in rows)
    for profile in profiles():
        assert f"**{profile.name}**" in page


def test_the_page_says_what_not_to_use_kvsim_for_with_the_numbers_of_the_tables(page):
    part = page.split("## What not to use kvsim for\n")[1].split("\n#")[0]
    assert part.count("\n- **") >= 8
    assert "{" not in page
    ttft = next(one for one in error_classes() if (one.timing, one.kind, one.gpu, one.engine) == (
        "roofline", "dense", None, "vllm")).ttft["median"]  # fmt: skip
    assert f"they are off by {100 * ttft:.0f} % in the median" in part


def test_the_verb_writes_the_page_and_takes_nothing_else_with_it(tmp_path, capsys, page):
    assert main(["validate", "--envelope", str(tmp_path / "new" / "page.md")]) == 0
    assert capsys.readouterr().out == f"written to {tmp_path / 'new' / 'page.md'}\n"
    assert (tmp_path / "new" / "page.md").read_text("utf-8") == page
    assert main(["validate", "--envelope", str(tmp_path / "other.md"), "--json"]) == 2
    assert "--envelope: the page is of what comes with kvsim; leave --json out" in capsys.readouterr().err
    assert not (tmp_path / "other.md").exists()
