"""What a sweep shows: which figure its points ask for, which points no other beats, and the figures themselves."""

import random

import pytest

from kvsim.errors import InputError
from kvsim.reporting.sweep.figures import draw_sweep
from kvsim.reporting.sweep.measures import GOODPUT, OUTPUT, TTFT, check_measures, measures
from kvsim.reporting.sweep.points import At, every_point, goals, pareto
from kvsim.reporting.sweep.shape import shape
from kvsim.reporting.sweep.summary import sweep_summary
from kvsim.scenario.messages import Origin
from kvsim.scenario.resolve import Scenario
from kvsim.study.sweeps.points import grid, latin_hypercube, listed
from kvsim.study.sweeps.sweep import planned
from tests.study.sweeps.small import SCENARIO

GRID = Origin("list", "grid")
VARIANTS = {"paged": {"allocator": "paged"}, "contiguous": {"allocator": "contiguous"}}


def made_up(points, *, replications=1, variants=None, failing=()):
    """A sweep whose runs were not simulated: their numbers follow from their place."""
    scenario = Scenario.from_dict({**SCENARIO, **({"variants": variants} if variants else {})})
    sweep = planned([one for _, one in scenario.variants()], points, replications=replications)
    for at, run in enumerate(sweep.runs):
        fine = at not in failing
        metrics = {
            "ttft_s": {"p99": 0.5 + run.point + 0.1 * run.replication},
            "output_tokens_per_s": 100.0 + 10 * run.point,
            "goodput_per_s": None,
            "preemptions": at,
            "requests_per_s": 1.0 + run.point,
            "rejected": 0,
            "aborted": 0,
        }
        sweep.outcomes[run.key] = {
            "key": run.key,
            "error": None if fine else "no memory",
            "provenance": {"timing": "datasheet"} if fine else {},
            "expected_error": {"tpot_median": 0.1, "tpot_p90": 0.2, "basis": "some runs"} if fine else {},
            "queue": {"growth": 0.0, "growth_error": 0.01, "saturated": False}
            if fine
            else {"growth": None, "growth_error": None, "saturated": None},
            "not_modelled": ["sampling"] if fine else [],
            "notes": ["slow"] if fine and at == 0 else [],
            "metrics": metrics if fine else {},
        }
    return sweep


ONE = grid({"workload.rate": ["1/s", "2/s", "4/s"]}, GRID)
TWO = grid({"workload.rate": ["1/s", "2/s"], "pool.tokens": [4096, 8192, 16384]}, GRID)
WITH_TEXT = grid({"workload.rate": ["1/s", "2/s"], "allocator": ["paged", "contiguous"]}, GRID)
THREE = grid({"workload.rate": ["1/s", "2/s"], "pool.tokens": [4096, 8192], "horizon": ["1min", "2min"]}, GRID)
MANY = grid({"workload.rate": ["1/s", "2/s"], "seed": list(range(8)), "allocator": ["paged", "contiguous"]}, GRID)
DRAWN = latin_hypercube(6, {"workload.rate": "1/s..8/s", "pool.tokens": "4096..16384:log"})
TEXTS = grid({"allocator": ["paged", "contiguous"]}, GRID)
UNLIKE = listed([{"workload.rate": "1/s"}, {"pool.tokens": 4096}, {"pool.tokens": 8192}])


@pytest.mark.parametrize(
    ("points", "variants", "kind", "axes", "groups"),
    [
        (ONE, None, "line", ["workload.rate"], [""]),
        (ONE, VARIANTS, "line", ["workload.rate"], ["paged", "contiguous"]),
        (WITH_TEXT, None, "line", ["workload.rate"], ["paged", "contiguous"]),
        (TWO, None, "heat", ["workload.rate", "pool.tokens"], [""]),
        (TWO, VARIANTS, "heat", ["workload.rate", "pool.tokens"], ["paged", "contiguous"]),
        (MANY, None, "heat", ["workload.rate", "seed"], ["paged", "contiguous"]),
        (THREE, None, "pareto", [], [""]),
        (DRAWN, VARIANTS, "pareto", [], ["paged", "contiguous"]),
        (TEXTS, None, "pareto", [], ["paged", "contiguous"]),
        (UNLIKE, None, "pareto", [], None),
    ],
)
def test_the_shape_of_the_points_says_which_figure_it_is(points, variants, kind, axes, groups):
    sweep = made_up(points, variants=variants)
    form = shape(every_point(sweep), sweep.axes)
    assert form.kind == kind
    assert [axis.key for axis in form.axes] == axes
    if groups is not None:
        assert list(form.groups) == groups
    assert sum(map(len, form.groups.values())) == len(every_point(sweep))


