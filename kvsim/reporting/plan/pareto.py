"""The figure of a plan: what each candidate costs against how long people wait, and which no other beats."""

import textwrap
from typing import TYPE_CHECKING

from kvsim.reporting.plan.words import best, goals_text, latency, latency_goal, price, price_label, setup, sources
from kvsim.reporting.style import (
    ALARM,
    CLASS_COLOURS,
    INK,
    PALE_INK,
    foot_inches,
    foot_text,
    house_style,
    new_figure,
    write_foot,
)
from kvsim.study.planning.plan import Plan
from kvsim.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Heights in inches.
_HEAD, _PANEL, _AXIS, _LINE = 0.65, 2.3, 0.5, 0.13

_LETTERS = 88
"""Letters of a candidate's line that fit below the figure."""

_WIDE = 30
"""Latencies whose largest is so many times the smallest are drawn on a logarithmic scale."""


def draw_pareto(plan: Plan) -> "Figure":
    """Cost to the right, latency upwards; filled: meets every goal; the line joins those that no other beats.

    ValueError where no candidate was simulated that keeps up with the traffic.
    """
    front = best(plan)
    if not front:
        raise ValueError("plan: no candidate keeps up with the traffic, so that there is nothing to draw")
    told = [one for one in plan.rows if one.trial is not None and not one.trial.saturated]
    foot = foot_text(" · ".join([f"kvsim {__version__}", f"seed {plan.seed}", *sources(plan)]))
    names = [f"{number}: {setup(one)}" for number, one in enumerate(told, 1)]
    foot_height = foot_inches(foot)
    names_height = _LINE * len(names) + 0.08
    below = foot_height + names_height + _AXIS
    height = _HEAD + _PANEL + below
    with house_style():
        figure = new_figure(height)
        axes = figure.add_axes((0.12, below / height, 0.85, _PANEL / height))
        for number, one in enumerate(told, 1):
            x, y = price(plan, one) or 0.0, latency(plan, one)[1] or 0.0
            colour = CLASS_COLOURS["used"] if one.meets else ALARM
            fill = colour if one.meets else "white"
            axes.plot(x, y, "o", color=colour, markerfacecolor=fill, markersize=5, zorder=3)
            axes.annotate(str(number), (x, y), xytext=(4, 3), textcoords="offset points", fontsize=7)
        line = sorted((price(plan, one) or 0.0, latency(plan, one)[1] or 0.0) for one in front)
        axes.plot(*zip(*line, strict=True), color=PALE_INK, linewidth=0.9, drawstyle="steps-post", zorder=1)
        at = latency_goal(plan)
        if at is not None:
            axes.axhline(plan.goals[at].limit, color=ALARM, linewidth=0.8, linestyle=(0, (4, 3)))
            axes.annotate(
                plan.goals[at].text, (1, plan.goals[at].limit), xycoords=("axes fraction", "data"), xytext=(-2, 2),
                textcoords="offset points", ha="right", fontsize=7, color=ALARM,
            )  # fmt: skip
        heights = [value for one in told if (value := latency(plan, one)[1])]
        if heights and max(heights) >= _WIDE * min(heights):
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter("")
        else:
            axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.set_xlabel(price_label(plan))
        axes.set_ylabel(f"{latency(plan, told[0])[0]} (s)")
        figure.text(
            0.012, 1 - 0.08 / height, f"{plan.name}: cost against latency", weight="bold", fontsize=9.5, va="top",
            color=INK,
        )  # fmt: skip
        asked = textwrap.shorten(f"goals: {goals_text(plan.goals)}", _LETTERS, placeholder=" ...")
        how = "filled: meets every goal · hollow: does not · line: no other is both cheaper and faster"
        legend = "\n".join([asked, how])
        figure.text(0.012, 1 - 0.28 / height, legend, fontsize=7, va="top", color=PALE_INK)
        for number, name in enumerate(names):
            where = foot_height + names_height - _LINE * (number + 0.6)
            text = textwrap.shorten(name, _LETTERS, placeholder=" ...")
            figure.text(0.12, where / height, text, fontsize=6.5, va="center")
        write_foot(figure, foot)
    return figure
