"""What people read of a diagnosis: sentences that say what was measured, and names that cannot break a table."""

from dataclasses import replace

import pytest

from kvsim import Scenario
from kvsim.reporting.diagnosis.folder import readme
from kvsim.reporting.diagnosis.table import cure_rows, pressure_rows
from kvsim.reporting.diagnosis.verdict import percent, verdict
from kvsim.study.diagnosis import diagnose
from kvsim.study.diagnosis.limits import Limits
from tests.study.diagnosis.conftest import PLANTED


@pytest.fixture(scope="module")
def found():
    return diagnose(Scenario.from_dict(PLANTED["reuse"]))


def test_reuse_tells_what_a_cache_without_bounds_finds(found):
    said = verdict(found)
    assert said.startswith("Reuse presses most: ")
    assert "would find 92 % of the prompt tokens (nothing is cached)." in said
    assert "Its cure, " in said


def test_the_rows_are_those_of_the_run_and_of_each_cure_that_was_run(found):
    rows = cure_rows(found)
    assert [name for name, _ in rows] == ["before: as it is", *(f"-> {one.cure.name}" for one in found.tried)]
    assert {len(cells) for _, cells in rows} == {7}
    assert [name for name, _, _ in pressure_rows(found.pressures)] == ["representation", "organisation", "reuse"]


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (
            Limits(limit="batch limit", max_num_seqs=8, batch_full_share=0.5),
            "The batch does: 50 % of the time requests wait while 8 run (engine.max_num_seqs).",
        ),
        (Limits(limit="compute", max_num_seqs=8, waiting_share=0.3), "Compute does: 30 % of the time requests wait"),
        (
            Limits(limit="compute", max_num_seqs=8, waiting_share=0.0, met_share=0.75),
            "Compute does: 25 % of the requests miss their goals although nobody waits.",
        ),
        (
            Limits(limit="low load", max_num_seqs=8, busy_share=0.4),
            "Nothing does at this load: nobody waits, and the GPU is idle 60 % of the time.",
        ),
        (Limits(limit="low load", max_num_seqs=8, busy_share=1.0), "Nothing does at this load: nobody waits."),
        (Limits(limit="not known", max_num_seqs=8), "What does is not known of a fleet."),
    ],
)
def test_where_memory_is_not_short_it_says_what_limits(found, limits, said):
    shortage = replace(found.shortage, blocked={}, preemptions=0, never_fit=0, regret_rate=0.0)
    calm = replace(found, shortage=shortage, limits=limits)
    assert said in verdict(calm)
    assert "Prompts repeat, though: a cache would find 92 % of their tokens" in verdict(calm)


def test_a_pool_without_bounds_that_changes_nothing_says_that_memory_does_not_limit(found):
    tried = [replace(one, numbers=found.before) for one in found.tried]
    said = verdict(replace(found, tried=tried))
    assert "None of its cures brings anything that is felt." in said
    assert "memory runs short, and is not what limits this run" in said


def test_a_run_of_nothing_says_so(found):
    assert verdict(replace(found, limits=Limits(limit="nothing ran", max_num_seqs=8))).startswith("Nothing ran")


def test_where_no_request_fits_it_says_so_and_with_what_some_do(found):
    stuck = replace(
        found,
        limits=Limits(limit="nothing ran", max_num_seqs=8),
        shortage=replace(found.shortage, never_fit=9),
        before=replace(found.before, requests_per_s=0.0, goodput_per_s=None, ttft_p99_s=None),
    )
    said = verdict(stuck)
    assert said.startswith("Nothing ran: the pool could never hold any of the 9 requests that were rejected.")
    assert f"Some run with {stuck.best.cure.name}: requests 0.00 -> " in said


def test_a_hostile_name_stays_text_in_the_readme(found):
    result = replace(found.result, name="<script>alert(1)</script>|`x`\n# y")
    said = readme(replace(found, result=result))
    assert "<script>" not in said.replace("\\<", "").replace("\\>", "")
    assert "\n# y" not in said


@pytest.mark.parametrize(
    ("share", "text"), [(None, "-"), (0, "0"), (0.0004, "0"), (0.0123, "1.2"), (0.0996, "10"), (0.5, "50"), (1, "100")]
)
def test_shares_have_the_digits_that_count(share, text):
    assert percent(share) == text
