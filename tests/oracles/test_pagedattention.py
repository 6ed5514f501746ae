"""PagedAttention (Kwon et al., SOSP'23, arXiv 2309.06180), Fig. 2 and 13a: where the memory goes, how many run at once.

Read off the paper by others (s6.1, Fig. 2, Fig. 13a); the tolerances are those of the issue "Memory truth" and are not
widened. `scenarios/pagedattention-fig2.yaml` says how the lengths follow from printed numbers alone.
"""

from pathlib import Path

import pytest

from kvsim.scenario import load_all
from kvsim.study import compare

pytestmark = pytest.mark.oracle

SCENARIO = Path(__file__).parents[2] / "scenarios" / "pagedattention-fig2.yaml"

# Percent of the pool: token states, reservation, internal, external and others; then the tolerances in points.
FIGURE_2 = {
    "orca-max": ((20.4, 13.3, 57.3, 8.9), (2, 2, 2, 2)),
    "orca-pow2": ((26.8, 17.9, 13.6, 41.6), (3, 3, 3, 5)),
    "orca-oracle": ((38.2, 25.2, 0.0, 36.6), (2, 2, 2, 2)),
}
# Mean batch, and the tolerance as a share.
FIGURE_13A = {"orca-max": (7.00, 0.05), "orca-pow2": (9.81, 0.05), "orca-oracle": (13.62, 0.05), "vllm": (30.42, 0.15)}
TOKEN_STATES_OF_ALLOCATED_VLLM = 96.3


@pytest.fixture(scope="module")
def metrics():
    results = compare([(scenario.label, scenario) for scenario in load_all(SCENARIO)])
    return {result.name: result.metrics for result in results}


@pytest.mark.parametrize("system", FIGURE_2)
def test_the_shares_of_figure_2(metrics, system):
    shares = metrics[system]["mean_share"]
    found = (
        100 * shares["used"],
        100 * shares["reserved"],
        100 * shares["internal"],
        100 * (shares["external"] + shares["free"]),
    )
    published, tolerances = FIGURE_2[system]
    print(f"\n{system}: {', '.join(f'{f:.1f} ({p})' for f, p in zip(found, published, strict=True))} %")
    for value, target, points in zip(found, published, tolerances, strict=True):
        assert abs(value - target) <= points


def test_the_token_states_of_vllm_as_a_share_of_what_is_allocated(metrics):
    shares = metrics["vllm"]["mean_share"]
    found = 100 * shares["used"] / (1 - shares["free"] - shares["external"])
    print(f"\nvllm: {found:.1f} ({TOKEN_STATES_OF_ALLOCATED_VLLM}) %")
    assert abs(found - TOKEN_STATES_OF_ALLOCATED_VLLM) <= 2


@pytest.mark.parametrize("system", FIGURE_13A)
def test_the_mean_batch_of_figure_13a(metrics, system):
    published, share = FIGURE_13A[system]
    print(f"\n{system}: {metrics[system]['mean_running']:.2f} ({published})")
    assert metrics[system]["mean_running"] == pytest.approx(published, rel=share)


def test_orca_max_runs_exactly_seven_and_loses_885_percent_to_the_remainder(metrics):
    """15,728 // 2,048 = 7, and 1,392 slots are left over."""
    assert metrics["orca-max"]["pool_tokens"] == 15_728
    assert metrics["orca-max"]["max_running"] == 7
    shares = metrics["orca-max"]["mean_share"]
    assert round(100 * (shares["external"] + shares["free"]), 2) == 8.85
    assert round(metrics["orca-max"]["mean_running"], 2) == 7.00
