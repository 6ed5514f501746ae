"""Engines and their releases: which rules and defaults hold in a version that a user or a log writes."""

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from kvsim.catalog.gpus import Gpu
from kvsim.catalog.names import DATA, key, unknown
from kvsim.errors import InputError
from kvsim.units import GIB

LARGE_CARD_BYTES = 70 * GIB
"""From here on vLLM's server defaults are larger (`EngineArgs.get_batch_defaults`), unless the card is an A100."""
HUGE_CARD_BYTES = 160 * GIB
"""From here on late releases take larger steps still."""


@dataclass(frozen=True)
class Release:
    """One release of an engine: `number` to compare with, `text` to show, `rules` of the era it belongs to."""

    engine: str
    number: tuple[int, ...]
    text: str
    rules: dict[str, Any]

    @property
    def name(self) -> str:
        """As a user writes it, such as `vllm@0.19`."""
        return f"{self.engine}@{self.text}" if self.text else self.engine

    def limit(self, key: str, gpu: Gpu | None, total_bytes: float) -> int | None:
        """Default of `max_num_seqs` or `max_num_batched_tokens` on a card; None where the release has none."""
        limits: dict[str, int] = {}
        if total_bytes >= LARGE_CARD_BYTES and not (gpu is not None and gpu.name.upper().startswith("A100")):
            limits = self.rules.get("large_card", {})
            if total_bytes >= HUGE_CARD_BYTES:
                limits = self.rules.get("huge_card", limits)
        return limits.get(key, self.rules.get(key))


def release(text: str) -> Release:
    """The release that `ENGINE@VERSION` says, such as `vllm@0.19`, `sglang@0.5.5`; without a version the newest rules.

    Raises InputError for an engine that is not known or a version that is none.
    """
    engine, _, version = text.partition("@")
    return engine_release(engine, version)


def engine_release(engine: str, version: str = "") -> Release:
    """The same from an engine's name as logs write it, and a version or the month of a log (`2026-08`)."""
    data = overheads()
    names = {key(name): name for name in data["engines"]} | {key(k): v for k, v in data["aliases"].items()}
    name = names.get(key(engine))
    if name is None:
        raise unknown("engine", engine, data["engines"], f"known are {', '.join(data['engines'])}")
    eras = data["engines"][name]
    if not version:
        newest = data["newest"].get(name, eras[-1]["from"])
        return Release(name, numbers(newest), data["newest"].get(name, ""), eras[-1])
    number = _number(name, version)
    if number is None:
        raise InputError(f"engine {engine}@{version}: {version!r} is no version; write for example {name}@0.19")
    rules = [era for era in eras if numbers(era["from"]) <= number] or eras[:1]
    return Release(name, number, ".".join(map(str, number)), rules[-1])


def release_of_profile(engine: str, version: str) -> Release:
    """The release whose memory rules hold for an engine profile; of research engines those of vLLM's first."""
    known = engine in overheads()["engines"]
    return engine_release(engine, version) if known else release("vllm@0.2")


def numbers(version: str) -> tuple[int, ...]:
    """A version as numbers to compare: 0.19.0 is (0, 19)."""
    found = [int(part) for part in version.split(".")]
    while len(found) > 2 and not found[-1]:
        found.pop()
    return tuple(found)


def _number(engine: str, version: str) -> tuple[int, ...] | None:
    month = re.match(r"\s*(20\d\d-\d\d)", version)
    if month:
        dated = overheads()["released"].get(engine)
        if dated is None:
            return numbers(overheads()["engines"][engine][-1]["from"])
        past = [text for date, text in dated if date <= month[1]] or [dated[0][1]]
        return numbers(past[-1])
    found = re.match(r"v?(\d+(\.\d+)*)", version.strip())
    return numbers(found[1]) if found else None


@cache
def overheads() -> dict[str, Any]:
    """The data file."""
    data: dict[str, Any] = json.loads((DATA / "overheads.json").read_bytes())
    return data
