"""A plan in words, in a table and in a figure: what it says is what the plan holds."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kvsim
from kvsim.reporting.inputs import load_subject
from kvsim.reporting.plan import plan_summary, write_plan
from kvsim.reporting.plan.pareto import draw_pareto
from kvsim.reporting.plan.table import fitting, plan_columns
from kvsim.reporting.plan.words import answer, best, latency, notes, price, sources, too_short
from kvsim.reporting.sweep.points import front
from kvsim.study.notes import LEFT_RANGE
from tests.study.planning.small import SCENARIO

CHOICES = {"gpu": ["RTX 4090", "L4", "A100-SXM-80GB"]}


@pytest.fixture(scope="module")
def plan():
    asked = {"choices": CHOICES, "replicas": [1], "replications": 1, "tolerance": 0.5, "jobs": 1}
    return kvsim.plan(SCENARIO, "ttft_p99<200ms", **asked)


def test_the_best_are_those_that_no_other_beats_in_cost_and_latency(plan):
    told = [one for one in plan.rows if one.trial is not None and not one.trial.saturated]
    numbers = {one.candidate.name: (price(plan, one), latency(plan, one)[1]) for one in told}
    beaten = {
        name
        for (name, (cost, wait)), (_, (less, faster)) in product(numbers.items(), numbers.items())
        if less <= cost and faster <= wait and (less, faster) != (cost, wait)
    }
    assert beaten
    assert {one.candidate.name for one in best(plan)} == set(numbers) - beaten


@given(pairs=st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 6)), st.one_of(st.none(), st.integers(0, 6)))))
def test_the_front_is_what_comparing_all_pairs_gives(pairs):
    there = [place for place, pair in enumerate(pairs) if None not in pair]

    def beats(one, other):
        return one[0] <= other[0] and one[1] <= other[1] and one != other

    assert front(pairs) == [place for place in there if not any(beats(pairs[other], pairs[place]) for other in there)]


def test_a_choice_that_fails_on_fresh_seeds_is_told_with_its_distance(plan):
    [(name, held)] = plan.verified.items()
    assert answer(plan).endswith("It held on fresh seeds.")
    slower = replace(held, values=[0.25], unmet=list(plan.goals))
    said = answer(replace(plan, verified={name: slower}))
    assert said.endswith(
        "It did not hold on fresh seeds: misses ttft_p99<200ms by 25% (TTFT p99 0.25 s); leave more headroom."
    )
    growing = answer(replace(plan, verified={name: replace(held, saturated=True)}))
    assert growing.endswith("It did not hold on fresh seeds: its queue grows; leave more headroom.")
    short = answer(replace(plan, verified={name: replace(held, saturated=True, growth=None)}))
    assert "did not hold on fresh seeds: arrivals are over long before the work is;" in short


def test_a_narrow_table_keeps_the_first_columns_and_the_mark(plan):
    columns = plan_columns(plan_summary(plan))
    assert fitting(columns, 200) == columns
    narrow = fitting(columns, 40)
    assert narrow[:-1] == columns[: len(narrow) - 1]
    assert narrow[-1] == columns[-1]
    assert len(narrow) < len(columns)


def test_a_report_of_a_plan_has_the_words_and_numbers_of_the_terminal(plan, tmp_path):
    write_plan(plan, tmp_path)
    [exhibit] = load_subject([tmp_path]).exhibits
    sheets = {sheet.title: sheet for sheet in exhibit.sheets}
    candidates = sheets["Candidates"]
    *columns, _ = plan_columns(plan_summary(plan))
    assert list(candidates.columns) == [
        "candidate", "replicas x GPUs", "meets", "USD/h", "USD/M tokens", "most/s", "headroom", "TTFT p99 s", "binds",
        "on the front",
    ]  # fmt: skip
    texts = [[cell.text for cell in row][: len(columns)] for row in candidates.rows]
    assert texts == [list(row) for row in zip(*(cells for _, cells in columns), strict=True)]
    hourly = [row[3].number for row in candidates.rows]
    assert hourly == pytest.approx([one.cost("usd_per_hour") for one in plan.rows], rel=0.01)
    assert [row[1].text for row in sheets["What was asked"].rows][:2] == ["ttft_p99<200ms", "8.00/s"]
    assert [row[0].text for row in sheets["On fresh seeds"].rows] == list(plan.verified)
    assert list(exhibit.provenance) == sources(plan)
    assert not any("{" in line for line in exhibit.provenance)


def test_expected_errors_and_ranges_that_are_left_name_their_candidates(plan):
    tried = [one for one in plan.rows if one.trial is not None]
    errors = [{"basis": f"of {one.candidate.name}"} for one in tried]
    names = [one.candidate.name for one in tried]
    said = sources(replace(plan, expected_errors=errors))
    assert [line for line in said if line.startswith("expected error")] == [
        f"expected error: of {name} ({name})" for name in names
    ]

    def told(*there):
        left = [f"{LEFT_RANGE}linear layers, fitted to 1; here {one}." for one in there]
        rows = [
            replace(one, sustained=None, trial=replace(one.trial, notes=["The trace is odd.", note]))
            for one, note in zip(tried, left, strict=True)
        ]
        return [note for note in notes(replace(plan, rows=rows)) if note.startswith(LEFT_RANGE)]

    first, *others = names
    assert others
    assert told(*("2" for _ in names)) == [f"{LEFT_RANGE}linear layers, fitted to 1; here 2."]
    assert told("2", *("3" for _ in others)) == [
        f"{LEFT_RANGE}linear layers, fitted to 1; here 2 ({first}), 3 ({', '.join(others)})."
    ]


def test_equal_plans_leave_equal_bytes(plan, tmp_path):
    for folder in ("one", "two"):
        write_plan(plan, tmp_path / folder)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_at_equal_traffic_tokens_cost_in_proportion_to_hours(plan):
    tried = [one for one in plan.rows if one.trial is not None and not one.trial.saturated]
    assert len(tried) > 1
    rates = [one.cost("usd_per_hour") / one.cost("usd_per_million_output_tokens") for one in tried]
    assert rates == pytest.approx([rates[0]] * len(rates), rel=1e-12)


def test_what_runs_are_too_short_to_tell_has_a_question_mark(plan):
    place, one = next((place, row) for place, row in enumerate(plan.rows) if row.meets)

    def cells(instead):
        rows = [instead if row is one else row for row in plan.rows]
        columns = dict(plan_columns(plan_summary(replace(plan, rows=rows))))
        return columns["most\n/s"][place], columns["head-\nroom"][place]

    best = one.sustained.best
    long = {**best.runs[0], "measured_s": 10 * best.mean("e2e_s", "mean") + 1}
    trials = {rate: replace(trial, runs=[long]) for rate, trial in one.sustained.trials.items()}
    calm = replace(one, trial=replace(one.trial, runs=[long]), sustained=replace(one.sustained, trials=trials))
    assert not any("?" in cell for cell in cells(calm))
    assert too_short(calm) is None
    short = {**long, "measured_s": 5 * long["e2e_s"]["mean"]}
    hasty = replace(calm, trial=replace(one.trial, runs=[short]))
    assert [cell.count("?") for cell in cells(hasty)] == [1, 1]
    assert too_short(hasty) == pytest.approx(2)


def test_nothing_to_draw_is_refused(plan):
    with pytest.raises(ValueError, match="nothing to draw"):
        draw_pareto(replace(plan, rows=[replace(one, trial=None) for one in plan.rows]))
