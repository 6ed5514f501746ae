"""The maps of a page: which results have one, and how much of it fits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kvsim.metrics.result import Result
from kvsim.reporting.page.map.changes import Changes, changes_of, sampled
from kvsim.reporting.page.map.packing import packed
from kvsim.step import CLASSES

MOST_INSTANTS = 16_384
"""Where not all changes fit, the map is exact at so many instants, or at half as many, and so on."""
LEAST_INSTANTS = 16
"""Of a map that is not exact at so many, nothing is shown."""


@dataclass(frozen=True)
class MapData:
    """The map of one result, as the page's script reads it; `changes` of them are in it, of `recorded` ones.

    `instants` is 0 where all changes are there, else at how many evenly spaced instants the map is exact. `kinds` are
    the classes that occur, `owners` pairs of a request's id and a sample's number, `requests` the ids with prompt and
    output tokens and the arrival in seconds. `text` is the changes packed, "" where there was no room for them.
    """

    name: str
    pool_tokens: int
    block_tokens: int
    length_s: float
    recorded: int
    changes: int
    instants: int
    kinds: Sequence[str]
    owners: Sequence[tuple[int, int]]
    requests: Sequence[tuple[int, int, int, float]]
    text: str

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "name": self.name,
            "pool": self.pool_tokens,
            "block": self.block_tokens,
            "length_s": self.length_s,
            "changes": self.changes,
            "owners": [part for pair in self.owners for part in pair],
            "requests": [part for row in self.requests for part in row],
            "text": self.text,
        }


def maps_of(results: Sequence[Result], most_letters: int) -> list[MapData]:
    """The maps of those results that recorded addresses, which together take at most so many letters.

    What one does not need of its share of them, the others have.
    """
    wholes = [
        (result, changes, packed(changes))
        for result in results
        if "addresses" in result.tables and result.metrics["pool_tokens"] and result.metrics["simulated_s"]
        for changes in [changes_of(result.tables["addresses"])]
        if len(changes)
    ]
    left, made = most_letters, dict[int, MapData]()
    for place in sorted(range(len(wholes)), key=lambda place: len(wholes[place][2])):
        made[place] = _map_of(*wholes[place], left // (len(wholes) - len(made)))
        left -= len(made[place].text)
    return [made[place] for place in range(len(wholes))]


def _map_of(result: Result, whole: Changes, text: str, most_letters: int) -> MapData:
    pool_tokens, length_s = result.metrics["pool_tokens"], result.metrics["simulated_s"]
    instants, changes = 0, whole
    while len(text) > most_letters and instants != LEAST_INSTANTS:
        instants = instants // 2 or MOST_INSTANTS
        # Each half of the instants is among those before, so that nothing is lost by going on from there.
        changes = sampled(changes, pool_tokens, round(length_s * 1e6), instants)
        text = packed(changes)
    if len(text) > most_letters:
        text = ""
    blocks = result.metrics["pool_blocks"]
    return MapData(
        name=result.name,
        pool_tokens=pool_tokens,
        block_tokens=pool_tokens // blocks if blocks else 1,
        length_s=length_s,
        recorded=len(whole),
        changes=len(changes),
        instants=instants,
        kinds=[CLASSES[kind] for kind in sorted(set(changes.kind.tolist()))],
        owners=changes.owners,
        requests=_requests(result, changes),
        text=text,
    )


def _requests(result: Result, changes: Changes) -> list[tuple[int, int, int, float]]:
    """Id, prompt and output tokens and arrival of the requests that own something, in the order of their ids."""
    table = result.tables["requests"]
    owning = {request for request, _ in changes.owners}
    columns = zip(table["id"], table["prompt_tokens"], table["output_tokens"], table["arrival_s"], strict=True)
    return [
        (int(number), int(prompt), int(output), round(float(at), 3))
        for number, prompt, output, at in columns
        if number in owning
    ]
