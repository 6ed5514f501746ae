"""Every figure of the catalogue, drawn from real runs: legible, with units, with its sources, the same each time."""

from functools import cache
from itertools import combinations

import pytest

from kvsim.reporting.figures.catalogue import FIGURES
from kvsim.reporting.figures.interface import figures_of
from kvsim.reporting.style import WIDTH_INCHES, figure_bytes, house_style
from tests.fake_results import fake_result
from tests.reporting.figures.small_runs import groups

COLUMN_INCHES = 3.4
LEAST_POINTS = 5.0
MOST_BYTES = 300_000

GROUPS = ("contiguous", "paged", "all", "cached")
DRAWN = (
    *((kind, group) for kind in ("memory_over_time", "latencies", "first_token") for group in ("contiguous", "paged")),
    *((kind, "contiguous") for kind in ("memory_map", "memory_strips", "fragmentation", "preemptions", "timeline")),
    *((kind, "all") for kind in ("comparison", "memory_strips", "waste", "fragmentation", "running_and_waiting")),
    *((kind, "all") for kind in ("preemptions", "latencies", "first_token", "cost", "requests_at_once", "kv_share")),
    *((kind, "cached") for kind in ("prefix_tree", "timeline", "bytes_per_token")),
    *((kind, "paged") for kind in ("waste", "published")),
)
"""Figure and runs that it is drawn of here."""

UNITS = (
    "tokens", "slots", "(s)", "(s;", "(ms)", "(min)", "%", "requests", "KiB", "USD", "request (number)", "preemptions",
)  # fmt: skip
"""What the label of an axis has at least one of: its unit, or what it counts."""


@cache
def drawn(name, group):
    """The figure, laid out as its files have it."""
    [kind] = [kind for kind in FIGURES if kind.name == name]
    results = groups()[group]
    assert kind.applies(results)
    with house_style():
        figure = kind.draw(results)
        figure.draw_without_rendering()
    return figure


def visible(figure):
    """All its texts that are seen, each with what it is of."""
    from matplotlib.text import Text

    return [
        text for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and text.get_window_extent().width > 0
    ]  # fmt: skip


def shown_ticks(axis):
    """The labels of ticks within the axis."""
    low, high = sorted(axis.get_view_interval())
    slack = 1e-9 * (high - low)
    return [
        tick.label1 for tick in axis.get_major_ticks()
        if tick.label1.get_visible() and tick.label1.get_text() and low - slack <= tick.get_loc() <= high + slack
    ]  # fmt: skip


def texts_of(figure):
    """Texts that a reader sees: of the figure, its legends and axes, and of ticks where the axis reaches."""
    ticks = [text for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for text in shown_ticks(axis)]
    beside = [text for axes in figure.axes for text in (*axes.texts, axes.xaxis.label, axes.yaxis.label, axes.title)]
    legends = [text for legend in figure.legends for text in legend.get_texts()]
    return [text for text in (*figure.texts, *beside, *legends, *ticks) if text.get_visible() and text.get_text()]


@pytest.fixture(params=DRAWN, ids="-".join)
def figure(request):
    return drawn(*request.param)


def test_every_figure_of_the_catalogue_is_drawn_here():
    own = {"trade_off"}  # needs pools of different sizes; see test_trade_off
    assert {name for name, _ in DRAWN} == {kind.name for kind in FIGURES} - own


def test_names_and_titles_are_told_apart_and_captions_are_sentences():
    assert len({kind.name for kind in FIGURES}) == len({kind.title for kind in FIGURES}) == len(FIGURES)
    for kind in FIGURES:
        assert kind.caption.endswith(".")


def test_the_smallest_type_is_five_points_in_a_column(figure):
    scale = COLUMN_INCHES / WIDTH_INCHES
    small = [text.get_text() for text in texts_of(figure) if scale * text.get_fontsize() < LEAST_POINTS]
    assert small == []


def test_no_text_leaves_the_figure(figure):
    for text in texts_of(figure):
        box = text.get_window_extent()
        assert box.x0 >= -1, text.get_text()
        assert box.x1 <= figure.bbox.x1 + 1, text.get_text()
        assert box.y0 >= -1, text.get_text()
        assert box.y1 <= figure.bbox.y1 + 1, text.get_text()


def test_no_text_lies_on_another(figure):
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts_of(figure)]
    for (one, here), (other, there) in combinations(boxes, 2):
        across = min(here.x1, there.x1) - max(here.x0, there.x0)
        up = min(here.y1, there.y1) - max(here.y0, there.y0)
        assert not (across > 1 and up > 1.5), (one, other)


def test_every_axis_says_its_unit(figure):
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            numbers = [text.get_text() for text in shown_ticks(axis) if text.get_text()[0].isdigit()]
            if not numbers or not axis.get_visible():
                continue
            shared = [other for other in figure.axes if getattr(other, axis.axis_name + "axis").label.get_text()]
            label = axis.label.get_text() or figure_label(figure)
            assert any(unit in label for unit in UNITS), (label, numbers, len(shared))


def figure_label(figure):
    """What stands beside several panels in place of a label of each."""
    return next((text.get_text() for text in figure.texts if text.get_text() == "% of the KV pool"), "")


def test_the_foot_tells_version_seed_sources_and_expected_error(figure):
    foot = next(text.get_text() for text in figure.texts if text.get_text().startswith("kvsim "))
    foot = foot.replace("\n", " ")
    for part in ("seed 0", "step times: estimated from data sheets", "expected error: TPOT", "pool: given"):
        assert part in foot


@pytest.mark.parametrize(("name", "group"), [pair for pair in DRAWN if pair[1] in ("contiguous", "all")])
def test_a_figure_takes_few_bytes_and_the_same_each_time(name, group):
    [kind] = [kind for kind in FIGURES if kind.name == name]
    svg = figure_bytes(drawn(name, group), "svg")
    assert len(svg) < MOST_BYTES
    assert b"<dc:date>" not in svg
    assert figure_bytes(kind.draw(groups()[group]), "svg") == svg


def test_nothing_applies_to_no_results():
    assert figures_of([], FIGURES) == []


def test_a_run_without_a_pool_or_requests_draws_what_is_left():
    """Whatever says that it applies can be drawn."""
    result = fake_result("no-cache")
    share = dict.fromkeys(result.metrics["mean_share"])
    result.metrics |= {"pool_tokens": None, "pool_blocks": None, "mean_share": share, "peak_share": share}
    for kind in figures_of([result], FIGURES):
        kind.draw([result])
    result.metrics |= dict.fromkeys(("ttft_s", "tpot_s", "e2e_s", "queue_s", "prefill_s"))
    result.metrics |= {"arrived": 0, "finished": 0, "preemptions": 0, "simulated_s": 0}
    result.tables["requests"] = {name: [] for name in result.tables["requests"]}
    assert {kind.name for kind in figures_of([result], FIGURES)} == {"kv_share", "bytes_per_token"}


def test_a_model_that_nobody_knows_has_no_figure_of_its_own():
    result = fake_result()
    result.scenario_resolved["model"] = {"value": "somebody/else", "source": "scenario.yaml:3"}
    names = {kind.name for kind in figures_of([result], FIGURES)}
    assert not names & {"kv_share", "bytes_per_token"}
