"""SGLang's own scheduler before the engine: leaping is stepping, and everything is conserved."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.request import Request
from kvsim.scheduling.sglang.policy.order import AGNOSTIC, AWARE
from tests.effort import examples
from tests.laws.agreement import WARMUPS, WINDOWS, keeps_every_law, leaps_as_it_steps
from tests.laws.cases import everything, run_case
from tests.laws.test_prefix_caching import cases

EXAMPLES = examples(30)


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
        "schedule_policy": draw(st.sampled_from(AGNOSTIC + AWARE)),
        "eviction": draw(st.sampled_from(["lru", "lfu", "fifo", "slru"])),
        "enable_mixed_chunk": draw(st.booleans()),
        "overlap": draw(st.booleans()),
        "caching": draw(st.sampled_from([True, True, True, False])),
    }


@settings(max_examples=4 * EXAMPLES)
@given(sglang_cases())
def test_leaping_is_stepping_and_everything_is_conserved(case):
    keeps_every_law(case, leaps_as_it_steps(case))


@settings(max_examples=EXAMPLES)
@given(sglang_cases(), WARMUPS, WINDOWS)
def test_what_is_measured_in_a_window_does_not_depend_on_leaping(case, warmup_ps, window):
    leaps_as_it_steps(case, warmup_ps=warmup_ps, window=window)


def test_under_hrrn_whoever_comes_in_the_middle_of_a_leap_has_the_age_of_its_pass():
    """One at a time. "2" and "3" join the queue while "0" decodes; "3" is the shorter, but "2" has waited longer."""
    case = {
        "scheduler": "sglang",
        "requests": [Request(0, 0, 8, 60), Request(1, 50, 4, 2), Request(2, 60, 30, 2), Request(3, 560, 20, 2)],
        "allocator": "prefix",
        "pool_slots": 500,
        "block_size": 1,
        "max_running_requests": 1,
        "chunked_prefill_size": 256,
        "schedule_policy": "hrrn",
        "eviction": "lru",
        "enable_mixed_chunk": False,
        "overlap": False,
        "caching": True,
        "max_num_batched_tokens": 256,
        "max_model_len": 400,
        "horizon_ps": None,
        "step_time": {"base_ps": 10, "token_ps": 0, "context_ps": 0, "copied_ps": 0},
    }
    leaping, stepping = run_case(case, stepwise=False), run_case(case, stepwise=True)
    assert everything(leaping) == everything(stepping)
    assert [ended.id for ended in leaping.recording.requests.ended] == [0, 1, 2, 3]
