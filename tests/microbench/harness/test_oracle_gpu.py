"""The loop closed: an emulated GPU whose costs are known is measured by the whole harness, and the fit finds the costs.

The GPU is a scale model, so that every kernel is really run and every output checked: its clock is virtual, and each
launch, copy and call moves it on by the cost model, which counts bytes and operations from the launches themselves.
"""

import pytest

from kvsim.microbench.fit.fit import fit_results
from kvsim.microbench.results import read_results
from kvsim.microbench.validation.validate import validate
from tests.microbench.harness.emulation import run

pytestmark = pytest.mark.cuda

MOST_OFF = 0.02
MIB, GIB = 1 << 20, 1 << 30
GPUS = [
    {
        "launch_s": 2e-6, "node_s": 1e-6, "replay_s": 4e-6, "bandwidth": 5e9, "stream_s": 1e-6,
        "gemm_s": 3e-6, "gemm_bandwidth": 4e9, "gemm_flops": 3e10, "gemm_sharpness": 3.0,
        "read_s": 1e-6, "read_bandwidth": 4.5e9, "read_walk": 1.0e9,
        "decode_s": 2e-6, "decode_bandwidth": 4e9, "decode_walk": 1.5e9, "combine_s": 3e-6,
        "block_1_factor": 1.9, "block_8_factor": 1.14, "block_16_factor": 1.07, "block_32_factor": 1.035,
        "block_64_factor": 1.02, "block_128_factor": 1.01,
        "group_2_factor": 1.05, "group_7_factor": 1.1, "group_8_factor": 1.2, "group_16_factor": 1.7,
        "prefill_s": 5e-6, "prefill_flops": 2e10, "prefill_ramp": 30.0,
        "h2d_s": 4e-6, "h2d_bandwidth": 1.2e9, "d2h_s": 3e-6, "d2h_bandwidth": 1.1e9,
        "pageable_h2d_s": 9e-6, "pageable_h2d_bandwidth": 4e8, "pageable_d2h_s": 8e-6, "pageable_d2h_bandwidth": 3e8,
        "batch_s": 3e-6, "batch_block_s": 5e-7,
        "malloc_s": 1e-4, "malloc_s_per_byte": 2e-11, "free_s": 5e-5, "free_s_per_byte": 1e-11,
        "pool_warm_s": 3e-6, "pool_warm_s_per_byte": 1e-12, "pool_cold_s": 8e-5, "pool_cold_s_per_byte": 3e-11,
        "vmm_create_s": 1e-5, "vmm_map_s": 5e-6, "vmm_access_s": 8e-6, "vmm_unmap_s": 6e-6, "vmm_release_s": 4e-6,
    },
]  # fmt: skip
GPUS.append(
    {key: value * (2.5 if key.endswith(("_s", "_bandwidth", "_walk")) else 1.0) for key, value in GPUS[0].items()}
)
GPUS[1].update(gemm_sharpness=2.0, bandwidth=9e9, block_1_factor=3.0, group_8_factor=1.5)


