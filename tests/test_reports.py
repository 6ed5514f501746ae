"""The committed reports say what their scenarios give today (`make reports` makes them again)."""

import json
from importlib.metadata import PackageNotFoundError, version

import pytest

from kvsim.cli.main import main as kvsim
from kvsim.metrics.result import to_json
from kvsim.reporting.comparison import comparison_summary
from kvsim.reporting.question.answer import answered
from kvsim.reporting.question.numbers import numbers_of
from kvsim.scenario import load_all
from kvsim.study import compare
from reports.rebuild import RECORDS, ROOT, entries, index, kept, main, question, rebuild, shown

REPORTS = ROOT / "reports"
ENTRIES = entries()
OWN = {"README.md", "constraints.txt", "index.md", "rebuild.py", "reports.toml"}
OTHERS = {"validity", "fleet-at-scale"}
"""Folders that answer no question of a scenario, and are made otherwise."""
MOST_PNG_BYTES = 300_000
MOST_PAGE_BYTES = 3_000_000

COMPARED = [name for name, entry in ENTRIES.items() if entry["commands"][0].startswith("kvsim report")]
SWEPT = [name for name, entry in ENTRIES.items() if entry["commands"][0].startswith("kvsim sweep")]
CHEAPEST = {"block-size": -1}
"""Which point of a sweep takes the least time, where it is not the first."""
QUICK = ["azure-conversation", "azure-code"]
"""Comparisons that take about a second."""


def committed(name):
    return json.loads(next(REPORTS / name / file for file in RECORDS if (REPORTS / name / file).exists()).read_text())


def pinned():
    lines = (REPORTS / "constraints.txt").read_text("utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def other_versions():
    """The packages that are here in another version than the reports were made under."""
    found = []
    for package, known in pinned().items():
        try:
            here = version(package)
        except PackageNotFoundError:
            continue
        if here != known:
            found.append(f"{package} {here}, not {known}")
    return found


def drawn_elsewhere():
    """Random streams are those of another numpy."""
    return any(one.startswith("numpy ") for one in other_versions())


def test_every_folder_is_listed_and_every_report_is_there():
    assert {path.name for path in REPORTS.iterdir() if path.name != "__pycache__"} == set(ENTRIES) | OWN | OTHERS


@pytest.mark.parametrize("name", ENTRIES)
def test_a_folder_holds_a_page_its_numbers_and_its_figures_and_nothing_else(name):
    entry = ENTRIES[name]
    found = {str(path.relative_to(REPORTS / name)) for path in (REPORTS / name).rglob("*") if path.is_file()}
    numbers = found & set(RECORDS)
    assert len(numbers) == 1
    assert found == {"README.md", *numbers, *kept(entry)}
    for file in found:
        size = (REPORTS / name / file).stat().st_size
        assert size < (MOST_PNG_BYTES if file.endswith(".png") else MOST_PAGE_BYTES), file


@pytest.mark.parametrize("name", ENTRIES)
def test_a_page_asks_its_question_and_answers_with_the_numbers_beside_it(name):
    asked = question(ENTRIES[name])
    assert "{" in asked.answer
    title, answer = [line for line in (REPORTS / name / "README.md").read_text("utf-8").splitlines() if line][:2]
    assert title == f"# {asked.question}"
    assert answer == f"**{answered(asked.answer, numbers_of(committed(name)))}**"
    assert any(digit in answer for digit in "0123456789")


def test_the_index_has_every_question_and_its_picture():
    assert (REPORTS / "README.md").read_text("utf-8") == index(REPORTS, ENTRIES)
    for name, entry in ENTRIES.items():
        assert f"]({name}/{shown(entry)[0]})" in index(REPORTS, ENTRIES)


def test_every_package_that_kvsim_needs_is_pinned():
    import tomllib

    needed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    assert {name.partition(">=")[0].replace(".", "-") for name in needed} <= set(pinned())


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in COMPARED]
)
def test_a_comparison_gives_the_committed_numbers(name):
    variants = load_all(ROOT / ENTRIES[name]["scenario"])
    results = compare([(variant.label, variant) for variant in variants])
    found = json.loads(to_json(comparison_summary(variants[0].name, results)))
    assert_equal(found, committed(name), drawn=variants[0].trace is None)


