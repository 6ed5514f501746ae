"""Which file a trace is, who reads it, and what to say where nothing in it is of use."""

import os
from difflib import get_close_matches
from pathlib import Path

from kvsim.errors import InputError
from kvsim.workload.readers import READERS, detect
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Intake, Reader

PACKAGED = {
    "azure-conv-2023": "azure-conv-2023.csv",
    "azure-code-2023": "azure-code-2023.csv",
    "lmcache-web-agents": "lmcache-web-agents.jsonl",
    "mooncake-conversation": "mooncake-conversation.jsonl",
}
"""Traces that come with kvsim, by name; source and licence in `data/README.md`."""


def trace_path(trace: str | os.PathLike[str]) -> Path:
    """The file of a packaged trace, or the path itself; InputError with the packaged names if absent."""
    if isinstance(trace, str) and trace in PACKAGED:
        return Path(__file__).parents[1] / "data" / PACKAGED[trace]
    if not os.path.exists(trace):
        near = get_close_matches(str(trace), PACKAGED, n=1)
        hint = f"did you mean {near[0]}?" if near else f"packaged traces: {', '.join(PACKAGED)}"
        raise InputError(f"{trace}: no such trace file; give a path or a packaged name; {hint}")
    return Path(trace)


def opened(path: Path, name: str, format: str | None) -> tuple[Reader, Source]:
    """The reader of a trace (detected if `format` is None), and the trace; `name` is what messages call it.

    InputError where it is of no known format, ValueError where the format's name is unknown.
    """
    if format is not None and format not in READERS:
        raise ValueError(f"format: must be one of {', '.join(READERS)}; got {format!r}")
    source = Source(path, name)
    head = source.head
    return (detect(head, name) if format is None else READERS[format]), source


def nothing_kept(intake: Intake) -> str:
    """What to say of a trace none of whose rows could be used."""
    if not intake.dropped:
        return "the trace is empty: it has a header and no rows"
    reasons = ", ".join(f"{count} x {reason}" for reason, count in sorted(intake.dropped.items()))
    return f"no row of {intake.row} is usable ({reasons}); give a trace with at least one good row"
