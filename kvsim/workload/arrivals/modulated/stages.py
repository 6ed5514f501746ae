"""Arrivals by plan: stages of given rate and duration."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from kvsim.workload.arguments import check_not_negative, check_positive
from kvsim.workload.arrivals.modulated.interface import Modulated, Piece

if TYPE_CHECKING:
    from numpy.random import Generator


@dataclass(frozen=True, kw_only=True)
class Stages(Modulated):
    """Stages one after the other, each {"rate": per second, "duration_s": seconds}, perhaps with "to": the rate at
    its end, which it then reaches in a straight line.

    `rate` is the mean over all stages: another one than theirs scales every stage. Arrivals end with the last stage,
    or begin again with `repeat`. ValueError on what is no stage.
    """

    process: ClassVar[str] = "stages"
    stages: Sequence[Mapping[str, float]]
    repeat: bool = False

    def _check(self) -> None:
        if not self.stages:
            raise ValueError("stages: must be at least one")
        mean_rate(self.stages)

    def course(self, generator: "Generator") -> Iterator[Piece]:
        """One piece a stage; draws nothing."""
        factor = self.rate / mean_rate(self.stages)
        pieces = [
            Piece(stage["duration_s"], stage["rate"] * factor, stage.get("to", stage["rate"]) * factor)
            for stage in self.stages
        ]
        yield from pieces
        while self.repeat:
            yield from pieces


def mean_rate(stages: Sequence[Mapping[str, float]]) -> float:
    """The mean rate of all stages, as they are written. ValueError where one is wrong, or nothing comes at all."""
    arrivals = duration_s = 0.0
    for stage in stages:
        check_not_negative("stages.rate", stage["rate"])
        check_not_negative("stages.to", stage.get("to", stage["rate"]))
        check_positive("stages.duration_s", stage["duration_s"])
        arrivals += (stage["rate"] + stage.get("to", stage["rate"])) / 2 * stage["duration_s"]
        duration_s += stage["duration_s"]
    if not arrivals > 0:
        raise ValueError("stages: at least one must have a rate above 0")
    return arrivals / duration_s
