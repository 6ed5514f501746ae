"""Finding a compiler, building once, and what is said where something is missing."""

import shutil
import subprocess

import pytest

from kvsim.errors import InputError, NoGpuError, RunError
from kvsim.microbench.harness.build import SOURCES, build, command, source_sha256
from kvsim.microbench.harness.run import Order, measure
from kvsim.microbench.harness.toolchain import find_cublas, find_nvcc

COMPILER = """#!/bin/sh
case "$1" in --version) echo "Cuda compilation tools, release {release}, V{release}.88"; exit 0;; esac
echo run >> {calls}
while [ $# -gt 0 ]; do if [ "$1" = -o ]; then echo '#!/bin/sh' > "$2"; chmod +x "$2"; fi; shift; done
exit {code}
"""


def toolkit(folder, release="13.0", code=0):
    """A folder laid out as the wheels lay out theirs, with a compiler that counts its calls."""
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "lib" / "libcudart_static.a").touch()
    path = folder / "bin" / "nvcc"
    path.write_text(COMPILER.format(release=release, calls=folder / "calls", code=code))
    path.chmod(0o755)
    return folder


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """A machine without nvcc."""
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path / "site"))
    monkeypatch.setattr("sys.path", [])
    return tmp_path


def test_the_named_compiler_beats_cuda_home_beats_path_beats_the_wheels(nowhere, monkeypatch):
    wheels = toolkit(nowhere / "site" / "nvidia" / "cu13", "13.0")
    assert find_nvcc().release == "13.0"
    assert find_nvcc().link_flags == (f"-L{wheels}/lib",)  # where nvcc 13.0 does not look of its own accord
    monkeypatch.setenv("PATH", f"{toolkit(nowhere / 'path', '13.1')}/bin:/usr/bin:/bin")
    assert find_nvcc().release == "13.1"
    monkeypatch.setenv("CUDA_HOME", str(toolkit(nowhere / "home", "13.2")))
    assert find_nvcc().release == "13.2"
    assert find_nvcc(str(toolkit(nowhere / "named", "13.3") / "bin" / "nvcc")).release == "13.3"


def test_without_a_compiler_it_is_said_where_one_was_looked_for_and_how_to_get_one(nowhere):
    with pytest.raises(InputError, match=r"no nvcc: none under CUDA_HOME, on PATH or in site-packages; pip install"):
        find_nvcc()
    with pytest.raises(InputError, match=r"--nvcc /nowhere: /nowhere cannot be run"):
        find_nvcc("/nowhere")
    with pytest.raises(InputError, match=r"is no nvcc \(its --version names no release\)"):
        find_nvcc("/bin/true")


def test_a_program_is_built_once_for_the_same_sources_and_architectures(nowhere):
    root = toolkit(nowhere / "cuda")
    nvcc = find_nvcc(str(root / "bin" / "nvcc"))
    first, again, other = (build(nvcc, archs, folder=nowhere / "cache") for archs in (["90"], ["90"], ["80", "90"]))
    assert (first[1], again[1], other[1]) == (True, False, True)
    assert first[0] == again[0] != other[0]
    assert (root / "calls").read_text() == "run\nrun\n"
    assert [path.name for path in first[0].parent.iterdir()] == ["microbench"]


def test_a_failed_build_leaves_nothing_and_shows_what_the_compiler_said(nowhere):
    nvcc = find_nvcc(str(toolkit(nowhere / "cuda", code=3) / "bin" / "nvcc"))
    with pytest.raises(RunError, match=r"release 13\.0\) could not build the microbenchmark"):
        build(nvcc, ["90"], folder=nowhere / "cache")
    assert not [path for path in (nowhere / "cache").rglob("*") if path.is_file()]


def test_the_program_carries_its_sources_hash_and_machine_code_of_every_architecture(nowhere):
    nvcc = find_nvcc(str(toolkit(nowhere / "cuda") / "bin" / "nvcc"))
    words = command(nvcc, ["90", "80"], nowhere / "out")
    assert f'-DKV_SOURCE_SHA256="{source_sha256()}"' in words
    targets = [word.removeprefix("-gencode=") for word in words if word.startswith("-gencode=")]
    assert targets == [
        "arch=compute_90,code=sm_90", "arch=compute_80,code=sm_80", "arch=compute_80,code=compute_80",
    ]  # fmt: skip


def test_a_library_that_is_named_must_be_there(nowhere):
    assert find_cublas() is None
    with pytest.raises(InputError, match=r"--cublas: /nowhere\.so is no file"):
        find_cublas("/nowhere.so")


@pytest.mark.parametrize(
    ("script", "error", "said"),
    [
        ("echo 'microbench: no usable GPU: no CUDA device' >&2; exit 77", NoGpuError, "no usable GPU: no CUDA device"),
        ("echo oh >&2; exit 5", RunError, "ended with exit code 5 before it was done: oh"),
        ("kill -9 $$", RunError, "ended with signal 9"),
        ("exit 0", InputError, "holds no record"),
        ("echo '{\"type\": ' ; exit 1", InputError, "line 1: is no JSON"),
    ],
)
def test_a_program_that_does_not_end_well_is_not_taken_for_a_measurement(tmp_path, script, error, said):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    with pytest.raises(error, match=said):
        measure(program, Order(traces=[]), tmp_path / "results.jsonl")


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="this machine may have a GPU")
def test_the_gpu_session_ends_at_once_where_there_is_no_gpu(tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho 'no usable GPU' >&2; exit 77\n")
    program.chmod(0o755)
    session = [str(SOURCES.parent / "gpu_session.sh"), "-o", str(tmp_path / "out"), "-p", str(program)]
    done = subprocess.run(session, capture_output=True, text=True)
    assert done.returncode == 77
    assert "no usable GPU" in done.stderr


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="this machine may have a GPU")
def test_the_gpu_session_runs_every_part_and_notes_how_each_ended(tmp_path):
    for name in ("program", "kvsim"):
        (tmp_path / name).write_text('#!/bin/sh\ncase "$*" in *validate*) exit 1;; esac\n')
        (tmp_path / name).chmod(0o755)
    session = [str(SOURCES.parent / "gpu_session.sh"), "-o", str(tmp_path / "out"), "-p", str(tmp_path / "program")]
    done = subprocess.run(session, capture_output=True, text=True, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    ended = [line.split()[:3] for line in (tmp_path / "out" / "summary.txt").read_text().splitlines()]
    parts = ("verify", "quick", "full", "fit", "validate")
    assert ended == [[part, "exit", "1" if part == "validate" else "0"] for part in parts]
    assert done.returncode == 1
