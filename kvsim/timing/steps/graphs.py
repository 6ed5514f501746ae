"""CUDA graphs of decode batches: a batch is padded to the next captured size, or run without a graph.

Which sizes an engine captures is a property of its release (`data/cuda_graphs.json`). Only batches that do nothing but
decode are padded; what a graph saves is the launch of every kernel from the host.
"""

import json
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from kvsim.catalog.gpus import Gpu
from kvsim.timing.steps.engine import release


@dataclass(frozen=True, slots=True)
class Graphs:
    """The batch sizes that are captured, in order; none where the engine was told to launch every kernel itself."""

    sizes: tuple[int, ...] = ()

    def padded(self, rows: int) -> int | None:
        """The captured size at which `rows` rows run; None where no graph holds them."""
        place = bisect_left(self.sizes, rows)
        return self.sizes[place] if place < len(self.sizes) else None


EAGER = Graphs()


def graphs(engine: str, version: str, card: Gpu, max_num_seqs: int) -> Graphs | None:
    """The graphs of that release on that card; None where it captures none, or nobody has looked."""
    for rule in _rules():
        if rule["engine"] == engine and release(version) >= release(rule["since"]):
            sizes = {size for low, high, step in rule["ranges"] for size in range(low, high + 1, step)}
            most = _most(rule["most"], card, max_num_seqs)
            return Graphs(tuple(sorted(size for size in sizes if size <= most)))
    return None


def _most(rule: Mapping[str, Any], card: Gpu, max_num_seqs: int) -> int:
    if "by_card_gb" in rule:
        return int(next(most for below, most in rule["by_card_gb"] if below is None or card.memory_gb_nominal < below))
    return min(int(rule["of_max_num_seqs"]) * max_num_seqs, int(rule["at_most"]))


@cache
def _rules() -> list[dict[str, Any]]:
    """By engine the newest release first."""
    rules: list[dict[str, Any]] = json.loads(files("kvsim.timing").joinpath("data/cuda_graphs.json").read_text("utf-8"))
    return rules
