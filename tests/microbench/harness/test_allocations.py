"""From where a simulated allocator puts regions to what a real one is asked."""

import pytest

from kvsim.cli.main import main
from kvsim.errors import InputError
from kvsim.microbench.harness.allocations import Row, operations, write_trace
from kvsim.microbench.harness.run import TRACES


def row(time_s, start, slots, owner, kind="used"):
    return Row(time_s, start, slots, owner, kind)


def lines(*rows):
    return list(operations(iter(rows), 10))


def test_a_region_that_appears_is_allocated_and_one_that_comes_free_is_freed():
    assert lines(
        row(0, 0, 4, "a"), row(0, 4, 4, "a", "reserved"), row(0, 8, 5, "b"), row(1, 4, 1, "a"),
        row(2, 0, 8, None, "free"),
    ) == ["a 0 80", "a 1 50", "f 0"]  # fmt: skip


def test_neighbours_that_come_free_at_once_are_freed_one_by_one():
    assert lines(row(0, 0, 4, "a"), row(0, 4, 2, "b"), row(1, 0, 6, None, "free"))[2:] == ["f 0", "f 1"]


def test_a_region_that_grows_in_place_is_allocated_anew_before_the_old_one_goes():
    assert lines(row(0, 0, 4, "a"), row(1, 4, 4, "a", "reserved")) == ["a 0 40", "a 1 80", "f 0"]


def test_the_target_of_a_copy_is_a_region_of_its_own_even_beside_its_source():
    assert lines(
        row(0, 0, 4, "a"), row(1, 4, 4, "a", "moving"), row(1, 8, 2, "a", "reserved"), row(2, 0, 4, None, "free")
    ) == ["a 0 40", "a 1 60", "f 0"]  # fmt: skip


def test_what_is_free_can_be_taken_again_at_the_same_moment():
    assert lines(row(0, 0, 4, "a"), row(1, 0, 4, None, "free"), row(1, 0, 2, "b"))[1:] == ["f 0", "a 1 20"]


@pytest.mark.parametrize("name", ["grow", "cat", "pow2"])
def test_shipped_traces_free_only_what_they_allocated_and_fit_their_pool(name):
    first, *rest = (TRACES / f"{name}.txt").read_text().splitlines()
    live, peak = {}, 0
    for kind, number, *size in (line.split() for line in rest):
        if kind == "a":
            assert number not in live
            live[number] = int(size[0])
            peak = max(peak, sum(live.values()))
        else:
            del live[number]
    assert first == f"# name {name}"
    assert len(rest) == 2000
    assert 1 << 30 < peak <= 6 << 30


@pytest.mark.cuda
def test_the_shipped_traces_are_what_kvsim_writes(tmp_path):
    for name in ("grow", "cat", "pow2"):
        scenario, run, made = str(TRACES / "scenario.yaml"), str(tmp_path / name), tmp_path / f"{name}.txt"
        assert main(["run", scenario, "--variant", name, "--addresses", "-o", run]) == 0
        assert main(["calibrate", "trace", run, "--name", name, "-o", str(made)]) == 0
        assert made.read_text() == (TRACES / f"{name}.txt").read_text()


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(InputError, match="is no run folder; write one with `kvsim run FILE --addresses -o DIR`"):
        write_trace(tmp_path, tmp_path / "trace.txt", name="x", most=10)
    with pytest.raises(InputError, match="--name: 'two words' is no name; give one word"):
        write_trace(tmp_path, tmp_path / "trace.txt", name="two words", most=10)


@pytest.mark.parametrize("content", [b"garbage", b""])
def test_damaged_address_records_are_refused_with_their_file(tmp_path, content):
    (tmp_path / "summary.json").write_text('{"metrics": {"device_bytes": {"pool": 4096}, "pool_tokens": 16}}')
    (tmp_path / "resolved.json").write_text('{"allocator.name": {"value": "contiguous"}}')
    (tmp_path / "addresses.parquet").write_bytes(content)
    with pytest.raises(InputError, match=r"addresses\.parquet: holds no address records, or is damaged"):
        write_trace(tmp_path, tmp_path / "trace.txt", name="x", most=10)
    assert not (tmp_path / "trace.txt").exists()
