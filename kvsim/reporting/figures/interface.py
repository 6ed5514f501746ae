"""The seam between a figure and whoever shows it: a report, a page, a run folder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvsim.metrics.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class FigureKind:
    """One kind of figure of one or several runs.

    `name` is the stem of its files, `title` a heading of a few words, `caption` one or two sentences that say what the
    reader sees and how to read it. `applies` says whether these runs have what it shows (cheap, never raises);
    `draw` draws it then, in the house's style and with the provenance at its foot.
    """

    name: str
    title: str
    caption: str
    applies: Callable[[Sequence[Result]], bool]
    draw: Callable[[Sequence[Result]], "Figure"]


def figures_of(results: Sequence[Result], kinds: Sequence[FigureKind]) -> list[FigureKind]:
    """Those of the kinds that these runs have something to show for, in the order given."""
    return [kind for kind in kinds if kind.applies(results)]


def has_memory(result: Result) -> bool:
    """Its pool was recorded over time: it has one, time passed, and it is no fleet."""
    return bool(result.metrics["pool_tokens"] and result.metrics["simulated_s"] and "replicas" not in result.tables)
