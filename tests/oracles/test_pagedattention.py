"""PagedAttention (Kwon et al., SOSP'23, arXiv 2309.06180), Fig. 2 and 13a: where the memory goes, how many run at once.

Read off the paper by others (s6.1, Fig. 2, Fig. 13a); the tolerances are those of the issue "Memory truth" and are not
widened. `scenarios/pagedattention-fig2.yaml` says how the lengths follow from printed numbers alone.
"""

from pathlib import Path

import pytest

from kvsim.memory.paged import PagedAllocator
from kvsim.request import Sequence
from kvsim.scenario import load_all
from kvsim.step import Ask, Chunk
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


FIGURE_15A = {"2-samples": 6.09, "4-samples": 8.53, "6-samples": 9.79}
"""Percent of the blocks that sharing a prompt saves on Alpaca (read off the figure by others)."""


def test_what_figure_15a_prints_stands_beside_a_run_with_the_means_of_alpaca():
    """No spread of the lengths is printed, so the distance is shown and not judged; more samples save more."""
    scenarios = load_all(SCENARIO.with_name("pagedattention-fig15.yaml"))
    results = compare([(scenario.label, scenario) for scenario in scenarios])
    saved = {result.name: 100 * result.metrics["saved_share"] for result in results}
    for name, published in FIGURE_15A.items():
        print(f"\n{name}: {saved[name]:.2f} ({published}) %")
    assert list(saved.values()) == sorted(saved.values())
    assert {result.name: 100 * result.published["saved_share"] for result in results} == pytest.approx(FIGURE_15A)


@pytest.mark.parametrize("samples", [2, 3, 6])
def test_parallel_sampling_saves_the_prompts_share_of_the_blocks_but_one(samples):
    """n samples of whole blocks of prompt: s (n - 1) / n of what they would hold apart, s the prompt's share (s3)."""
    prompt = 4 * 16

    def held(number):
        pool = PagedAllocator(16 * 1000, block_size=16)
        sequences = [Sequence(n, prompt, None, tokens=prompt) for n in range(number)]
        pool.acquire((Ask(sequences[0], prompt, True, prompt, True),))
        pool.settle([Chunk(sequences[0], prompt, 0)])
        sequences[0].tokens += 1
        for other in sequences[1:]:
            pool.fork(sequences[0], other)
        for sequence in sequences:
            pool.begin_decode(sequence)
        for _ in range(12 * 16):
            pool.acquire((), decodes=True)
            pool.settle([])
        return pool

    alone, together = held(1), held(samples)
    blocks = [pool.blocks - pool.free_blocks for pool in (alone, together)]
    apart = samples * blocks[0]
    share = (prompt // 16) / blocks[0]
    assert 1 - blocks[1] / apart == pytest.approx(share * (samples - 1) / samples, abs=1e-12)
    assert together.shared_slots == 16 * (apart - blocks[1])


def test_figure_13a_is_a_scenario_of_its_own_with_the_same_runs():
    scenarios = load_all(SCENARIO.with_name("pagedattention-fig13a.yaml"))
    printed = {one.label: one.settings.published["mean_running"] for one in scenarios}
    assert printed == {name: value for name, (value, _) in FIGURE_13A.items()}
