"""The summary cards of a page: one number each, and a bar for every result."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvsim.metrics.result import Result
from kvsim.metrics.waste import waste_share
from kvsim.reporting.finding import three_digits, who

MOST_BARS = 8
"""Results that have a bar of their own; of more, the two at the ends are named."""


@dataclass(frozen=True)
class Bar:
    """One result on a card: its name, its number as text, and the length of its bar from 0 to 1."""

    name: str
    text: str
    length: float


@dataclass(frozen=True, kw_only=True)
class Card:
    """A number that one looks at first: what it is, in which unit, and what it is for each result."""

    title: str
    unit: str
    meaning: str
    bars: Sequence[Bar]


@dataclass(frozen=True)
class Part:
    """A part of the time to first token: what it is, its mean in seconds, and its share of the longest bar."""

    name: str
    seconds: float
    text: str
    share: float


def cards(results: Sequence[Result]) -> list[Card]:
    """The cards of some results; a number that none of them has makes no card."""
    made = [_card(results, *form) for form in _FORMS]
    return [card for card in made if card is not None]


def first_token_parts(results: Sequence[Result]) -> list[tuple[str, list[Part]]]:
    """What the mean time to first token of each result is made of, longest bar = 1; those without any are left out."""
    means = {
        result.name: [(name, result.metrics[key]["mean"]) for key, name in _PARTS.items() if result.metrics.get(key)]
        for result in results
    }
    longest = max((sum(mean for _, mean in parts) for parts in means.values()), default=0.0)
    if not longest:
        return []
    return [
        (name, [Part(part, mean, _time(mean), mean / longest) for part, mean in parts])
        for name, parts in means.items()
        if parts
    ]


_PARTS = {"queue_s": "waiting", "load_s": "loading", "prefill_s": "prefill"}
"""What the time to first token is made of, as far as a run tells it, in the order in which it passes."""


def _at(*path: str) -> Callable[[Mapping[str, Any]], float | None]:
    def number(metrics: Mapping[str, Any]) -> float | None:
        value: Any = metrics
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        return float(value) if isinstance(value, int | float) else None

    return number


_FORMS: tuple[tuple[str, str, str, float, Callable[[Mapping[str, Any]], float | None]], ...] = (
    ("Memory used", "%", "of the pool, mean: valid KV of live requests", 100, _at("mean_share", "used")),
    ("Waste", "%", "of what is neither free nor cached: no valid KV", 100, waste_share),
    ("Running at once", "", "{who}, mean", 1, _at("mean_running")),
    ("Hit rate", "%", "of prompt tokens found cached", 100, _at("hit_rate")),
    ("First token", "s", "TTFT, median", 1, _at("ttft_s", "p50")),
    ("Each further token", "ms", "TPOT, median", 1000, _at("tpot_s", "p50")),
    ("Output", "tokens/s", "emitted in the measured window", 1, _at("output_tokens_per_s")),
    ("Goodput", "/s", "requests that met every goal", 1, _at("goodput_per_s")),
    ("Preemptions", "", "running requests that lost their KV", 1, _at("preemptions")),
    ("Rejected", "", "requests that can never fit, or found the queue full", 1, _at("rejected")),
)
"""Title, unit, meaning, by what the number is multiplied, and the number."""


def _time(seconds: float) -> str:
    return f"{three_digits(seconds)} s" if seconds >= 1 else f"{three_digits(seconds * 1000)} ms"


def _card(
    results: Sequence[Result],
    title: str,
    unit: str,
    meaning: str,
    times: float,
    number: Callable[[Mapping[str, Any]], float | None],
) -> Card | None:
    found = [(result.name, number(result.metrics)) for result in results]
    there = [(name, value * times) for name, value in found if value is not None]
    if not there or not any(value for _, value in there):
        return None
    if unit == "s" and max(value for _, value in there) < 1:
        there, unit = [(name, value * 1000) for name, value in there], "ms"
    if len(there) > MOST_BARS:
        there.sort(key=lambda pair: pair[1])
        there = [there[0], there[-1]]
    most = 100.0 if unit == "%" else max(value for _, value in there)
    bars = [
        Bar(
            name, f"{value:,.0f}" if value == int(value) else three_digits(value), min(1.0, value / most if most else 0)
        )
        for name, value in there
    ]
    return Card(title=title, unit=unit, meaning=meaning.format(who=who(results)), bars=bars)
