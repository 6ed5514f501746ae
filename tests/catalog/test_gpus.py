"""A GPU is found by what users, drivers and logs call it, and has the memory that a process is given."""

import pytest

from kvsim.catalog.gpus import gpu, gpus
from kvsim.errors import InputError


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("H100", "H100-SXM"),
        ("h100_sxm", "H100-SXM"),
        ("H100 80GB", "H100-SXM"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM"),
        ("NVIDIA H100 PCIe", "H100-PCIe"),
        ("RTX 4090", "RTX-4090"),
        ("rtx4090", "RTX-4090"),
        ("4090", "RTX-4090"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090"),
        ("A100-80GB", "A100-SXM-80GB"),
        ("NVIDIA A100-SXM4-80GB", "A100-SXM-80GB"),
        ("NVIDIA A100 80GB PCIe", "A100-PCIe-80GB"),
        ("A100 40GB", "A100-SXM-40GB"),
        ("Tesla T4", "T4"),
        ("H200 141GB", "H200-SXM"),
        ("AMD Instinct MI300X", "MI300X"),
        ("NVIDIA GH200 480GB", "GH200-96GB"),
    ],
)
def test_a_gpu_is_found_however_it_is_written(written: str, found: str) -> None:
    assert gpu(written).name == found


def test_every_gpu_is_found_by_each_of_its_own_names() -> None:
    listed = gpus()
    assert len(listed) == len({g.name for g in listed}) >= 25
    for g in listed:
        for written in (g.name, g.name.lower(), f"{g.vendor} {g.name}", *g.aliases):
            assert gpu(written) == g, written


def test_memory_is_what_a_process_is_given_not_the_name() -> None:
    assert gpu("RTX 4090").memory_bytes == 25_250_627_584  # CUDA total, logged to the byte
    assert gpu("H100").memory_bytes == round(79.19 * 2**30)
    for g in gpus():
        assert g.memory_bytes < g.memory_gb_nominal * 2**30 or g.name == "MI300X"


def test_a_size_nobody_reported_is_the_nominal_one_and_says_so() -> None:
    assert [g.name for g in gpus() if not g.memory_known] == ["MI250"]
    assert gpu("MI250").memory_bytes == 128 * 10**9


def test_rates_are_in_units_per_second() -> None:
    h100 = gpu("H100")
    assert h100.bandwidth_bytes_per_s == 3_350 * 10**9
    assert h100.flops_per_s("bf16") == h100.flops_per_s("fp16") == 989e12
    assert h100.flops_per_s("fp8") == 1978e12
    assert h100.flops_per_s("int4") == 989e12
    assert (h100.host_link_bytes_per_s, h100.gpu_link_bytes_per_s) == (64 * 10**9, 900 * 10**9)
    assert (h100.usd_per_hour_low, h100.usd_per_hour_high) == (1.99, 5.0)


def test_a_chip_without_fp8_runs_fp8_at_the_bf16_rate() -> None:
    a100 = gpu("A100")
    assert a100.fp8_flops_per_s is None
    assert a100.flops_per_s("fp8") == a100.bf16_flops_per_s


def test_a_rate_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^dtype: no fp32 rate"):
        gpu("H100").flops_per_s("fp32")
    with pytest.raises(ValueError, match=r"^dtype: unknown type 'fp7'"):
        gpu("H100").flops_per_s("fp7")


@pytest.mark.parametrize("written", ["H1000", "RTX 3080 Ti"])
def test_an_unknown_name_gets_the_three_closest(written: str) -> None:
    with pytest.raises(InputError, match=r"unknown GPU .*: the closest are \S+, \S+, \S+; `kvsim gpus`"):
        gpu(written)


@pytest.mark.parametrize("written", ["", "NVIDIA", "quantum computer"])
def test_a_name_like_no_other_gets_no_guesses(written: str) -> None:
    with pytest.raises(InputError, match=r"unknown GPU .*: no name is close; `kvsim gpus` lists all"):
        gpu(written)


def test_every_gpu_says_where_its_facts_come_from() -> None:
    assert [g.name for g in gpus() if not (g.source_memory and g.source_performance)] == []
