"""The whole harness on the CPU: every benchmark, every output against float64, every way to end."""

from pathlib import Path

import pytest

from kvsim.microbench.harness.run import NO_GPU, Order, measure
from kvsim.microbench.results import read_results
from tests.microbench.harness.emulation import run

BENCHES = (
    "hbm", "gemm", "kv_read", "decode_attn", "prefill_attn", "launch", "graph", "h2d", "d2h", "duplex", "swap_blocks",
    "alloc", "grow", "frag", "step",
)  # fmt: skip
TRACE = "# name small\na 0 4096\na 1 100000\nf 0\na 2 70000\nf 1\n"


@pytest.fixture(scope="module")
def everything(microbench, cublas, tmp_path_factory):
    """All benchmarks, once."""
    trace = tmp_path_factory.mktemp("traces") / "small.txt"
    trace.write_text(TRACE)
    return run(microbench, "--cublas", cublas, "--frag", trace)


@pytest.mark.cuda
def test_reading_kv_is_right_to_the_last_bit_in_every_layout(microbench):
    ran = run(microbench, "--only", "kv_read")
    points = ran.points("kv_read")
    assert {point["params"]["block"] for point in points} == {0, 1, 8, 16, 32, 64, 128}
    assert all(point["verified"] is True and point["check"] == "exact" for point in points)
    assert ran.code == 0


@pytest.mark.cuda
def test_without_a_gpu_there_is_one_line_and_exit_code_77(microbench):
    ran = run(microbench, EMU_DEVICES="0")
    assert ran.code == NO_GPU
    assert [line["type"] for line in ran.lines] == ["error"]
    assert ran.lines[0]["message"].startswith("no usable GPU: CUDA driver version is insufficient")
    assert len(ran.err.splitlines()) == 1


@pytest.mark.cuda
def test_every_benchmark_ends_with_right_outputs(everything):
    assert everything.code == 0
    assert not everything.of("error")
    assert not everything.of("skip")
    for bench in BENCHES:
        points = everything.points(bench)
        assert points, bench
        assert all(point["verified"] is not False for point in points), bench
    checked = {point["bench"] for point in everything.of("point") if point["verified"]}
    assert checked == set(BENCHES) - {"launch", "graph"}
    end = everything.lines[-1]
    assert end["type"] == "end"
    assert end["complete"] is True
    assert end["points"] == len(everything.of("point"))


