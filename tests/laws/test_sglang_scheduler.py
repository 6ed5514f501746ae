"""SGLang's own scheduler before the engine: leaping is stepping, and everything is conserved."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.cases import everything, run_case
from tests.laws.test_conservation import LAWS
from tests.laws.test_prefix_caching import cases

EXAMPLES = 50


@st.composite
def sglang_cases(draw):
    case = draw(cases())
    page = draw(st.sampled_from([1, 1, 4, 16]))
    pool = max(4 * page, case["pool_slots"] // page * page)
    least = draw(st.sampled_from([page, 4 * page, 8 * page]))
    return case | {
        "scheduler": "sglang",
        "kernel": "ragged",
        "workspace_tokens": None,
        "pool_slots": pool,
        "block_size": page,
        "max_running_requests": case["max_num_seqs"],
        "chunked_prefill_size": draw(st.sampled_from([None, least, 256])),
        "schedule_policy": draw(st.sampled_from(["fcfs", "lpm", "dfs-weight", "random", "lof"])),
        "eviction": draw(st.sampled_from(["lru", "lfu", "fifo", "slru"])),
        "enable_mixed_chunk": draw(st.booleans()),
        "overlap": draw(st.booleans()),
        "caching": draw(st.sampled_from([True, True, True, False])),
    }


@settings(max_examples=4 * EXAMPLES)
@given(sglang_cases())
def test_leaping_is_stepping_and_everything_is_conserved(case):
    leaping, stepping = run_case(case, stepwise=False), run_case(case, stepwise=True)
    assert everything(leaping) == everything(stepping)
    for law in LAWS:
        law(case, leaping)


@settings(max_examples=EXAMPLES)
@given(sglang_cases(), st.integers(0, 60_000), st.sampled_from(["auto", "last_finish", "saturated"]))
def test_what_is_measured_in_a_window_does_not_depend_on_leaping(case, warmup_ps, window):
    runs = [run_case(case, stepwise=stepwise, warmup_ps=warmup_ps, window=window) for stepwise in (False, True)]
    assert everything(runs[0]) == everything(runs[1])