def known(gpu):
    """What the fit should say, by family and parameter; a launch is part of what a kernel takes at least."""
    us, gb, tera = 1e6, 1e-9, 1e-12
    launch = gpu["launch_s"] * us
    blocks = {key: value for key, value in gpu.items() if key.startswith("block_")}
    groups = {key: value for key, value in gpu.items() if key.startswith("group_")}
    fixed = {"fixed_us": launch + gpu["stream_s"] * us, "rate_gb_s": gpu["bandwidth"] * gb}
    found = {f"hbm:{variant}": fixed for variant in ("read", "write", "copy")}
    found["gemm:bf16"] = {
        "fixed_us": launch + gpu["gemm_s"] * us, "bandwidth_gb_s": gpu["gemm_bandwidth"] * gb,
        "peak_tflop_s": gpu["gemm_flops"] * tera, "blend_power": gpu["gemm_sharpness"],
    }  # fmt: skip
    found["kv_read:bf16"] = {
        "fixed_us": launch + gpu["read_s"] * us, "bandwidth_gb_s": gpu["read_bandwidth"] * gb,
        "walk_gb_s": gpu["read_walk"] * gb, **blocks,
    }  # fmt: skip
    found["paged_attention:bf16"] = {
        "fixed_us": launch + gpu["decode_s"] * us, "bandwidth_gb_s": gpu["decode_bandwidth"] * gb,
        "walk_gb_s": gpu["decode_walk"] * gb, "combine_us": launch + gpu["combine_s"] * us, **blocks, **groups,
    }  # fmt: skip
    found["causal_attention:bf16"] = {
        "fixed_us": launch + gpu["prefill_s"] * us, "peak_tflop_s": gpu["prefill_flops"] * tera,
        "ramp_tokens": gpu["prefill_ramp"],
    }  # fmt: skip
    for way in ("h2d", "d2h"):
        for prefix, variant in (("", "pinned"), ("pageable_", "pageable")):
            call, rate = gpu[f"{prefix}{way}_s"], gpu[f"{prefix}{way}_bandwidth"]
            found[f"copy:{way}_{variant}"] = {"fixed_us": call * us, "rate_gb_s": rate * gb}
        direction = "in" if way == "h2d" else "out"
        rate = {"rate_gb_s": gpu[f"{way}_bandwidth"] * gb}
        found[f"swap_blocks:loop_{direction}"] = {"block_us": gpu[f"{way}_s"] * us, **rate}
        batch = {"fixed_us": gpu["batch_s"] * us, "block_us": gpu["batch_block_s"] * us}
        found[f"swap_blocks:batch_{direction}"] = {**batch, **rate}
        found[f"swap_blocks:mapped_{direction}"] = {"fixed_us": launch, **rate}
        through = 1 / (1 / gpu[f"{way}_bandwidth"] + 2 / gpu["bandwidth"])
        found[f"swap_blocks:gather_{direction}"] = {
            "fixed_us": launch + gpu[f"{way}_s"] * us, "rate_gb_s": through * gb,
        }  # fmt: skip
    for variant in ("malloc", "free", "pool_warm", "pool_cold"):
        per_gib = gpu[f"{variant}_s_per_byte"] * GIB * us
        found[f"alloc:{variant}"] = {"fixed_us": gpu[f"{variant}_s"] * us, "gib_us": per_gib}
    found["map:vmm_map"] = {
        "fixed_us": gpu["vmm_access_s"] * us, "chunk_us": (gpu["vmm_create_s"] + gpu["vmm_map_s"]) * us,
    }  # fmt: skip
    found["map:vmm_unmap"] = {"fixed_us": gpu["vmm_unmap_s"] * us, "chunk_us": gpu["vmm_release_s"] * us}
    found["launch:stream"] = {"kernel_us": launch}
    found["launch:graph"] = {"fixed_us": gpu["replay_s"] * us, "kernel_us": gpu["node_s"] * us}
    per_byte = 2 / gpu["bandwidth"] + 1.125 * gpu["malloc_s_per_byte"] + gpu["free_s_per_byte"]
    found["grow:alloc_copy_free"] = {"fixed_us": (gpu["malloc_s"] + gpu["free_s"]) * us, "rate_gb_s": gb / per_byte}
    return found


@pytest.fixture(scope="module", params=range(len(GPUS)), ids=["a GPU", "another GPU"])
def measured(request, microbench, cublas, tmp_path_factory):
    """The costs that were meant, and the results."""
    gpu, folder = GPUS[request.param], tmp_path_factory.mktemp("oracle")
    trace = folder / "trace.txt"
    trace.write_text("# name small\na 0 4096\na 1 100000\nf 0\nf 1\n")
    ran = run(microbench, "--cublas", cublas, "--frag", trace, gpu=gpu, folder=folder)
    assert ran.code == 0, ran.err
    path = folder / "results.jsonl"
    path.write_text(ran.out)
    return gpu, read_results(path)


def test_the_fit_finds_what_everything_costs_within_two_percent(measured):
    gpu, results = measured
    fitted = {
        one.entry.family: one.entry.values
        for one in fit_results(results, gpu_name="H200", accepted=["emulated"]).families
    }
    off = {
        f"{family} {name}": (fitted[family][name], value)
        for family, parameters in known(gpu).items()
        for name, value in parameters.items()
        if abs(fitted[family][name] / value - 1) > MOST_OFF
    }
    assert not off


def test_operations_that_were_held_out_are_predicted(measured):
    _, results = measured
    fit = fit_results(results, gpu_name="H200", accepted=["emulated"])
    scores = {one["family"]: one for one in validate(fit.calibration, results, fit.device)["families"]}
    assert {"gemm:bf16", "paged_attention:bf16", "causal_attention:bf16"} <= set(scores)
    operations = {family: one["worst_abs_error"] for family, one in scores.items() if not family.startswith("step")}
    assert {family: worst for family, worst in operations.items() if worst > MOST_OFF} == {}
