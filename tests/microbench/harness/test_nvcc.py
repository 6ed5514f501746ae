"""What nvcc makes of the sources: no spills, 16-byte loads, and a program that runs as far as it can without a GPU."""

import ctypes
import os
import re
import shutil
import subprocess

import pytest

from kvsim.errors import InputError
from kvsim.microbench.harness.build import ARCHITECTURES, SOURCES, command, source_sha256
from kvsim.microbench.harness.run import NO_GPU
from kvsim.microbench.harness.toolchain import find_nvcc, toolkits
from tests.microbench.harness.emulation import EMULATOR, run

pytestmark = pytest.mark.cuda

KERNELS = {
    "stream_read", "stream_write", "stream_copy", "fill_bf16", "poison_rows", "empty_kernel", "copy_blocks", "rms_norm",
    "silu_mul", "kv_read", "decode_attention", "combine_splits", "prefill_attention",
}  # fmt: skip
REGISTERS = 65536
"""32-bit registers of one SM, of every architecture built for."""
SHARED_BYTES = 100 << 10
"""Shared memory of one SM on the smallest of them (sm_86, sm_89, sm_120); others have more."""
LITTLE_S, BYTES_PER_S = 700e-9, 33e9
"""Latency of memory, and bandwidth of one SM of an H200: the bytes that an SM must have on their way."""


