"""Every number of a run as CSV, and its table as Markdown."""

import csv
import io

import pytest

from kvsim.cli.main import main
from kvsim.errors import InputError
from kvsim.metrics.columns import COLUMNS
from kvsim.metrics.result import Result
from kvsim.reporting.comparison import comparison_table
from kvsim.reporting.exports import EXPORTS, Options, read_source
from kvsim.reporting.exports.markdown import escaped


def files_of(form, folder):
    return {name: "".join(text) for name, text in EXPORTS[form].files(read_source(folder), Options())}


def test_every_table_is_a_csv_with_the_columns_and_values_that_it_has(folder, result):
    written = files_of("csv", folder)
    assert set(written) == {"summary.csv", *(f"{table}.csv" for table in COLUMNS)}
    for table, columns in COLUMNS.items():
        head, *rows = csv.reader(io.StringIO(written[f"{table}.csv"]))
        assert head == list(columns)
        ours = getattr(result, table)
        assert len(rows) == len(ours)
        for name, cells in zip(head, zip(*rows, strict=True), strict=True):
            told = [cell if columns[name] == "string" else float(cell) for cell in cells if cell]
            assert told == ours[name].dropna().tolist()


def test_the_summary_has_a_row_for_each_number_and_a_column_for_each_run(comparison):
    rows = list(csv.reader(io.StringIO(files_of("csv", comparison)["summary.csv"])))
    assert rows[0] == ["metric", "paged/1", "reserve | max"]
    numbers = {row[0]: row[1:] for row in rows[1:]}
    metrics = Result.load(comparison / "paged-1").metrics
    assert numbers["ttft_s.p99"] == [repr(metrics["ttft_s"]["p99"])] * 2
    assert numbers["mean_share.used"][0] == repr(metrics["mean_share"]["used"])
    assert numbers["window_s.1"] == ["90.0", "90.0"]
    assert numbers["hit_rate"] == ["", ""]


def test_a_comparison_has_its_tables_in_a_folder_for_each_variant(comparison, tmp_path, capsys):
    assert main(["export", str(comparison), "--to", "csv", "-o", str(tmp_path / "out")]) == 0
    assert "11 files written to" in capsys.readouterr().out
    assert {path.parent.name for path in (tmp_path / "out").glob("*/steps.csv")} == {"paged-1", "reserve-max"}


def test_markdown_has_every_row_of_the_table_and_what_is_not_modelled(comparison):
    [text] = files_of("markdown", comparison).values()
    results = [Result.load(comparison / name) for name in ("paged-1", "reserve-max")]
    lines = text.splitlines()
    table = [line for line in lines if line.startswith("|")]
    wanted = comparison_table(results)
    assert len(table) == 2 + sum(1 + len(group.rows) for group in wanted)
    assert {line.replace(r"\|", "").count("|") for line in table} == {5}
    assert r"reserve \| max" in table[0]
    assert "| TTFT | s | 0.56 / 2.45 | 0.56 / 2.45 |" in table
    assert "- small blocks come free" in lines
    assert any(line.startswith("- expected error: TPOT 8 % median") for line in lines)


def test_a_hostile_name_stays_text():
    assert escaped("<script>alert(1)</script> | `x` *y*\nz") == (r"\<script\>alert(1)\</script\> \| \`x\` \*y\* z")
    assert escaped("$x^2$") == r"\$x^2\$"  # a formula on some code hosts


def test_the_registry_and_the_command_line_know_the_same_forms():
    from kvsim.cli.reports.export import FORMS

    assert tuple(EXPORTS) == FORMS
    assert all(export.name == name for name, export in EXPORTS.items())


@pytest.mark.parametrize("form", ["chrome-trace", "prometheus", "grafana", "markdown"])
def test_a_file_goes_to_standard_output_or_whole_to_its_place_the_same_each_time(form, folder, tmp_path, capsys):
    assert main(["export", str(folder), "--to", form]) == 0
    printed = capsys.readouterr().out
    assert main(["export", str(folder), "--to", form, "-o", str(tmp_path / "new" / "file")]) == 0
    assert capsys.readouterr().out == f"written to {tmp_path / 'new' / 'file'}\n"
    assert (tmp_path / "new" / "file").read_text() == printed
    assert len(printed) > 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "--to", "csv", "-o", "out"], "nowhere: holds no summary.json; name a folder that `kvsim run -o"),
        (["RUN", "--to", "csv"], "--to csv: is a folder of files; name it with -o DIR"),
        (["RUN", "--to", "markdown", "--every", "5s"], "--every: --to markdown shows the whole run; leave it out, or"),
        (["RUN", "--to", "grafana", "-o", "."], "-o .: is no file but a folder or a device; name a file, new or old"),
    ],
)
def test_what_is_wrong_is_said_with_what_would_be_right(arguments, message, folder, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["export", *(str(folder) if one == "RUN" else one for one in arguments)]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_an_older_version_is_refused_with_the_file_and_the_column(folder, tmp_path):
    import shutil

    import pyarrow.parquet as pq

    shutil.copytree(folder, tmp_path / "run")
    path = tmp_path / "run" / "preemptions.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["resumed_s"]), path)
    with pytest.raises(InputError, match=r"preemptions.parquet: has no column resumed_s, as an older version"):
        read_source(tmp_path / "run")
    path.write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"preemptions.parquet: is not a Parquet file"):
        read_source(tmp_path / "run")


@pytest.mark.parametrize(
    ("summary", "message"),
    [
        ('{"schema": 1, "axes": [], "points": []}', "is a sweep, whose runs keep no tables"),
        ('{"schema": 1, "variants": [1]}', "is not what a comparison writes there"),
        ('{"schema": 1, "hit_rate": NaN}', "NaN is no JSON"),
    ],
)
def test_a_summary_of_something_else_is_refused(tmp_path, summary, message):
    (tmp_path / "summary.json").write_text(summary)
    with pytest.raises(InputError, match=message):
        read_source(tmp_path)
