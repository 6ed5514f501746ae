"""What a run may cost: CPU, memory and start-up, of whole processes, on the traffic w_n.

Machines differ, so each absolute figure is scaled by what a fixed piece of pure Python costs on this machine in the
same minute, against what it cost where the budgets were set. `pytest tests/budgets -s` (or `make bench`) prints them.
"""

import sys

import pytest

from tests.budgets.process import Cost, bench_run, best_of, kvsim
from tests.budgets.traffic import write_w

pytestmark = pytest.mark.budget

YARDSTICK = "x = 0\nfor i in range(6_000_000):\n    x += i * i % 7\n"
YARDSTICK_CPU_S = 0.60
"""CPU seconds of the yardstick on the machine for which the budgets below were set."""


@pytest.fixture(scope="module")
def pace() -> float:
    """How much slower than that machine this one is just now; never below one, so that budgets only widen."""
    return max(1.0, best_of(3, sys.executable, "-c", YARDSTICK).cpu_s / YARDSTICK_CPU_S)


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("w")
    return {
        "w_4000": write_w(folder / "w_4000.csv", 4000),
        "w_16000": write_w(folder / "w_16000.csv", 16000),
        "w_4000 x10": write_w(folder / "w_4000x10.csv", 4000, speed=10),
        "w_16000 x10": write_w(folder / "w_16000x10.csv", 16000, speed=10),
    }


def per_request_ms(small: Cost, large: Cost) -> float:
    return (large.cpu_s - small.cpu_s) / 12_000 * 1e3


def report(name: str, figure: float, unit: str, budget: float, pace: float) -> None:
    print(f"\n{name}: {figure:.3f} {unit} (budget {budget:g}, machine pace {pace:.2f})")


def test_help_starts_within_its_budget(pace):
    cost = best_of(5, *kvsim("--help"))
    report("kvsim --help", cost.cpu_s, "CPU s", 0.15, pace)
    assert cost.cpu_s <= 0.15 * pace


def test_a_whole_run_of_w_4000_stays_small(traces):
    cost = best_of(2, *bench_run(traces["w_4000"]))
    report("kvsim run w_4000", cost.peak_mb, "MB", 150, 1)
    assert cost.peak_mb <= 150


# Neighbours on a shared machine slow what needs memory by half and the yardstick, which needs none, by nothing: seconds
# are shown and judged by `make bench`, on a machine that is quiet.
@pytest.mark.slow
def test_a_whole_run_of_w_4000_stays_within_its_budget(traces, pace):
    cost = best_of(3, *bench_run(traces["w_4000"]))
    report("kvsim run w_4000", cost.cpu_s, "CPU s", 1.5, pace)
    assert cost.cpu_s <= 1.5 * pace


# A minute of runs whose difference is what a busy machine spreads most: shown and judged by `make bench`.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "flags", "budget_ms"),
    [("", (), 0.15), ("", ("--stepwise",), 0.5), (" x10", (), 0.3)],
    ids=["leaping", "stepwise", "saturated"],
)
def test_the_marginal_cost_of_a_request_stays_within_its_budget(traces, pace, name, flags, budget_ms):
    small = best_of(3, *bench_run(traces["w_4000" + name], *flags))
    large = best_of(3, *bench_run(traces["w_16000" + name], *flags))
    cost_ms = per_request_ms(small, large)
    report(f"a request of w_n{name} {' '.join(flags)}", cost_ms, "CPU ms", budget_ms, pace)
    assert cost_ms <= budget_ms * pace


@pytest.mark.parametrize("flags", [(), ("--set", "allocator.prefix_caching=true")], ids=["paged", "caching"])
def test_leaping_is_at_least_half_as_cheap_again_as_stepping(traces, flags):
    leaping = best_of(3, *bench_run(traces["w_4000"], *flags))
    stepping = best_of(3, *bench_run(traces["w_4000"], *flags, "--stepwise"))
    print(f"\nw_4000 {' '.join(flags)}, stepping over leaping: {stepping.cpu_s / leaping.cpu_s:.2f}")
    assert stepping.cpu_s > 1.2 * leaping.cpu_s
