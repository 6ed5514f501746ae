"""What the suites of laws ask of a case: that every law holds, and that leaping is stepping."""

from hypothesis import strategies as st

from kvsim.step import ENDS
from tests.laws.cases import everything, run_case
from tests.laws.test_conservation import LAWS

WARMUPS = st.integers(0, 60_000)
WINDOWS = st.sampled_from(["auto", "last_finish", "saturated"])


def keeps_every_law(case, log):
    for law in LAWS:
        law(case, log)


def leaps_as_it_steps(case, **measured):
    """The leaping run, once it is found equal to the stepping one."""
    leaping, stepping = (run_case(case, stepwise=stepwise, **measured) for stepwise in (False, True))
    assert everything(leaping) == everything(stepping)
    return leaping


def ends_of_all(case, log):
    """How many requests ended how; nobody is left, and nobody gave up."""
    ends = [ended.end for ended in log.recording.requests.ended]
    assert len(ends) == len(case["requests"])
    assert not {"unfinished", "cancelled"} & set(ends)
    return {end: ends.count(end) for end in ENDS}
