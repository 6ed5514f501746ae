"""Dynamo's agentic Mooncake traces, version 2: JSON lines of requests that depend on each other.

The first line is a header with `block_size` and `hash_id_scope`; a local scope is a play (`play_id`). A request without
dependencies is sent `not_before_ms` after its play began; others wait, from the sending (`dispatch`) or the end
(`completion`) of each request they depend on, `delay_ms` milliseconds.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from kvsim.workload.readers.base import BaseReader, Links
from kvsim.workload.readers.files import json_lines
from kvsim.workload.readers.files.head import Head
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Identity, Intake, Scope
from kvsim.workload.readers.request import After, TraceRequest

SCHEMA = "dynamo.agentic_mooncake"
_ID, _PLAY, _SESSION, _DEPENDENCIES, _NOT_BEFORE = (
    "request_id",
    "play_id",
    "session_id",
    "dependencies",
    "not_before_ms",
)
_PROMPT, _OUTPUT, _IDS, _BLOCK = "input_length", "output_length", "hash_ids", "block_size"
_TRIGGERS: dict[str, Literal["start", "end"]] = {"dispatch": "start", "completion": "end"}
_RELATIONS: dict[str, Literal["spawn", "turn", "join"]] = {"spawn": "spawn", "sequence": "turn", "join": "join"}
_MILLISECONDS = 3
_RIGHT = "write milliseconds, 0 or more"


class DynamoAgenticReader(BaseReader):
    """A play begins whenever it is told to: its requests have times from its own beginning alone."""

    format: ClassVar[str] = "dynamo-agentic"
    columns: ClassVar[tuple[str, ...]] = (_NOT_BEFORE, _ID, _PROMPT, _OUTPUT, _DEPENDENCIES)
    time_unit: ClassVar[str] = "milliseconds"
    prefix_identity: ClassVar[Identity] = "real"
    hash_scope: ClassVar[Scope] = "session"

    def recognises(self, head: Head) -> bool:
        """The schema, or a request of a play."""
        return head.row.get("schema") == SCHEMA or {_PLAY, _DEPENDENCIES} <= head.keys

    def block_tokens(self, source: Source) -> int:
        """The header's."""
        size = source.head.row.get(_BLOCK)
        return size if type(size) is int and size > 0 else 0

    def requests(self, source: Source, intake: Intake) -> Iterator[TraceRequest]:
        """Requests in file order; each stands behind those it depends on."""
        size = intake.options.block_tokens or self.block_tokens(source)
        if not size:
            raise intake.wrong("no header with block_size; say how many tokens a block has (--block-tokens)")
        is_local = source.head.row.get("hash_id_scope") != "global"
        links = Links(intake)
        for row in json_lines.objects(source.lines(), intake):
            if "schema" in row:
                intake.drop("the header")
                continue
            prompt = json_lines.read_count(row, _PROMPT, "prompt", intake)
            output = prompt and json_lines.read_count(row, _OUTPUT, "output", intake)
            ids = json_lines.read_ids(row, _IDS, prompt, size, intake) if output else None
            after = None if ids is None else _dependencies(row, links, intake)
            if ids is None or after is None:
                continue
            id = str(row.get(_ID, intake.row))
            if not links.is_new(id, _ID):
                continue
            request = TraceRequest(id, prompt, output, after=after, blocks=tuple(ids), block_tokens=size)
            play = request.play = str(row.get(_PLAY, ""))
            request.scope = play if is_local else ""
            request.session = f"{play}/{row.get(_SESSION, '')}"
            if not after:
                request.session_time_ps = json_lines.read_time_ps(row, _NOT_BEFORE, _MILLISECONDS, _RIGHT, intake)
                if request.session_time_ps is None:
                    continue
            if row.get("model") is not None:
                request.tags = {"model": str(row["model"])}
            yield request


def _dependencies(row: dict[str, Any], links: Links, intake: Intake) -> tuple[After, ...] | None:
    """What a request waits for; None after the row was handed to `intake.bad`."""
    told = row.get(_DEPENDENCIES, [])
    if not isinstance(told, list) or not all(isinstance(one, dict) for one in told):
        intake.bad(_DEPENDENCIES, told, "no list of objects", "write a list, perhaps an empty one")
        return None
    found = []
    for one in told:
        # Whatever else than text stands there cannot be looked up.
        trigger, relation = _TRIGGERS.get(str(one.get("trigger"))), _RELATIONS.get(str(one.get("relation")))
        if trigger is None or relation is None:
            known = [" or ".join(names) for names in (_TRIGGERS, _RELATIONS)]
            right = f"write {known[0]} as the trigger and {known[1]} as the relation"
            intake.bad(_DEPENDENCIES, one, "an unknown trigger or relation", right)
            return None
        if not links.knows(str(one.get(_ID)), _DEPENDENCIES):
            return None
        delay_ps = json_lines.read_time_ps(one, "delay_ms", _MILLISECONDS, _RIGHT, intake)
        if delay_ps is None:
            return None
        if delay_ps < 0:
            intake.bad("delay_ms", one["delay_ms"], "a negative delay", _RIGHT)
            return None
        found.append(After(str(one[_ID]), delay_ps, trigger, relation))
    return tuple(found)