@pytest.mark.parametrize(
    ("points", "panels"), [(ONE, 3), (TWO, 2 * 2 + 2), (THREE, 1)], ids=["lines", "heat maps and their scales", "front"]
)
def test_each_figure_is_drawn_with_what_failed_left_out(points, panels):
    sweep = made_up(points, replications=2, variants=VARIANTS, failing=(0, 1, 4))
    figure = draw_sweep(sweep, shape(every_point(sweep), sweep.axes), measures(sweep.rows))
    assert len(figure.axes) == panels
    texts = " ".join(text.get_text() for text in figure.texts)
    assert f"{len(sweep.runs)} runs, 3 failed" in texts
    assert "2 seeds, the first 0" in texts
    assert "step times: estimated from data sheets" in texts


def test_a_line_is_the_mean_in_a_band_from_the_least_to_the_most():
    sweep = made_up(ONE, replications=3)
    figure = draw_sweep(sweep, shape(every_point(sweep), sweep.axes), measures(sweep.rows))
    line, _ = figure.axes[0].lines
    assert list(line.get_xdata()) == [1.0, 2.0, 4.0]
    assert list(line.get_ydata()) == pytest.approx([0.6, 1.6, 2.6])
    band = figure.axes[0].collections[0].get_paths()[0].get_extents()
    assert (band.y0, band.y1) == pytest.approx((0.5, 2.7))


def drawn(sweep):
    return draw_sweep(sweep, shape(every_point(sweep), sweep.axes), measures(sweep.rows))


def test_over_the_rate_a_dashed_line_stands_at_the_largest_that_is_kept_and_grown_queues_are_hollow():
    sweep = made_up(ONE)
    [last] = [run for run in sweep.runs if run.point == 2]
    sweep.outcomes[last.key]["queue"] = {"growth": 0.5, "growth_error": 0.1, "saturated": True}
    figure = drawn(sweep)
    for axes in figure.axes:
        hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
        assert [list(line.get_xdata()) for line in hollow] == [[4.0]]
        [knee] = [line for line in axes.lines if list(line.get_ydata()) == [0, 1]]
        assert list(knee.get_xdata()) == [2.0, 2.0]
    texts = [text.get_text() for text in figure.texts]
    assert "dashed: the largest rate kept; 2/s is kept, 4/s is not" in texts
    assert figure.axes[-1].get_xlabel() == "workload.rate (/s)"


def test_the_foot_of_a_sweep_states_the_expected_error():
    foot = " ".join(text.get_text().replace("\n", " ") for text in drawn(made_up(TWO)).texts)
    assert "expected error: TPOT 10 % median, 20 % p90 (some runs)" in foot


def test_the_front_holds_what_no_other_point_beats():
    chance = random.Random(1)
    points = [
        At(None, {"seed": number}, [{TTFT.name: chance.randint(0, 9), OUTPUT.name: chance.randint(0, 9)}], 0)
        for number in range(60)
    ]
    points.append(At(None, {"seed": 60}, [], 1))
    front = pareto(points, TTFT, OUTPUT)

    def beats(one, other):
        better = one.mean(TTFT) <= other.mean(TTFT) and one.mean(OUTPUT) >= other.mean(OUTPUT)
        return better and (one.mean(TTFT), one.mean(OUTPUT)) != (other.mean(TTFT), other.mean(OUTPUT))

    there = points[:-1]
    assert front == [one for one in there if not any(beats(other, one) for other in there)]
    assert 0 < len(front) < 20


def test_points_of_the_front_that_lie_on_each_other_have_one_label():
    sweep = made_up(THREE)
    for outcome in sweep.outcomes.values():
        outcome["metrics"] |= {"ttft_s": {"p99": 1.0}, "output_tokens_per_s": 100.0}
    texts = [text.get_text() for text in drawn(sweep).axes[0].texts]
    assert texts == ["1, 2, 3, 4, 5, 6"]


