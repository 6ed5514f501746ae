"""vLLM's own scheduler before the engine: as the batch scheduler where both can, and lawful where only it can."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.laws.agreement import WARMUPS, WINDOWS, keeps_every_law, leaps_as_it_steps
from tests.laws.cases import everything, run_case
from tests.laws.test_prefix_caching import cases

EXAMPLES = examples(30)


def followed(case, **rules):
    return case | {"scheduler": "vllm", "kernel": "ragged", "workspace_tokens": None} | rules


def one_by_one(case):
    """`case` without samples, whose prompts are computed once where they fork and are found cached where not."""
    for request in case["requests"]:
        request.more_outputs = ()
    return case | {"kernel": "ragged", "workspace_tokens": None}


@settings(max_examples=2 * EXAMPLES)
@given(cases(), st.booleans())
def test_one_batch_in_flight_is_the_batch_scheduler(case, caching):
    case = one_by_one(case) | {"caching": caching}
    case.pop("workspace_tokens")
    ours = run_case(followed(case), stepwise=False)
    theirs = run_case(case, stepwise=False)
    assert everything(ours) == everything(theirs)


@st.composite
def followed_cases(draw):
    case = draw(cases())
    return followed(
        case,
        async_scheduling=draw(st.booleans()),
        caching=draw(st.sampled_from([True, True, False])),
        policy=draw(st.sampled_from(["fcfs", "fcfs", "priority"])),
        prefill_schedule_interval=draw(st.sampled_from([1, 1, 1, 3])),
    )


@settings(max_examples=4 * EXAMPLES)
@given(followed_cases())
def test_leaping_is_stepping_and_everything_is_conserved(case):
    keeps_every_law(case, leaps_as_it_steps(case))


@settings(max_examples=EXAMPLES)
@given(followed_cases(), WARMUPS, WINDOWS)
def test_what_is_measured_in_a_window_does_not_depend_on_leaping(case, warmup_ps, window):
    leaps_as_it_steps(case, warmup_ps=warmup_ps, window=window)
