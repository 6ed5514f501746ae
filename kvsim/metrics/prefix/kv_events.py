"""KV events: what a cache-aware router hears of a replica's cache, in the form in which vLLM publishes them.

One batch for each moment at which something changed, `{"ts": seconds, "events": [...]}`, with the fields of vLLM's
`KVEventBatch`, `BlockStored` and `BlockRemoved` (vllm/distributed/kv_events.py) as JSON. Two things differ. `ts` is the
moment at which the cache changed, which for blocks is when the step that fills them is planned; vLLM publishes them
with the results of that step. And tokens have no values here: `token_ids` is empty, and `runs` says in its place what
the blocks hold, as [stream, offset, tokens] each (`kvsim.content`): equal runs are equal tokens.

As in vLLM every copy of a block is stored and removed by itself, under one hash: a hash is gone when it was removed as
often as it was stored. Routers count likewise (Dynamo's EventDedupFilter, llm-d's eventDedupFilter).
"""

import json
from array import array
from collections.abc import Hashable, Iterator, Mapping
from collections.abc import Sequence as Seq
from hashlib import blake2b
from typing import IO, Any
from weakref import finalize

from kvsim.content import Content
from kvsim.request import PS_PER_S

MEDIUM = "GPU"
"""vLLM's name for the memory that the events tell of."""

GROUP = 0
"""The only group of layers that has blocks here."""

_HASH_BYTES = 8

_KEPT = 1 << 13
"""Batches that are kept in memory; the others lie in a temporary file, some hundred bytes an event."""

_READ_BYTES = 1 << 20

Event = dict[str, Any]


def block_hash(before: int | None, content: Content, start: int, tokens: int) -> int:
    """64 bits that tell a block together with all before it, the same in every run and replica.

    `before` is the hash of the block before it (None: at the start of a sequence).
    """
    runs = ";".join(f"{run.stream},{run.offset},{run.tokens}" for run in content.part(start, start + tokens))
    return int.from_bytes(blake2b(f"{before}:{runs}".encode(), digest_size=_HASH_BYTES).digest(), "big")


def line_of(batch: Mapping[str, Any]) -> bytes:
    """A batch as a line of JSON, its end included."""
    return json.dumps(batch, separators=(",", ":")).encode() + b"\n"


class _Stored:
    """Blocks stored at one moment, each behind the other; `last` is the piece that holds the last of them."""

    __slots__ = ("before", "hashes", "last", "runs")

    def __init__(self, before: int | None) -> None:
        self.before = before
        self.hashes = array("Q")
        self.runs = Content()
        self.last: Hashable = None


