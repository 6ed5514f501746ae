"""Records that are handed over in pieces leave the numbers and the tables that records which are kept leave."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.engine.run import RunLog
from kvsim.metrics.result import COLUMNS, Result
from kvsim.metrics.summary import Run, Slo, metrics, stretches
from kvsim.metrics.tables import Dropped, ParquetPieces, Tables
from kvsim.reporting.run_folder import check_run_folder
from kvsim.request import Request
from tests.laws.cases import run_case
from tests.laws.strategies import scenarios
from tests.metrics.tables.test_kept import ONE_REQUEST, S


def outcome(log: RunLog, window: str = "auto") -> Run:
    recording = log.recording
    return Run(
        recording.requests, recording.memory, recording.gaps.histogram, log.end_ps, log.last_arrival_ps, None, window,
        Slo(ttft_ps=3 * S, tpot_ps=S), caches=recording.cache is not None,
        residency=recording.cache.residency if recording.cache else None,
    )  # fmt: skip


def result(tables: Any) -> Result:
    return Result("a run", 0, "0", "", {}, {}, [], {}, [], tables=tables)


def small(pieces: Any, rows: int) -> Any:
    pieces.rows = rows
    return pieces


@settings(max_examples=60, deadline=None)
@given(case=scenarios(), window=st.sampled_from(["auto", "saturated"]), rows=st.integers(1, 5), stepwise=st.booleans())
def test_pieces_of_any_size_leave_the_same_summary_and_the_same_files(tmp_path_factory, case, window, rows, stepwise):
    folder = tmp_path_factory.mktemp("run")
    kept = run_case(case, stepwise=stepwise, window=window)
    dropped = run_case(case, stepwise=stepwise, window=window, pieces=small(Dropped(), rows))
    result(Tables(kept.recording.requests, kept.recording.memory)).save(folder / "kept")
    with ParquetPieces(folder / "pieces") as pieces:
        written = run_case(case, stepwise=stepwise, window=window, pieces=small(pieces, rows))
        result(pieces.tables()).save(folder / "pieces")
    for log in (dropped, written):
        assert metrics(outcome(log, window)) == metrics(outcome(kept, window))
        assert stretches(outcome(log, window)) == stretches(outcome(kept, window))
        assert not log.recording.requests.ended
        assert not log.recording.memory.series
    assert {path.name for path in (folder / "pieces").iterdir()} == {path.name for path in (folder / "kept").iterdir()}
    for path in (folder / "kept").iterdir():
        assert (folder / "pieces" / path.name).read_bytes() == path.read_bytes(), path.name


MANY = ONE_REQUEST | {"requests": [Request(number, number * S // 4, 20, 3) for number in range(40)]}


def test_tables_in_files_are_read_back_as_data_frames(tmp_path):
    kept = run_case(MANY, stepwise=False)
    with ParquetPieces(tmp_path / "run") as pieces:
        run_case(MANY, stepwise=False, pieces=small(pieces, 7))
        stored = result(pieces.tables())
        for name in COLUMNS:
            frame = getattr(result(Tables(kept.recording.requests, kept.recording.memory)), name)
            assert getattr(stored, name).equals(frame), name
        stored.save(tmp_path / "run")
    assert stored.requests["id"].tolist() == list(range(40))  # from where they lie now


def test_one_that_ends_late_is_in_its_place_all_the_same(tmp_path):
    requests = [Request(0, 0, 16, 48), *(Request(number, 0, 1, 1) for number in range(1, 30))]
    with ParquetPieces(tmp_path / "run") as pieces:
        log = run_case(MANY | {"requests": requests, "pool_slots": 640}, stepwise=False, pieces=small(pieces, 2))
        assert list(pieces.tables()["requests"]["id"]) == list(range(30))
    assert log.recording.requests.ends == 30


def test_a_run_that_breaks_off_leaves_nothing(tmp_path):
    class BreakError(Exception):
        pass

    def break_off() -> None:
        with ParquetPieces(tmp_path / "new" / "run") as pieces:
            run_case(MANY, stepwise=False, pieces=small(pieces, 7))
            assert any((tmp_path / "new" / "run").iterdir())
            raise BreakError

    with pytest.raises(BreakError):
        break_off()
    assert not any(tmp_path.iterdir())


def test_nothing_is_written_before_there_is_a_piece(tmp_path):
    with ParquetPieces(tmp_path / "run"):
        assert not any(tmp_path.iterdir())
    assert not any(tmp_path.iterdir())


def test_whoever_asks_for_a_table_that_was_dropped_is_told_so():
    found = result(Dropped().tables())
    with pytest.raises(ValueError, match="kept no tables"):
        _ = found.requests


def test_a_run_folder_that_is_written_twice_holds_the_tables_of_both(tmp_path):
    with ParquetPieces(tmp_path / "one") as pieces:
        run_case(MANY, stepwise=False, pieces=pieces)
        found = result(pieces.tables())
        found.save(tmp_path / "one")
        found.save(tmp_path / "two")
    for name in COLUMNS:
        assert (tmp_path / "one" / f"{name}.parquet").read_bytes() == (
            tmp_path / "two" / f"{name}.parquet"
        ).read_bytes()


def test_what_a_killed_run_has_left_keeps_no_other_from_its_folder(tmp_path):
    pieces = ParquetPieces(tmp_path)
    run_case(MANY, stepwise=False, pieces=small(pieces, 7))
    assert any(tmp_path.iterdir())
    assert check_run_folder(tmp_path) == tmp_path
    pieces.__exit__(None, None, None)
    assert not any(tmp_path.iterdir())
