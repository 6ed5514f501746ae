"""A run of a million requests takes little more memory than one of a tenth: its records go to files, or nowhere."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")

ROOT = Path(__file__).parents[2]

# What the system counts of a child may be the peak of this very process, from before the child became another program.
PROGRAM = """
import re, sys
from kvsim.cli.main import main
assert main(sys.argv[1:]) == 0
print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1], file=sys.stderr)
"""

SCENARIO = """
name: many-short
model: llama-3.1-8b
gpu: H100
pool: {blocks: 8192}
engine: {profile: vllm@0.33-sync, max_num_seqs: 256, max_num_batched_tokens: 8192, max_model_len: 4096}
allocator: {name: paged, block_size: 16}
workload: {rate: 300/s, prompt_tokens: 64, output_tokens: 8, requests: 1000}
"""

MB_FOR_900_000 = 60


CACHING = ("--set", "allocator.prefix_caching=true")


@pytest.mark.parametrize(("flags", "written", "few", "many"), [
    pytest.param((), False, 20_000, 200_000, id="summary alone"),
    # What is held before it is written is as large as it gets from 100,000 on.
    pytest.param((), True, 100_000, 250_000, id="run folder"),
    pytest.param(CACHING, False, 50_000, 200_000, id="prefix cache", marks=pytest.mark.slow),
    pytest.param((), False, 100_000, 1_000_000, id="summary alone, a million", marks=pytest.mark.slow),
    pytest.param((), True, 100_000, 1_000_000, id="run folder, a million", marks=pytest.mark.slow),
])  # fmt: skip
def test_the_peak_memory_of_a_run_hardly_grows_with_its_requests(tmp_path, flags, written, few, many):
    scenario = tmp_path / "many.yaml"
    scenario.write_text(SCENARIO)

    def peak_mb(requests: int) -> float:
        arguments = ["run", str(scenario), "--set", f"workload.requests={requests}", *flags, "--json"]
        if written:
            arguments += ["-o", str(tmp_path / str(requests))]
        command = [sys.executable, "-c", PROGRAM, *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return int(done.stderr) / 1000

    small, large = peak_mb(few), peak_mb(many)
    print(f"\n{large:.1f} MB for {many:,} requests, {small:.1f} MB for {few:,}")
    assert large - small <= MB_FOR_900_000 * (many - few) / 900_000
