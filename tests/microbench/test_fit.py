"""The round trip: what an oracle GPU is made of comes back from the times it states, and from nothing else."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from kvsim.microbench.fit.fit import fit_results
from kvsim.microbench.fit.series import series_of
from kvsim.microbench.results import read_results
from kvsim.timing.families import family
from kvsim.timing.families.interface import starts
from kvsim.timing.fitting.calibration import of_json, to_json
from tests.microbench.oracle import GIB, MIB, Oracle, records, write

H200 = Oracle("NVIDIA H200", 132)
A100 = Oracle(
    "NVIDIA A100-SXM4-80GB",
    108,
    l2_bytes=40 * MIB,
    hbm={"read": 1.7e12, "write": 1.6e12, "copy": 1.65e12},
    gemm_bandwidth=1.5e12,
    gemm_peak=2.6e14,
    gemm_fixed_s=7.5e-6,
    knee=2.2,
    kv_bandwidth=1.3e12,
    kv_walk=1.1e10,
    read_bandwidth=1.55e12,
    read_walk=1.2e10,
    group_factor={1: 1.0, 4: 1.12, 5: 1.15, 7: 1.3, 8: 1.45, 16: 2.6},
    prefill_peak=1.5e14,
    prefill_ramp=90.0,
    swap_rate=2.2e10,
    layer_s=6e-6,
)
SMALL = replace(
    A100,
    device="GeForce RTX 4090",
    sms=128,
    l2_bytes=72 * MIB,
    gemm_bandwidth=0.93e12,
    gemm_peak=1.58e14,
    knee=5.0,
    kv_bandwidth=0.9e12,
    block_factor={0: 1.0, 1: 3.2, 8: 1.4, 16: 1.21, 32: 1.1, 64: 1.05, 128: 1.02},
    prefill_peak=0.9e14,
    map_chunk_s={"vmm_map": 4.5e-5, "vmm_unmap": 2.1e-5},
)
ORACLES = {"H200": H200, "A100": A100, "RTX 4090": SMALL}
GB, TERA, US = 1e9, 1e12, 1e-6


def known(gpu):
    """What the fit should say of an oracle, by family and parameter."""
    found = {
        "gemm:bf16": {
            "fixed_us": gpu.gemm_fixed_s / US,
            "bandwidth_gb_s": gpu.gemm_bandwidth / GB,
            "peak_tflop_s": gpu.gemm_peak / TERA,
            "blend_power": gpu.knee,
        },
        "paged_attention:bf16": {
            "fixed_us": gpu.kv_fixed_s / US,
            "bandwidth_gb_s": gpu.kv_bandwidth / GB,
            "walk_gb_s": gpu.kv_walk / GB,
            "combine_us": gpu.combine_s / US,
            **{f"block_{size}_factor": factor for size, factor in gpu.block_factor.items() if size},
            **{f"group_{size}_factor": factor for size, factor in gpu.group_factor.items()},
        },
        "kv_read:bf16": {
            "fixed_us": gpu.kv_fixed_s / US,
            "bandwidth_gb_s": gpu.read_bandwidth / GB,
            "walk_gb_s": gpu.read_walk / GB,
            **{f"block_{size}_factor": factor for size, factor in gpu.block_factor.items() if size},
        },
        "causal_attention:bf16": {
            "fixed_us": gpu.prefill_fixed_s / US,
            "peak_tflop_s": gpu.prefill_peak / TERA,
            "ramp_tokens": gpu.prefill_ramp,
        },
        "launch:stream": {"kernel_us": gpu.launch_s / US},
        "launch:graph": {"kernel_us": gpu.node_s / US},
        "grow:alloc_copy_free": {"fixed_us": gpu.grow_fixed_s / US, "rate_gb_s": gpu.grow_rate / GB},
        "step:graph": {"layer_us": gpu.layer_s / US},
    }
    for name, rate in gpu.hbm.items():
        found[f"hbm:{name}"] = {"fixed_us": gpu.hbm_fixed_s / US, "rate_gb_s": rate / GB}
    for name, rate in gpu.links.items():
        found[f"copy:{name}"] = {"fixed_us": gpu.link_fixed_s / US, "rate_gb_s": rate / GB}
    for name, call in gpu.swap_call_s.items():
        for way in ("in", "out"):
            found[f"swap_blocks:{name}_{way}"] = {
                "fixed_us": gpu.swap_fixed_s / US,
                "block_us": call / US,
                "rate_gb_s": gpu.swap_rate / GB,
            }
    for name, fixed in gpu.alloc_fixed_s.items():
        found[f"alloc:{name}"] = {"fixed_us": fixed / US, "gib_us": gpu.alloc_s_per_gib[name] / US}
    for name, chunk in gpu.map_chunk_s.items():
        found[f"map:{name}"] = {"fixed_us": gpu.map_fixed_s / US, "chunk_us": chunk / US}
    return found


@cache
def fitted(name, scatter, unlike, folder):
    path = write(folder / f"{name}-{scatter}-{unlike}.jsonl", records(ORACLES[name], scatter=scatter, unlike=unlike))
    return fit_results(read_results(path), accepted=("emulated",))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


@pytest.mark.parametrize("name", ORACLES)
def test_every_parameter_of_a_gpu_without_noise_comes_back(name, folder):
    found = {one.entry.family: one.entry.values for one in fitted(name, 0.0, 0.0, folder).families}
    for kind, parameters in known(ORACLES[name]).items():
        for parameter, value in parameters.items():
            assert found[kind][parameter] == pytest.approx(value, rel=0.005), f"{kind} {parameter}"


RATES = {
    "gemm:bf16": ("bandwidth_gb_s", "peak_tflop_s"),
    "paged_attention:bf16": ("bandwidth_gb_s", "walk_gb_s", "block_16_factor", "group_4_factor", "group_8_factor"),
    "kv_read:bf16": ("bandwidth_gb_s",),
    "causal_attention:bf16": ("peak_tflop_s",),
    "hbm:read": ("rate_gb_s",),
    "copy:h2d_pinned": ("rate_gb_s",),
    "copy:d2h_pinned": ("rate_gb_s",),
}
"""What step times rest on."""


@pytest.mark.parametrize("name", ORACLES)
def test_rates_come_back_within_2_percent_from_samples_with_2_percent_of_noise(name, folder):
    found = {one.entry.family: one.entry.values for one in fitted(name, 0.02, 0.0, folder).families}
    truth = known(ORACLES[name])
    for kind, parameters in RATES.items():
        for parameter in parameters:
            assert found[kind][parameter] == pytest.approx(truth[kind][parameter], rel=0.02), f"{kind} {parameter}"


@pytest.mark.parametrize("name", ORACLES)
def test_standard_errors_say_how_far_the_fit_of_shapes_that_are_2_percent_off_the_model_is_off(name, folder):
    entries = {one.entry.family: one.entry for one in fitted(name, 0.02, 0.02, folder).families}
    away = []
    for kind, parameters in known(ORACLES[name]).items():
        if not kind.startswith("step"):  # its error is that of everything else
            for parameter, value in parameters.items():
                error = entries[kind].relative_errors[parameter]
                if error:
                    away.append(abs(np.log(entries[kind].values[parameter] / value)) / error)
    # Fits of five rows have few degrees of freedom: their errors are themselves uncertain, so some lie further out.
    assert np.median(away) < 1.0
    assert np.quantile(away, 0.9) < 3.0


def test_a_walk_is_found_where_a_few_blocks_of_threads_use_up_the_memory(tmp_path):
    model = replace(A100, device="NVIDIA L4", sms=4, kv_bandwidth=1.0e10, kv_walk=0.5e9)
    found = fit_results(read_results(write(tmp_path / "r.jsonl", records(model))), accepted=("emulated",))
    values = {one.entry.family: one.entry.values for one in found.families}["paged_attention:bf16"]
    assert values["walk_gb_s"] == pytest.approx(0.5, rel=0.02)
    assert values["bandwidth_gb_s"] == pytest.approx(10, rel=0.02)


def test_a_fit_states_its_range_its_input_and_what_is_left(folder):
    entries = {one.entry.family: one.entry for one in fitted("H200", 0.02, 0.02, folder).families}
    one = entries["gemm:bf16"]
    assert one.ranges["m"] == (1, 8192)
    assert one.gpu == "H200-SXM"
    assert len(one.input_hash) == 64
    assert 0.005 < one.median_abs_error < 0.03


def test_only_points_of_role_fit_are_fitted_to(tmp_path):
    spoilt = [
        {**row, **{key: 9 * row[key] for key in ("median_s", "p10_s", "p90_s", "min_s")}}
        if row.get("role") == "holdout"
        else row
        for row in records(H200)
    ]
    found = fit_results(read_results(write(tmp_path / "r.jsonl", spoilt)), accepted=("emulated",))
    values = {one.entry.family: one.entry.values for one in found.families}
    assert values["gemm:bf16"]["peak_tflop_s"] == pytest.approx(780, rel=0.005)


def test_a_calibration_says_which_machine_it_is_of_and_what_was_accepted(folder):
    about = to_json(fitted("A100", 0.0, 0.0, folder).calibration)["about"]
    assert about["env"]["device"] == "NVIDIA A100-SXM4-80GB"
    assert about["accepted"] == ["emulated"]
    assert about["anchor_drift"]["hbm copy: bytes 1073741824"] < 1e-9
    assert about["points"]["anchor"] > 4


def test_times_that_no_gpu_took_are_never_called_calibrated(folder):
    assert "no GPU" in fitted("H200", 0.0, 0.0, folder).calibration.provenance


def test_times_of_a_gpu_are_called_calibrated_on_it(tmp_path):
    path = write(
        tmp_path / "r.jsonl", [{**row, "backend": "cuda"} if "backend" in row else row for row in records(H200)]
    )
    assert fit_results(read_results(path)).calibration.provenance == "calibrated on this GPU"


def test_a_calibration_survives_its_file(folder):
    made = fitted("H200", 0.02, 0.02, folder).calibration
    again = of_json(to_json(made))
    assert again.about == made.about
    assert again.entries.keys() == made.entries.keys()
    key = ("H200-SXM", "paged_attention:bf16")
    assert again.entries[key].values == pytest.approx(made.entries[key].values, rel=1e-4)


def test_a_gpu_whose_linear_layers_show_tiles_is_fitted_with_tiles(tmp_path):
    tiled = family("linear:bf16")
    values = starts(tiled) | {"bandwidth_share": 0.77, "compute_share": 0.66}
    from kvsim.timing.families import device

    rows = []
    for row in records(H200):
        if row.get("bench") == "gemm":
            shape = {name: np.array([float(row["params"][name])]) for name in ("m", "n", "k")} | {"cold": np.ones(1)}
            seconds = float(tiled.seconds(values, shape, device("H200"))[0])
            row = {**row, "median_s": seconds, "p10_s": seconds, "p90_s": seconds}
        rows.append(row)
    found = fit_results(read_results(write(tmp_path / "r.jsonl", rows)), accepted=("emulated",))
    entries = {one.entry.family: one.entry for one in found.families}
    assert "gemm:bf16" not in entries
    assert entries["linear:bf16"].values["bandwidth_share"] == pytest.approx(0.77, rel=0.02)


def test_fragmentation_is_what_the_allocator_reserved_over_what_was_used(tmp_path):
    *rows, end = records(H200)
    frag = {**rows[1], "bench": "frag", "variant": "chat", "params": {"operations": 2000}, "role": "fit"}
    frag |= {"reserved_bytes": 3 * GIB, "used_bytes": GIB, "peak_used_bytes": 2 * GIB}
    path = write(tmp_path / "r.jsonl", [*rows, frag, {**end, "points": end["points"] + 1}])
    about = fit_results(read_results(path), accepted=("emulated",)).calibration.about
    assert about["fragmentation"] == [{"trace": "chat", "reserved_over_peak_used": 1.5}]


def test_every_timed_point_of_the_full_preset_is_of_some_family(folder):
    points = read_results(write(folder / "all.jsonl", records(H200))).points
    placed = sum(len(series) for series in series_of(points).values())
    assert placed == sum(point.bench not in ("step", "frag") for point in points)