def test_goodput_is_what_points_are_chosen_by_where_a_goal_was_set():
    with_goal = [At(None, {}, [{"goodput_per_s": 1.0, "output_tokens_per_s": 9.0}], 0)]
    without = [At(None, {}, [{"goodput_per_s": None, "output_tokens_per_s": 9.0}], 0)]
    assert goals(with_goal) == (TTFT, GOODPUT)
    assert goals(without) == (TTFT, OUTPUT)


def test_the_summary_has_mean_least_and_most_of_each_point_in_the_metrics_own_units():
    sweep = made_up(ONE, replications=2, failing=(1,))
    found = sweep_summary(sweep, ["ttft_s.p99"])
    assert [point["metrics"]["ttft_s.p99"] for point in found["points"]] == [
        {"mean": 0.5, "min": 0.5, "max": 0.5},
        {"mean": pytest.approx(1.55), "min": 1.5, "max": 1.6},
        {"mean": pytest.approx(2.55), "min": 2.5, "max": 2.6},
    ]
    assert [point["failed"] for point in found["points"]] == [1, 0, 0]
    assert found["failed"] == [
        {"variant": None, "changes": {"workload.rate": "1/s"}, "seed": sweep.runs[1].seed, "error": "no memory"}
    ]
    assert found["notes"] == ["slow (1 of 5 runs)"]
    assert found["not_modelled"] == ["sampling"]


def test_measures_are_those_that_some_run_has_unless_somebody_chooses():
    rows = made_up(ONE).rows
    assert [one.name for one in measures(rows)] == ["ttft_s.p99", "output_tokens_per_s", "preemptions"]
    assert [one.title for one in measures(rows, ["ttft_s.p99", "run"])] == ["TTFT p99, s", "run"]


def test_a_measure_that_no_run_can_have_is_told_before_any_run():
    sweep = planned([Scenario.from_dict(SCENARIO)], WITH_TEXT)
    check_measures(sweep, ["waste_share", "ttft_s.p99", "workload.rate", "seed", "blocked.capacity", "queue_growth"])
    for name, said in (
        ("ttft_s.p9", r"ttft_s\.p9 is no number of these runs; did you mean ttft_s\.p9"),
        ("allocator", "allocator is no number"),
        ("zebra", "known here: ttft_s.p99, .*, and every number of kvsim run --json"),
    ):
        with pytest.raises(InputError, match=said):
            check_measures(sweep, ["steps", name])


def test_waste_is_the_share_of_what_is_taken_that_holds_nothing():
    shares = {
        "used": 0.5,
        "reserved": 0.1,
        "internal": 0,
        "dead": 0,
        "moving": 0,
        "cached": 0.2,
        "external": 0,
        "free": 0.2,
    }
    [waste] = measures([], ["waste_share"])
    assert waste.of({f"mean_share.{name}": share for name, share in shares.items()}) == pytest.approx(100 / 6)
    assert waste.of({}) is None


def test_the_share_within_the_goals_says_in_table_and_figure_why_a_rate_is_not_kept():
    """Goodput alone does not: its last decimals, and how many come in a window, hide a percent."""
    sweep = made_up(ONE)
    for run, good in zip(sweep.runs, (1.0, 1.97, 0.6), strict=True):
        sweep.outcomes[run.key]["metrics"]["goodput_per_s"] = good
    told = measures(sweep.rows)
    [within] = [one for one in told if one.name == "met_share"]
    assert (within.label, within.unit) == ("within goals", "%")
    assert [within.of(row) for row in sweep.rows] == pytest.approx([100, 98.5, 20])
    assert [point["metrics"]["met_share"]["mean"] for point in sweep_summary(sweep)["points"]] == pytest.approx(
        [1.0, 0.985, 0.2]
    )
    figure = drawn(sweep)
    panel = next(axes for axes in figure.axes if axes.get_title(loc="left").startswith("within goals"))
    assert [text.get_text() for text in panel.texts] == ["100", "98.5", "20.0"]
    assert any(list(line.get_ydata()) == [99, 99] for line in panel.lines)
    assert "dashed: the largest rate kept; 1/s is kept, 2/s is not" in [text.get_text() for text in figure.texts]


def test_without_goals_there_is_no_share_within_them():
    assert "met_share" not in [one.name for one in measures(made_up(ONE).rows)]
