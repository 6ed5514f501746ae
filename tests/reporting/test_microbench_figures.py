"""Figures of a fit: one of each kind of operation, none of which looks like a GPU's where no GPU took the times."""

import re

import pytest

from kvsim.microbench.fit.fit import fit_results
from kvsim.microbench.results import read_results
from kvsim.reporting.microbench.report import write_figures
from kvsim.reporting.microbench.specs import SPECS, size_of, time_of
from tests.microbench.oracle import Oracle, records, write

FEW = ("hbm", "gemm", "decode_attn", "launch")


def drawn(folder, backend):
    env, *rows, end = records(Oracle("NVIDIA H200", 132), scatter=0.01)
    rows = [row for row in rows if row["bench"] in FEW]
    rows = [{**env, "backend": backend}, *rows, {**end, "points": len(rows)}]
    found = fit_results(read_results(write(folder / "r.jsonl", rows)), accepted=("emulated",))
    return {path.name: path for path in write_figures(found, folder / "figures")}


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    return drawn(tmp_path_factory.mktemp("figures"), "emulated")


def text_of(path):
    return " ".join(re.findall(r">([^<>]+)</text>", path.read_text()))


def test_every_kind_that_was_measured_has_a_figure_and_no_other(emulated):
    stems = ("hbm", "gemm", "decode_attention", "launches")
    assert set(emulated) == {f"{stem}.{form}" for stem in stems for form in ("png", "svg")}
    assert all(path.stat().st_size > 10_000 for path in emulated.values())


def test_emulated_times_say_so_across_every_figure(emulated):
    for name, path in emulated.items():
        if name.endswith("svg"):
            said = text_of(path)
            assert "EMULATED: no GPU took these times" in said, name
            assert "backend emulated" in said


def test_a_gpus_times_name_the_device_its_driver_and_the_input(tmp_path):
    said = text_of(drawn(tmp_path, "cuda")["gemm.svg"])
    assert "EMULATED" not in said
    assert "calibrated on this GPU" in said
    assert "device NVIDIA H200, driver 580" in said
    assert re.search(r"input [0-9a-f]{12}", said)


def test_the_cost_of_block_tables_has_a_panel_of_its_own(emulated):
    said = text_of(emulated["decode_attention.svg"])
    assert "block size, tokens" in said
    assert "+90.0" in said or "+89." in said or "+90." in said


def test_equal_input_gives_equal_figures(emulated, tmp_path):
    again = drawn(tmp_path, "emulated")
    assert again["gemm.svg"].read_bytes() == emulated["gemm.svg"].read_bytes()


def test_labels_are_in_the_units_that_people_read():
    assert [time_of(one) for one in (1e-6, 2e-5, 1e-3, 0.5, 10.0)] == ["1 µs", "20 µs", "1 ms", "500 ms", "10 s"]
    assert [size_of(one) for one in (512, 4096, 1 << 20, 3 << 30)] == ["512 B", "4 KiB", "1 MiB", "3 GiB"]


def test_every_kind_of_family_has_one_figure():
    kinds = [kind for spec in SPECS for kind in spec.kinds]
    assert len(kinds) == len(set(kinds))
