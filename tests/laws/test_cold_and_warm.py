"""Caches that are filled before the run and emptied within it: leaping is stepping, and nothing is lost."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.engine.flushes import Flushes
from tests.laws.agreement import keeps_every_law
from tests.laws.cases import everything, run_case
from tests.laws.test_prefix_caching import cases
from tests.laws.test_sglang_scheduler import sglang_cases
from tests.laws.test_vllm_scheduler import followed_cases

EXAMPLES = 25
KINDS = {"prefix": cases("prefix"), "radix": cases("radix"), "vllm": followed_cases(), "sglang": sglang_cases()}


@st.composite
def outside(draw):
    """When the cache is emptied, whether that waits, and which requests have been served before."""
    return {
        "times_ps": sorted(draw(st.sets(st.integers(1, 40_000), max_size=6))),
        "waits": draw(st.booleans()),
        "warm": draw(st.integers(0, 6)),
    }


def run_with(case, times_ps, waits, warm, **how):
    # Their contents are those of requests that come, so that something is found; their own ids lie beyond those.
    earlier = [replace(request, id=1000 + request.id) for request in case["requests"][:warm]]
    options = {"warm": earlier, "flushes": lambda: Flushes(times_ps, waits=waits), "kv_events": True}
    return run_case(case, **options, **how)


@pytest.mark.parametrize("kind", KINDS)
def test_leaping_is_stepping_and_everything_is_conserved(kind):
    @settings(max_examples=EXAMPLES)
    @given(KINDS[kind], outside())
    def agree(case, what):
        if not case.get("caching", True):
            case = case | {"caching": True}
        leaping, stepping = (run_with(case, **what, stepwise=stepwise) for stepwise in (False, True))
        assert everything(leaping) == everything(stepping)
        assert leaping.recording.flushes == stepping.recording.flushes
        assert list(leaping.recording.cache.events) == list(stepping.recording.cache.events)
        keeps_every_law(case, leaping)
        asked = {asked_ps for asked_ps, _ in leaping.recording.flushes}
        assert asked <= set(what["times_ps"])
        cleared = {
            round(batch["ts"] * 1e12)
            for batch in leaping.recording.cache.events
            for event in batch["events"]
            if event["type"] == "AllBlocksCleared"
        }
        assert cleared == {0} | {done_ps for _, done_ps in leaping.recording.flushes if done_ps is not None}

    agree()


def test_the_cases_meet_warm_hits_caches_emptied_in_a_rest_and_when_the_last_one_leaves_and_refusals():
    met = Counter()

    @settings(max_examples=80)
    @given(cases("prefix"), outside())
    def count(case, what):
        log = run_with(case, **what, stepwise=False)
        for asked_ps, done_ps in log.recording.flushes:
            met["at once"] += done_ps == asked_ps
            met["when the last one left"] += done_ps is not None and done_ps > asked_ps
            met["never"] += done_ps is None
        met["while something was cached"] += any(not cached for cached in log.recording.memory.rests.values())
        met["warm"] += log.recording.memory.rests.get(0, 0) > 0

    count()
    assert len(met) == 5, met
    assert all(times >= 5 for times in met.values()), met
