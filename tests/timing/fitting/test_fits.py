"""Fits give back what was put in, say how sure they are, and refuse what cannot be fitted."""

import json

import numpy as np
import pytest

from kvsim.errors import InputError
from kvsim.timing.families import device, family
from kvsim.timing.families.interface import starts
from kvsim.timing.fitting.calibrate import calibrate
from kvsim.timing.fitting.calibration import Calibration, of_json, read, shipped, to_json
from kvsim.timing.fitting.kernel_tables import read_folder
from kvsim.timing.fitting.robust import fit

H100 = device("H100")
GEMM = "gpu,vllm,gemm_dtype,m,n,k,latency_ms"


def gemm_rows():
    grid = np.array(
        [(m, n, k) for m in (1, 8, 64, 256, 1024, 4096) for n in (2048, 4096, 8192) for k in (2048, 4096, 16384)], float
    )
    return dict(zip(("m", "n", "k"), grid.T, strict=True))


def decode_rows():
    grid = np.array(
        [
            (batch, context, heads, kv_heads, 128, 0)
            for batch in (1, 8, 64, 512)
            for context in (16, 128, 1024, 8192)
            for heads, kv_heads in ((8, 1), (32, 8), (64, 8), (8, 8))
        ],
        float,
    )
    names = ("sequences", "context", "heads", "kv_heads", "head_dim", "cold")
    return dict(zip(names, grid.T, strict=True))


@pytest.mark.parametrize(
    ("name", "rows", "known"),
    [
        ("linear:bf16", gemm_rows(), {"bandwidth_share": 0.72, "compute_share": 0.62, "fixed_us": 7.0}),
        ("decode_attention:bf16", decode_rows(), {"bandwidth_share": 0.7, "fixed_us": 14.0, "block_us": 5.0}),
    ],
)
def test_parameters_come_back_within_2_percent(name, rows, known):
    one = family(name)
    measured = one.seconds(starts(one) | known, rows, H100)
    noise = np.exp(np.random.default_rng(0).normal(0, 0.005, len(measured)))
    found = fit(one, rows, measured * noise, H100)
    for key, value in known.items():
        assert found.values[key] == pytest.approx(value, rel=0.02), key


def test_outliers_do_not_move_a_fit():
    one, rows = family("linear:bf16"), gemm_rows()
    measured = one.seconds(starts(one), rows, H100)
    measured[::10] *= 5
    assert fit(one, rows, measured, H100).values["bandwidth_share"] == pytest.approx(0.8, rel=0.03)


def test_what_the_rows_decide_is_surer_than_what_they_leave_open():
    one, rows = family("linear:bf16"), gemm_rows()
    measured = one.seconds(starts(one), rows, H100) * np.exp(np.random.default_rng(1).normal(0, 0.05, len(rows["m"])))
    errors = fit(one, rows, measured, H100).relative_errors
    assert errors["bandwidth_share"] < 0.05
    assert errors["one_row_us"] > errors["bandwidth_share"]  # bf16 quantises nothing: no row speaks of it


def table(folder, *lines, name="kernel_gemm.csv", head=GEMM):
    (folder / name).write_text("\n".join([head, *lines]) + "\n")
    return folder


def good_lines(gpu="h100_sxm", scale=1.0):
    rows = gemm_rows()
    one = family("linear:bf16")
    measured = one.seconds(starts(one), rows, H100)
    columns = zip(rows["m"], rows["n"], rows["k"], measured, strict=True)
    return [f"{gpu},0.24.0,bfloat16,{m:.0f},{n:.0f},{k:.0f},{1000 * scale * t}" for m, n, k, t in columns]


def test_a_calibration_says_where_each_number_comes_from_and_survives_its_file(tmp_path):
    found = calibrate(read_folder(table(tmp_path, *good_lines())))
    written = tmp_path / "calibration.json"
    written.write_text(json.dumps(to_json(found)))
    entry = read(written).entries["H100-SXM", "linear:bf16"]
    assert entry.rows == 54
    assert entry.source == "kernel_gemm.csv"
    assert len(entry.input_hash) == 64
    assert entry.ranges["m"] == (1, 4096)
    assert entry.values["bandwidth_share"] == pytest.approx(0.8, rel=0.02)
    assert entry.median_abs_error < 0.01


@pytest.mark.parametrize(
    ("lines", "head", "said"),
    [
        (["h100_sxm,0.24.0,bfloat16,1,1024,1024"], GEMM.removesuffix(",latency_ms"), "has no column latency_ms"),
        (["h100_sxm,0.24.0,bfloat16,1,1024,1024,0"], GEMM, "row 2: latency_ms is 0"),
        (["h100_sxm,0.24.0,bfloat16,1,1024,1024,-3"], GEMM, "row 2: latency_ms is -3"),
        (["h100_sxm,0.24.0,bfloat16,1,1024,1024,fast"], GEMM, "row 2: latency_ms is fast"),
        (["h100_sxm,0.24.0,bfloat16,0,1024,1024,1"], GEMM, "m is 0"),
        (["h100_sxm,0.24.0,int3,1,1024,1024,1"], GEMM, "type 'int3' is not known"),
        ([], GEMM, "has a head and no row"),
    ],
)
def test_a_table_that_cannot_be_is_refused_with_its_place(tmp_path, lines, head, said):
    with pytest.raises(InputError, match=said) as refused:
        read_folder(table(tmp_path, *lines, head=head))
    assert "kernel_gemm.csv" in str(refused.value)