@pytest.mark.parametrize("name", SWEPT)
def test_a_point_of_a_sweep_gives_the_committed_numbers(name, capsys):
    command = ENTRIES[name]["commands"][0].split()[1:]
    at = command.index("--grid") + 1
    key, _, values = command[at].partition("=")
    command[at] = f"{key}={values.split(',')[CHEAPEST.get(name, 0)]}"
    command[1] = str(ROOT / command[1])
    assert kvsim([*command, "--jobs", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["points"]
    swept = found[0]["changes"]
    there = [point for point in committed(name)["points"] if point["changes"] == swept]
    keys = ("variant", "changes", "metrics")
    assert_equal([{key: one[key] for key in keys} for one in found], [{k: one[k] for k in keys} for one in there])


@pytest.mark.slow
def test_the_cliff_gives_the_committed_numbers(capsys):
    assert (
        kvsim(["plan", str(ROOT / ENTRIES["cliff"]["scenario"]), "--where-is-the-cliff", "--jobs", "1", "--json"]) == 0
    )
    found, there = json.loads(capsys.readouterr().out), committed("cliff")
    if drawn_elsewhere():
        assert found["knee_per_s"] == pytest.approx(there["knee_per_s"], rel=0.1)
    else:
        assert found == there


SMALL = {
    "question": "How many wait?",
    "answer": "{2/s: preemptions} are preempted, {2/s: ttft_s.p50 / 1/s: ttft_s.p50} times as long.",
    "commands": [
        "kvsim sweep scenarios/cliff.yaml --set workload.requests=20 --grid workload.rate=1/s,2/s "
        "--metrics ttft_s.p50,preemptions"
    ],
    "figures": {"sweep": "TTFT over the rate."},
}


def test_a_report_made_twice_is_the_same_bytes(tmp_path):
    once, again = (rebuild("small", SMALL, tmp_path / place) for place in ("once", "again"))
    files = sorted(path.name for path in once.iterdir())
    assert files == ["README.md", "summary.json", "sweep.png"]
    assert all((once / file).read_bytes() == (again / file).read_bytes() for file in files)
    assert (once / "README.md").read_text("utf-8").startswith("# How many wait?\n\n**0 are preempted, ")


def test_a_command_that_fails_names_its_report(tmp_path):
    with pytest.raises(SystemExit, match=r"small: `kvsim run nothing\.yaml` ended with 2"):
        rebuild("small", {**SMALL, "commands": ["kvsim run nothing.yaml"]}, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, entry in ENTRIES.items() if "data" not in entry])
def test_a_report_made_again_has_the_committed_bytes(name, tmp_path):
    if other_versions():
        pytest.skip(f"reports/constraints.txt: {'; '.join(other_versions())}")
    made = rebuild(name, ENTRIES[name], tmp_path)
    files = sorted(path.relative_to(made) for path in made.rglob("*") if path.is_file())
    assert [file for file in files if (made / file).read_bytes() != (REPORTS / name / file).read_bytes()] == []


def test_a_report_that_is_not_listed_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["nothing"])
    assert "nothing is not listed; there are pagedattention-fig2" in capsys.readouterr().err


def assert_equal(found, there, drawn=True):
    """Traffic drawn from distributions is the same with the same numpy, which promises no more than that."""
    if drawn and drawn_elsewhere():
        assert_close(found, there)
    else:
        assert found == there


def assert_close(found, there):
    for ours, theirs in zip(runs(found), runs(there), strict=True):
        assert ours == pytest.approx(theirs, rel=0.05)


def runs(record):
    points = record["variants"] if isinstance(record, dict) else record
    return [one["metrics"].get("output_tokens_per_s") or one["metrics"].get("mean_running") for one in points]
