"""Builds the harness for the CPU, whole or with something changed, and runs it."""

import fcntl
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from kvsim.microbench.harness.build import SOURCES

EMULATOR = Path(__file__).parent.parent / "emulator"
WARNINGS = ("-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas")
ADDRESS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
THREAD = ("-O1", "-g", "-fsanitize=thread", "-DEMU_THREADS")
ABOUT = ('-DKV_SOURCE_SHA256="tests"', '-DKV_VERSION="tests"', '-DKV_ARCH="cpu"')


@dataclass(frozen=True)
class Change:
    """In a file of the sources: text that occurs there once, and what is put in its place."""

    file: str
    old: str
    new: str


def gpp():
    """The C++ compiler, or None."""
    return shutil.which("g++")


def compiled(folder, name, sources, flags, changes=()):
    """The program `name` in `folder`, compiled unless it is there from the same sources (by another worker, say)."""
    tree = [*sorted(SOURCES.rglob("*.h")), *sorted(SOURCES.rglob("*.cu")), *sorted(EMULATOR.iterdir())]
    key = sha256(b"\0".join([path.read_bytes() for path in tree] + [repr((flags, changes)).encode()])).hexdigest()[:12]
    made = folder / f"{name}-{key}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}-{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if made.exists():
            return made
        root = SOURCES
        if changes:
            root = folder / f"{name}-{key}.src"
            shutil.copytree(SOURCES, root, dirs_exist_ok=True)
        for change in changes:
            text = (root / change.file).read_text()
            assert text.count(change.old) == 1, f"{change.file}: {change.old!r} is there {text.count(change.old)} times"
            (root / change.file).write_text(text.replace(change.old, change.new))
        command = ["g++", "-std=c++20", *flags, f"-I{EMULATOR}", f"-I{root}", "-o", f"{made}.part", *map(str, sources)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-4000:]
        os.replace(f"{made}.part", made)
    return made


def emulated(folder, *changes, flags=("-O1",)):
    """The harness on the CPU, with changes."""
    links = ("-pthread", "-rdynamic")
    warnings = () if changes else WARNINGS
    return compiled(folder, "microbench", [EMULATOR / "emulated.cpp"], (*flags, *warnings, *ABOUT, *links), changes)


def fake_cublas(folder):
    """A cuBLAS for it."""
    return compiled(folder, "libcublas.so", [EMULATOR / "fake_cublas.cpp"], ("-O2", "-shared", "-fPIC", *WARNINGS))


@dataclass(frozen=True)
class Ran:
    """What a program did."""

    code: int
    out: str
    err: str

    @property
    def lines(self):
        return [json.loads(line) for line in self.out.splitlines()]

    def of(self, kind):
        return [line for line in self.lines if line["type"] == kind]

    def points(self, bench):
        return [point for point in self.of("point") if point["bench"] == bench and point["role"] != "anchor"]


def run(program, *arguments, gpu=None, folder=None, timeout=280, **variables):
    """Run it on the smallest sizes. `gpu`: what the emulated one is and costs, written into `folder`."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("EMU_")}
    environment.update(variables)
    if gpu is not None:
        described = folder / "gpu.txt"
        described.write_text("".join(f"{key} {value!r}\n" for key, value in gpu.items()))
        environment["EMU_GPU"] = str(described)
    done = subprocess.run(
        [str(program), "--preset", "tiny", "--samples", "1", "--sample-us", "20", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=timeout,
    )
    return Ran(done.returncode, done.stdout, done.stderr)