@pytest.mark.parametrize(
    ("spelled", "known"),
    [("fp8_block", "fp8"), ("nvfp4", "fp4"), ("int8_wo", "int8"), ("w4a16", "int4"), ("float16", "bf16")],
)
def test_a_type_is_known_as_sources_spell_it(tmp_path, spelled, known):
    lines = [line.replace("bfloat16", spelled) for line in good_lines()]
    (sample,) = read_folder(table(tmp_path, *lines)).samples
    assert sample.family == f"linear:{known}"
    assert calibrate(read_folder(tmp_path)).entries


def test_too_few_points_are_no_fit(tmp_path):
    with pytest.raises(InputError, match="3 rows of linear:bf16 on h100_sxm; a fit needs at least 8"):
        calibrate(read_folder(table(tmp_path, *good_lines()[:3])))


def test_mixed_devices_are_no_calibration_of_one(tmp_path):
    folder = table(tmp_path, *good_lines(), *good_lines("a100_sxm"))
    with pytest.raises(InputError, match="mixes the devices a100_sxm, h100_sxm"):
        read_folder(folder, gpu="H100")


def test_a_folder_that_is_none_is_refused(tmp_path):
    with pytest.raises(InputError, match="is no folder"):
        read_folder(tmp_path / "absent")


def test_rows_of_a_card_without_a_data_sheet_are_counted(tmp_path):
    found = read_folder(table(tmp_path, *good_lines("tpu_v9")))
    assert dict(found.skipped) == {"kernel_gemm.csv: no data sheet of tpu_v9": 54}
    assert found.samples == []


def test_an_unseen_gpu_takes_the_same_chip_first_and_the_median_of_all_last():
    known = shipped()
    hopper, said = known.values("H200-SXM", "linear:bf16")
    assert hopper == pytest.approx(known.entries["H100-SXM", "linear:bf16"].values)
    assert said == "datasheet and the median of other GPUs' efficiencies"
    shares = sorted(one.values["bandwidth_share"] for (_, name), one in known.entries.items() if name == "linear:bf16")
    blind, _ = known.without(["T4"]).values("T4", "linear:bf16")
    assert shares[0] <= blind["bandwidth_share"] <= shares[-1]


def test_a_relative_that_saw_few_shapes_does_not_stand_in_for_a_whole_architecture():
    """H20's table has long contexts and few heads: without its own fits H100 takes the median of all."""
    blind = shipped().without(["H100-SXM"])
    name = "decode_attention:bf16"
    values, _ = blind.values("H100-SXM", name)
    assert values != pytest.approx(blind.entries["H20", name].values)
    lenders = [one.values["fixed_us"] for (_, kind), one in blind.entries.items() if kind == name]
    assert values["fixed_us"] == pytest.approx(float(np.exp(np.median(np.log(lenders)))))


def test_what_a_gpu_borrows_was_seen_in_the_ranges_of_those_that_lend():
    known = shipped()
    low, high = known.ranges("T4", "linear:bf16")["n"]
    ends = [one.ranges["n"] for (_, kind), one in known.entries.items() if kind == "linear:bf16"]
    assert (low, high) == (min(end[0] for end in ends), max(end[1] for end in ends))


def test_of_two_tables_of_a_gpu_that_of_more_head_shapes_is_fitted(tmp_path):
    """However many batch sizes the other has."""
    head = "gpu,vllm,num_heads,num_key_value_heads,head_dim,kv_cache_dtype,batch_size,latency_ms,context"
    rows = [
        f"a100_sxm,0.14.0,{heads},{heads // 4},128,bfloat16,{batch},0.02,{context}"
        for heads in (8, 16, 32)
        for batch in (1, 2)
        for context in (64, 512)
    ]
    (tmp_path / "kernel_attn_decode.csv").write_text("\n".join([head, *rows]) + "\n")
    lines = ["is_prefill,batch_size,chunk,kv_len,prefill_ms,decode_ms"]
    lines += [f"0,{batch},,{kv},,0.05" for batch in range(1, 20) for kv in (64, 512)]
    lines += [f"1,1,{chunk},0,0.1," for chunk in (64, 128, 256)]
    (tmp_path / "attention_a100_llama-2-70b_tp2.csv").write_text("\n".join(lines) + "\n")
    found = calibrate(read_folder(tmp_path), strict=False)
    assert found.entries["A100-SXM-80GB", "decode_attention:bf16"].source == "kernel_attn_decode.csv"


def test_without_any_fit_the_stated_efficiencies_serve():
    values, said = Calibration().values("H100-SXM", "linear:bf16")
    assert values == starts(family("linear:bf16"))
    assert said == "datasheet and stated efficiencies"


def test_shipped_calibrations_name_their_source_and_their_sureness():
    found = to_json(shipped())
    assert found["provenance"] == "fitted to published measurements"
    assert {"A100-SXM-80GB", "H100-SXM", "B200-SXM", "L40S", "H20", "A40"} == set(found["gpus"])
    for families in found["gpus"].values():
        for one in families.values():
            assert one["source"].endswith(".csv")
            assert len(one["input_sha256"]) == 64
            assert all(each["unit"] and each["standard_error"] >= 0 for each in one["parameters"].values())
    assert of_json(found).entries.keys() == shipped().entries.keys()
