"""Where nvcc, cuBLAS and a GPU are on this machine; nothing here needs one of them to be there."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kvsim.errors import InputError

HOW_TO_GET_NVCC = "pip install 'kvsim[cuda]' brings one, or name one with --nvcc PATH"
WHEELS = Path("nvidia") / "cu13"
"""Where the wheels of the `cuda` extra put a toolkit, below site-packages."""


@dataclass(frozen=True, slots=True)
class Nvcc:
    """A CUDA compiler: its path, its release (`13.0`), and what it needs to be told to link."""

    path: Path
    release: str
    link_flags: tuple[str, ...]


def find_nvcc(given: str | None = None) -> Nvcc:
    """The compiler that was named, or that of CUDA_HOME, of PATH, or of the `cuda` extra, in this order.

    Raises InputError where there is none, or what was named is none.
    """
    if given is not None:
        return _compiler(Path(given), f"--nvcc {given}")
    home = os.environ.get("CUDA_HOME")
    if home:
        return _compiler(Path(home) / "bin" / "nvcc", f"CUDA_HOME={home}")
    on_path = shutil.which("nvcc")
    if on_path is not None:
        return _compiler(Path(on_path), "nvcc on PATH")
    for root in toolkits():
        if (root / "bin" / "nvcc").is_file():
            return _compiler(root / "bin" / "nvcc", "the cuda extra")
    raise InputError(f"no nvcc: none under CUDA_HOME, on PATH or in site-packages; {HOW_TO_GET_NVCC}")


def toolkits() -> Iterator[Path]:
    """Folders in which wheels of NVIDIA may have put parts of a toolkit."""
    for folder in dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path]):
        root = Path(folder) / WHEELS
        if root.is_dir():
            yield root


def find_cublas(given: str | None = None) -> str | None:
    """The library that was named, or that of a wheel; None: let the loader look. Raises InputError for no file."""
    if given is not None:
        if not Path(given).is_file():
            raise InputError(f"--cublas: {given} is no file; give libcublas.so.13, or leave it out")
        return str(Path(given).resolve())
    for root in toolkits():
        found = root / "lib" / "libcublas.so.13"
        if found.is_file():
            return str(found)
    return None


def why_no_gpu() -> str | None:
    """What keeps this machine from running CUDA programs, in words; None where a driver sees a GPU."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver on this machine (libcuda.so.1 is not there)"
    code = driver.cuInit(0)
    if code != 0:
        return f"the NVIDIA driver does not start (cuInit returned {code})"
    count = ctypes.c_int(0)
    code = driver.cuDeviceGetCount(ctypes.byref(count))
    return None if code == 0 and count.value > 0 else "the NVIDIA driver sees no GPU"


def architecture() -> str | None:
    """The first GPU's, as nvcc counts it (`90`), by nvidia-smi; None where that is not there or does not say."""
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return None
    asked = subprocess.run(
        [smi, "--query-gpu=compute_cap", "--format=csv,noheader"], capture_output=True, text=True, check=False
    )
    found = re.match(r"(\d+)\.(\d+)\s", asked.stdout)
    return f"{found[1]}{found[2]}" if asked.returncode == 0 and found else None


def _compiler(path: Path, where: str) -> Nvcc:
    try:
        asked = subprocess.run([str(path), "--version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise InputError(f"{where}: {path} cannot be run ({error.strerror}); {HOW_TO_GET_NVCC}") from None
    release = re.search(r"release (\d+\.\d+)", asked.stdout)
    if asked.returncode != 0 or release is None:
        raise InputError(f"{where}: {path} is no nvcc (its --version names no release); {HOW_TO_GET_NVCC}")
    # Wheels have `lib` where an installed toolkit has `lib64`, and nvcc 13.0 looks there alone.
    library = path.resolve().parent.parent / "lib"
    flags = (f"-L{library}",) if (library / "libcudart_static.a").is_file() else ()
    return Nvcc(path, release[1], flags)
