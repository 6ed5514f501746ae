"""Builds the program that measures; what was built of the same sources for the same GPUs is used again."""

import os
import subprocess
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from kvsim.errors import RunError
from kvsim.microbench.harness.toolchain import Nvcc
from kvsim.version import __version__

SOURCES = Path(__file__).parent.parent / "cuda"
PROGRAM = "microbench"
ARCHITECTURES = ("80", "90", "100", "120")
"""One of each generation; machine code runs on the later ones of its generation as well."""
FLAGS = ("-std=c++17", "-O3", "-Wno-deprecated-gpu-targets")


def source_sha256() -> str:
    """Of all sources, names and contents: two programs with the same one measure the same."""
    digest = sha256()
    for path in sorted(path for path in SOURCES.rglob("*") if path.suffix in (".cu", ".h")):
        digest.update(f"{path.relative_to(SOURCES).as_posix()}\0".encode())
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def cache_folder() -> Path:
    """Where built programs are kept: below XDG_CACHE_HOME, or ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kvsim" / "microbench"


def definitions(architectures: Sequence[str]) -> list[str]:
    """What the program says of itself in its first line, as compiler flags."""
    about = {
        "KV_SOURCE_SHA256": source_sha256(),
        "KV_VERSION": __version__,
        "KV_ARCH": ",".join(f"sm_{one}" for one in architectures),
    }
    return [f'-D{name}="{value}"' for name, value in about.items()]


def command(nvcc: Nvcc, architectures: Sequence[str], output: Path, extra: Sequence[str] = ()) -> list[str]:
    """The compiler's command line. PTX of the oldest goes along for GPUs of none of the generations."""
    oldest = min(architectures, key=lambda one: int(one.rstrip("af")))
    targets = [f"-gencode=arch=compute_{one},code=sm_{one}" for one in architectures]
    targets.append(f"-gencode=arch=compute_{oldest},code=compute_{oldest}")
    parts = [str(nvcc.path), *FLAGS, *targets, f"-I{SOURCES}", *definitions(architectures), *nvcc.link_flags, *extra]
    return [*parts, "-o", str(output), str(SOURCES / f"{PROGRAM}.cu")]


def build(nvcc: Nvcc, architectures: Sequence[str] = ARCHITECTURES, *, folder: Path | None = None) -> tuple[Path, bool]:
    """The program, and whether it was built just now. Raises RunError with what the compiler said."""
    asked = f"{source_sha256()} {__version__} {nvcc.release} {' '.join(architectures)} {' '.join(FLAGS)}"
    key = f"{sha256(asked.encode()).hexdigest()[:16]}-{'-'.join(f'sm{one}' for one in architectures)}"
    place = (folder or cache_folder()) / key
    built = place / PROGRAM
    if built.is_file():
        return built, False
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        made = Path(scratch) / PROGRAM
        asked_for = subprocess.run(
            command(nvcc, architectures, made), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        if asked_for.returncode != 0:
            said = (asked_for.stderr or asked_for.stdout).strip()
            raise RunError(f"{nvcc.path} (release {nvcc.release}) could not build the microbenchmark:\n{said}")
        os.replace(made, built)
    return built, True