class KvEventLog:
    """The events of one pool in order; iterating gives the batches as plain dicts, whenever and however often.

    `block_tokens` is the size of a block or page. The log opens with the clearing of the cache, as a replica starts
    with an empty one. All but the latest of a long log lie in a temporary file, so that memory does not grow with it.
    """

    def __init__(self, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self._file: IO[bytes] | None = None
        self._filed = 0
        """Batches in it."""
        self._batches: list[tuple[int, list[_Stored | array[int] | None]]] = [(0, [None])]
        self._hashes: dict[Hashable, array[int]] = {}
        """Of the blocks of every piece that is cached."""
        self._copies: dict[Hashable, int] = {}
        """Of every piece that is cached more than once."""

    def stored(
        self, now_ps: int, pieces: Seq[Hashable], before: Hashable | None, content: Content, start: int, tokens: int
    ) -> None:
        """The whole blocks of `pieces` can be found from now on; see `CacheListener`."""
        parent = None if before is None else self._hashes[before][-1]
        events = self._batch(now_ps)
        event = events[-1] if events else None
        if not isinstance(event, _Stored) or before is None or event.last != before:
            event = _Stored(parent)
            events.append(event)
        for piece in pieces:
            if piece in self._hashes:
                self._copies[piece] = self._copies.get(piece, 1) + 1
            else:
                self._hashes[piece] = self._hashed(parent, content, start, tokens)
            hashes = self._hashes[piece]
            parent = hashes[-1]
            event.hashes += hashes
            for run in content.part(start, start + tokens):
                event.runs.append(run)
            start += tokens
        event.last = pieces[-1]

    def _hashed(self, parent: int | None, content: Content, start: int, tokens: int) -> "array[int]":
        hashes = array("Q")
        for place in range(start, start + tokens, self.block_tokens):
            parent = block_hash(parent, content, place, self.block_tokens)
            hashes.append(parent)
        return hashes

    def removed(self, now_ps: int, pieces: Seq[Hashable]) -> None:
        """A copy of each is evicted, block by block."""
        events = self._batch(now_ps)
        event = events[-1] if events else None
        if not isinstance(event, array):
            event = array("Q")
            events.append(event)
        for piece in pieces:
            copies = self._copies.pop(piece, 1)
            if copies > 2:
                self._copies[piece] = copies - 1
            event += self._hashes[piece] if copies > 1 else self._hashes.pop(piece)

    def cleared(self, now_ps: int) -> None:
        """Nothing is cached any more."""
        self._batch(now_ps).append(None)
        self._hashes.clear()
        self._copies.clear()

    def cut(self, piece: Hashable, upper: Hashable, tokens: int) -> None:
        """The first `tokens` tokens of `piece` are `upper` from now on; nobody outside need know."""
        blocks = tokens // self.block_tokens
        hashes = self._hashes[piece]
        self._hashes[upper], self._hashes[piece] = hashes[:blocks], hashes[blocks:]

    def _batch(self, now_ps: int) -> "list[_Stored | array[int] | None]":
        if self._batches[-1][0] != now_ps:
            if len(self._batches) >= _KEPT:
                self._put_aside()
            self._batches.append((now_ps, []))
        return self._batches[-1][1]

    def _put_aside(self) -> None:
        """What is in memory goes into the file."""
        if self._file is None:
            from tempfile import TemporaryFile

            self._file = TemporaryFile()  # noqa: SIM115
            finalize(self, self._file.close)
        self._file.seek(0, 2)
        self._file.writelines(map(line_of, self._recent()))
        self._filed += len(self._batches)
        self._batches.clear()

    def _recent(self) -> Iterator[Event]:
        for time_ps, events in self._batches:
            yield {"ts": time_ps / PS_PER_S, "events": [self._told(event) for event in events]}

    def _filed_lines(self) -> Iterator[bytes]:
        at, begun = 0, b""
        while self._file is not None:
            # Others may have read in between, or more was put aside.
            self._file.seek(at)
            piece = self._file.read(_READ_BYTES)
            if not piece:
                return
            at += len(piece)
            *whole, begun = (begun + piece).split(b"\n")
            for line in whole:
                yield line + b"\n"

    def __len__(self) -> int:
        return self._filed + len(self._batches)

    def __iter__(self) -> Iterator[Event]:
        yield from map(json.loads, self._filed_lines())
        yield from self._recent()

    def lines(self) -> Iterator[bytes]:
        """The batches as JSON Lines."""
        yield from self._filed_lines()
        yield from map(line_of, self._recent())

    def _told(self, event: "_Stored | array[int] | None") -> Event:
        if event is None:
            return {"type": "AllBlocksCleared"}
        if isinstance(event, array):
            return {"type": "BlockRemoved", "block_hashes": event.tolist(), "medium": MEDIUM, "group_idx": GROUP}
        return {
            "type": "BlockStored",
            "block_hashes": event.hashes.tolist(),
            "parent_block_hash": event.before,
            "token_ids": [],
            "block_size": self.block_tokens,
            "lora_id": None,
            "medium": MEDIUM,
            "lora_name": None,
            "group_idx": GROUP,
            "runs": [list(run) for run in event.runs.runs],
        }