@pytest.mark.cuda
def test_what_it_writes_is_what_the_fit_reads(everything, tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text(everything.out)
    (one,) = read_results(path).runs
    assert one.env.backend == "emulated"
    assert one.env.emulated
    assert one.end is not None
    assert {point.bench for point in one.points} == set(BENCHES)
    assert {point.bench for point in one.points if point.role == "holdout"} >= {"gemm", "decode_attn", "step"}
    assert all(point.role == "holdout" for point in one.points if point.bench == "step")
    uneven = [point for point in one.points if point.params.get("spread") == "lognormal"]
    assert uneven
    assert all(point.role == "holdout" for point in uneven)


@pytest.mark.cuda
def test_paged_and_contiguous_are_sampled_in_turns_and_points_in_random_order(everything, microbench, cublas):
    benches = [point["bench"] for point in everything.of("point")]
    assert benches != sorted(benches, key=benches.index)
    again = run(microbench, "--cublas", cublas, "--only", "launch,graph,h2d", "--seed", "2")
    first = run(microbench, "--cublas", cublas, "--only", "launch,graph,h2d", "--seed", "1")
    order = [[(point["bench"], str(point["params"])) for point in ran.of("point")] for ran in (first, again)]
    assert order[0] != order[1]
    assert sorted(order[0]) == sorted(order[1])


@pytest.mark.cuda
def test_an_anchor_comes_first_last_and_every_thirty_seconds(microbench):
    slow = {"launch_s": 2.0}
    ran = run(microbench, "--only", "hbm", gpu=slow, folder=Path(str(microbench)).parent)
    at = [point["t_offset_s"] for point in ran.of("point") if point["role"] == "anchor"]
    assert len(at) >= 3
    others = [point["t_offset_s"] for point in ran.points("hbm")]
    assert at[0] < min(others)
    assert at[-1] > max(others)


@pytest.mark.cuda
def test_a_spent_budget_turns_the_rest_into_skip_lines(microbench, cublas, tmp_path):
    ran = run(microbench, "--cublas", cublas, "--budget-s", "20", gpu={"launch_s": 0.05}, folder=tmp_path)
    skips = ran.of("skip")
    assert skips
    assert {skip["reason"] for skip in skips} == {"budget of 20 s is spent"}
    assert ran.lines[-1]["complete"] is False
    assert {skip["bench"] for skip in skips} >= {"step"}  # the least important
    assert ran.points("hbm")
    assert ran.code == 0


@pytest.mark.cuda
def test_what_does_not_fit_into_memory_is_skipped_with_the_figures(microbench, tmp_path):
    ran = run(microbench, "--only", "alloc", gpu={"mem_bytes": 6 << 20}, folder=tmp_path)
    reasons = [skip["reason"] for skip in ran.of("skip") if skip["params"]["bytes"] == 8 << 20]
    assert reasons
    assert all(reason.startswith("needs 8 MiB of device memory, ") for reason in reasons)
    assert ran.code == 0


@pytest.mark.cuda
@pytest.mark.parametrize("call", ["cudaMalloc:5", "cudaMemcpy:2", "launch:7", "cudaStreamSynchronize:2"])
def test_a_call_that_fails_is_one_error_line_and_exit_code_1(microbench, call):
    ran = run(microbench, "--only", "kv_read", EMU_FAIL=call)
    (error,) = ran.of("error")
    assert error["code"] in (2, 719)
    assert error["message"].partition(":")[0].removeprefix("launch of ") in (
        call.partition(":")[0], "fill_bf16", "stream_copy", "poison_rows", "kv_read<true>", "kv_read<false>",
    )  # fmt: skip
    assert ran.code == 1


@pytest.mark.cuda
def test_a_failed_allocation_costs_its_point_alone_and_a_lost_device_ends_the_run(microbench):
    small = run(microbench, "--only", "kv_read", EMU_FAIL="cudaMalloc:5")
    assert small.lines[-1]["complete"] is True
    assert small.lines[-1]["failed"] == 1
    lost = run(microbench, "--only", "kv_read", EMU_FAIL="launch:12")
    assert lost.lines[-1]["complete"] is False
    assert len(lost.of("point")) < len(small.of("point"))


@pytest.mark.cuda
def test_without_cublas_products_are_skipped_and_the_rest_is_measured(microbench):
    ran = run(microbench, "--only", "gemm,launch", "--cublas", "libnothing.so.13")
    assert {skip["bench"] for skip in ran.of("skip")} == {"gemm"}
    assert all("libnothing.so.13" in skip["reason"] for skip in ran.of("skip"))
    assert ran.points("launch")
    assert ran.code == 0


@pytest.mark.cuda
@pytest.mark.parametrize(
    ("trace", "said"),
    [
        ("# name x\na 0\n", "line 2: is neither `a ID BYTES` nor `f ID`"),
        ("# name x\na 0 5\na 0 6\n", "line 3: ID is allocated already"),
        ("# name x\nf 3\n", "line 2: ID is not allocated"),
        ("a 0 5\n", "has no name or no operation"),
    ],
)
def test_a_trace_that_cannot_be_replayed_is_refused_with_its_line(microbench, tmp_path, trace, said):
    path = tmp_path / "trace.txt"
    path.write_text(trace)
    ran = run(microbench, "--only", "frag", "--frag", path)
    assert ran.code == 1
    assert said in ran.of("error")[0]["message"]


@pytest.mark.cuda
def test_a_replayed_trace_says_what_the_pool_reserved_and_used(microbench, tmp_path):
    path = tmp_path / "trace.txt"
    path.write_text(TRACE)
    (point,) = run(microbench, "--only", "frag", "--frag", path).points("frag")
    assert point["variant"] == "small"
    assert point["params"] == {"operations": 5}
    # At the peak 100,000 and 70,000 or 4,096 bytes are live, each rounded up to 512.
    assert point["peak_used_bytes"] == 100352 + 70144
    assert point["used_bytes"] == 70144
    assert point["reserved_bytes"] == 4096 + 100352 + 70144


@pytest.mark.cuda
def test_verifying_alone_times_nothing(microbench):
    ran = run(microbench, "--only", "kv_read", "--verify-only")
    assert all(point["verified"] is True and point["median_s"] is None for point in ran.points("kv_read"))


@pytest.mark.cuda
@pytest.mark.parametrize("preset", ["quick", "full"])
def test_the_real_presets_keep_to_their_budget(microbench, cublas, preset):
    """On a GPU that only counts time, at about the speed of an H200; its outputs are never written."""
    gpu = {
        "bandwidth": 4.3e12, "gemm_bandwidth": 4.3e12, "gemm_flops": 7.8e14,
        "decode_bandwidth": 3.5e12, "decode_walk": 4e10, "read_bandwidth": 4e12, "read_walk": 2e11,
        "prefill_flops": 3e14, "h2d_bandwidth": 5e10, "d2h_bandwidth": 5e10, "pageable_h2d_bandwidth": 1e10,
        "pageable_d2h_bandwidth": 1e10, "mem_bytes": 139 << 30, "sm_count": 132, "l2_bytes": 60 << 20,
        "malloc_s": 1e-4, "free_s": 1e-4, "pool_cold_s": 1e-4,
    }  # fmt: skip
    folder = Path(str(microbench)).parent / preset
    folder.mkdir(exist_ok=True)
    ran = run(
        microbench, "--cublas", cublas, "--preset", preset, "--samples", "0", "--sample-us", "200", "--no-verify",
        gpu=gpu, folder=folder, EMU_DRY="1",
    )  # fmt: skip
    end = ran.lines[-1]
    assert end["wall_s"] < {"quick": 60, "full": 180}[preset]
    assert end["complete"] is True
    assert not ran.of("error")
    assert all(point["verified"] is None for point in ran.of("point"))


@pytest.mark.cuda
def test_the_verb_keeps_and_sums_up_what_the_program_writes(microbench, cublas, tmp_path):
    to = tmp_path / "deep" / "results.jsonl"
    outcome = measure(microbench, Order(preset="tiny", only=["hbm", "gemm"], cublas=str(cublas), traces=[]), to)
    assert outcome.count("gemm")["points"] > 20
    assert outcome.count("gemm")["wrong"] == 0
    assert not outcome.failed
    assert read_results(to).runs[0].end is not None
