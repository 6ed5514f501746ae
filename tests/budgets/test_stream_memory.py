"""A million generated requests pass through memory and leave nothing behind."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")

ROOT = Path(__file__).parents[2]

PROGRAM = """
import re, sys
from collections import deque
from kvsim.workload.arrivals import Clients, Poisson
from kvsim.workload.layers import Shared
from kvsim.workload.lengths import Constant, Preset, Uniform
from kvsim.workload.presets.arrivals import preset_arrivals
from kvsim.workload.sessions.laws import ClientLoop, SessionLaws
from kvsim.workload.sessions.loop import SessionTraffic
from kvsim.workload.stream import GeneratedTraffic, Workload

kind, count = sys.argv[1], int(sys.argv[2])
lengths = {"prompt_tokens": Preset(preset="azure-conv", of="prompt_tokens"),
           "output_tokens": Preset(preset="azure-conv", of="output_tokens")}
laws = SessionLaws(**lengths, turns=Uniform(min=1, max=9), new_tokens=Uniform(min=5, max=60),
                   think_ms=Constant(value=5000))
if kind == "plain":
    workload = Workload(GeneratedTraffic(arrivals=preset_arrivals("bursty-code"), **lengths, requests=count))
elif kind == "layers":
    layers = [Shared(name="system", tokens=100), Shared(name="documents", tokens=50, texts=1000, theta=1, count=3)]
    workload = Workload(GeneratedTraffic(arrivals=Clients(rate=50, clients=100), **lengths, requests=count),
                        layers=layers)
else:
    begin = {"clients": ClientLoop(clients=50)} if kind == "clients" else {"arrivals": Poisson(rate=5)}
    workload = Workload(SessionTraffic(laws, **begin, requests=count))
made = 0
if kind == "clients":
    waiting = deque(workload)
    while waiting:
        request = waiting.popleft()
        made += 1
        waiting.extend(workload.after(request.id, request.arrival_ps, "finished", request.output_tokens))
else:
    for request in workload:
        made += 1
assert made == count, (made, count)
print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
"""


def peak_kb(kind, count):
    command = [sys.executable, "-c", PROGRAM, kind, str(count)]
    return int(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize(("kind", "few", "many"), [
    ("plain", 100_000, 1_000_000),
    pytest.param("layers", 100_000, 1_000_000, marks=pytest.mark.slow),
    ("sessions", 20_000, 100_000),
    ("clients", 20_000, 100_000),
])  # fmt: skip
def test_a_million_requests_take_no_more_memory_than_a_few(kind, few, many):
    small, large = peak_kb(kind, few), peak_kb(kind, many)
    print(f"\n{kind}: {large / 1024:.1f} MB for {many:,} requests, {small / 1024:.1f} MB for {few:,}")
    assert large - small < 4 * 1024