@pytest.fixture(scope="session")
def nvcc():
    try:
        return find_nvcc()
    except InputError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def made(nvcc, builds):
    """The program for all architectures, and what the assembler reported."""
    path = builds / "microbench-nvcc"
    asked = command(nvcc, ARCHITECTURES, path, ("-Xptxas", "-v", "-Xcompiler", "-Wall,-Wextra", "--threads", "2"))
    done = subprocess.run(asked, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return path, done.stderr


@pytest.fixture(scope="module")
def reports(made):
    """(kernel, architecture) to what the assembler said of it."""
    found = {}
    for part in made[1].split("Compiling entry function '")[1:]:
        mangled, arch = re.match(r"(\w+)' for 'sm_(\d+)'", part).groups()
        name = next(name for name in sorted(KERNELS, key=len, reverse=True) if name in mangled)
        paged = {"ILb1E": "<true>", "ILb0E": "<false>"}.get(next(iter(re.findall("ILb[01]E", mangled)), ""), "")
        numbers = {
            "stack": r"(\d+) bytes stack frame", "stores": r"(\d+) bytes spill stores",
            "loads": r"(\d+) bytes spill loads", "registers": r"Used (\d+) registers", "shared": r"(\d+) bytes smem",
        }  # fmt: skip
        read = {key: re.search(pattern, part) for key, pattern in numbers.items()}
        found[name + paged, arch] = {key: int(match[1]) if match else 0 for key, match in read.items()}
    return found


def resident(report, threads):
    """Blocks of one SM that its registers and shared memory allow. Registers are given by eight to each thread."""
    by_registers = REGISTERS // (-(-report["registers"] // 8) * 8 * threads)
    return min(by_registers, SHARED_BYTES // (report["shared"] + 1024))


def test_every_kernel_is_compiled_for_every_architecture_without_a_warning(made, reports):
    assert {name.partition("<")[0] for name, _ in reports} == KERNELS
    assert {arch for _, arch in reports} == set(ARCHITECTURES)
    assert len(reports) == (len(KERNELS) + 2) * len(ARCHITECTURES)
    assert "warning" not in made[1]


def test_no_kernel_spills_or_keeps_a_stack(reports):
    for which, report in reports.items():
        assert (report["stack"], report["stores"], report["loads"]) == (0, 0, 0), which


def test_paged_and_contiguous_kernels_have_the_same_blocks_per_sm(reports):
    for arch in ARCHITECTURES:
        for name, threads in (("decode_attention", 128), ("kv_read", 256)):
            paged, contiguous = (resident(reports[f"{name}<{which}>", arch], threads) for which in ("true", "false"))
            assert paged == contiguous >= 3, (name, arch, paged, contiguous)


def test_enough_bytes_are_on_their_way_to_hide_the_latency_of_memory(reports):
    for arch in ARCHITECTURES:
        # A warp of decode attention asks for 16 tokens' K and V rows of 256 bytes before it waits.
        decode = resident(reports["decode_attention<true>", arch], 128) * 4 * 16 * 2 * 256
        reading = resident(reports["kv_read<true>", arch], 256) * 256 * 8 * 16
        assert min(decode, reading) > LITTLE_S * BYTES_PER_S, arch


def test_kv_is_loaded_sixteen_bytes_at_a_time(made):
    listings = _machine_code(made[0])
    for arch, kernels in listings.items():
        for name in ("kv_read", "decode_attention", "prefill_attention"):
            for code in (code for kernel, code in kernels.items() if name in kernel):
                assert len(re.findall(r"LDG\.E\.128", code)) >= 8, (name, arch)
                assert not re.search(r"\b(LDL|STL)\b", code), (name, arch)
    assert set(listings) == {f"sm_{arch}" for arch in ARCHITECTURES}


def test_tensor_cores_do_the_products_of_attention(made):
    for arch, kernels in _machine_code(made[0]).items():
        for name in ("decode_attention", "prefill_attention"):
            assert all("HMMA.16816.F32.BF16" in code for kernel, code in kernels.items() if name in kernel), (
                name,
                arch,
            )


def test_without_a_driver_the_program_ends_with_exit_code_77(made):
    if os.path.exists("/dev/nvidia0"):
        pytest.skip("this machine has a GPU")
    ran = run(made[0])
    assert ran.code == NO_GPU
    assert ran.lines == [
        {
            "type": "error", "bench": "all", "code": 35,
            "message": "no usable GPU: CUDA driver version is insufficient for CUDA runtime version",
        }
    ]  # fmt: skip


def test_the_real_program_runs_under_a_fake_runtime_and_verifies_nothing(nvcc, builds, tmp_path):
    fake, program, launches = builds / "libcudart.so", builds / "microbench-fake", tmp_path / "launches.txt"
    host = [str(nvcc.path), "-std=c++17", "-cudart", "none"]
    library = [*host, "-shared", "-Xcompiler", "-fPIC", "-o", str(fake), str(EMULATOR / "fake_cudart.cpp")]
    subprocess.run(library, check=True, capture_output=True)
    asked = command(nvcc, ["90"], program, ("-cudart", "none", str(fake), "-Xlinker", f"-rpath={builds}", "-O1"))
    subprocess.run([part for part in asked if part != "-O3"], check=True, capture_output=True)
    trace = tmp_path / "trace.txt"
    trace.write_text("# name small\na 0 4096\nf 0\n")
    ran = run(program, "--frag", trace, "--cublas", "libnothing.so", FAKE_LAUNCHES=str(launches))
    (env,) = ran.of("env")
    assert (env["backend"], env["device"], env["source_sha256"]) == ("fake", "fake", source_sha256())
    assert env["nvcc"].startswith(nvcc.release)
    computed = [
        point for point in ran.of("point") if point["bench"] in ("hbm", "kv_read", "decode_attn", "prefill_attn")
    ]
    assert computed
    assert all(point["verified"] is False for point in computed)
    assert all(point["rel_err"] is None for point in computed)  # NaN is no JSON
    assert {skip["bench"] for skip in ran.of("skip")} == {"gemm", "step", "alloc"}
    assert ran.code == 1
    names = launches.read_text()
    for name in KERNELS - {"rms_norm", "silu_mul"}:
        assert name in names


def test_nvrtc_takes_the_same_header():
    libraries = [path for root in toolkits() for path in sorted((root / "lib").glob("libnvrtc*.so.13*"))]
    if not libraries:
        pytest.skip("no NVRTC: pip install 'kvsim[cuda-check]' brings one")
    # It looks for its builtins among what is loaded.
    *_, nvrtc = [ctypes.CDLL(str(path)) for path in sorted(libraries, key=lambda path: "builtins" not in path.name)]
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    source = b'#include "kernels.h"\ntemplate __global__ void decode_attention<true>(DecodeArgs);\n'
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None) == 0
    options = [f"-I{SOURCES / 'kernels'}".encode(), b"-arch=sm_90", b"-std=c++17"]
    compiled = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    assert compiled == 0, log.value.decode()
    assert nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)) == 0
    assert size.value > 10_000


def _machine_code(program):
    """Architecture to kernel to its listing, by cuobjdump of the extra `cuda-check`, or of the toolkit."""
    tool = shutil.which("cuobjdump") or next(
        (str(root / "bin" / "cuobjdump") for root in toolkits() if (root / "bin" / "cuobjdump").is_file()), None
    )
    if tool is None:
        pytest.skip("no cuobjdump: pip install 'kvsim[cuda-check]' brings one")
    folder = os.path.dirname(tool)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run([tool, "-sass", str(program)], capture_output=True, text=True, env=environment, check=True)
    found = {}
    for part in re.split(r"\n\s*code for ", done.stdout)[1:]:
        arch, rest = part.split("\n", 1)
        for kernel in re.split(r"\n\s*Function : ", rest)[1:]:
            name, code = kernel.split("\n", 1)
            found.setdefault(arch.strip(), {})[name.strip()] = code
    return found
