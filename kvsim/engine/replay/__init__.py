"""Replay of a recorded engine run: the same workload, step by step and without a clock, in the recording's own form.

A case (JSON) names the engine's settings and its requests by arrival *step*; what the real engine did is one JSON line
a step and a summary line. Here the scheduler and the allocator are driven exactly as a replica drives them, so that
the seam between them is judged by an engine that nobody here wrote.
"""

from collections.abc import Iterator
from itertools import zip_longest

from kvsim.engine.replay.case import Record, settings_of, truths_of
from kvsim.engine.replay.drive import Replay
from kvsim.engine.replay.sglang import is_sglang, replay_sglang
from kvsim.errors import InputError

__all__ = ["IGNORED", "Record", "compare_records", "replay"]

IGNORED = ("engine", "version", "core", "tree")
"""Fields that name what ran."""

_PLACES = {"step": "step", "i": "operation"}
"""Field that numbers a record, and what it numbers."""

_MISSING = "(missing)"


def replay(case: Record) -> Iterator[Record]:
    """Yield a record for every step of `case`, then the summary.

    Raises InputError, which names the setting or the request, when the case lacks something, holds a value that cannot
    be, or asks for a rule that is not modelled yet.
    """
    if is_sglang(case):
        return replay_sglang(case)
    settings = settings_of(case)
    truths = truths_of(case["requests"], settings["max_model_len"])
    try:
        made = Replay(settings, truths)
    except ValueError as error:
        raise InputError(f"config: {error}") from error
    return made.records()


def compare_records(ours: Iterator[Record], recorded: Iterator[Record]) -> tuple[int, str | None]:
    """(records compared, None), or up to the first that differs with a description of the difference."""
    count = 0
    for ours_line, recorded_line in zip_longest(ours, recorded):
        if ours_line is None or recorded_line is None:
            ended = "the replay" if ours_line is None else "the recording"
            text = f"{ended} ends after record {count}, the other goes on"
            return count, f"{text}\n  ours:     {ours_line}\n  recorded: {recorded_line}"
        ours_line, recorded_line = _plain(ours_line), _plain(recorded_line)
        keys = {**recorded_line, **ours_line}
        for key in keys:
            if ours_line.get(key, _MISSING) != recorded_line.get(key, _MISSING):
                where = next((f"{what} {ours_line[k]}" for k, what in _PLACES.items() if k in ours_line), "the summary")
                return count, (
                    f"{where}, field {key!r}: ours {ours_line.get(key, _MISSING)}, "
                    f"recorded {recorded_line.get(key, _MISSING)}\n  ours:     {ours_line}\n  recorded: {recorded_line}"
                )
        count += 1
    return count, None


def _plain(record: Record) -> Record:
    """A record without what names the engine, in its summary too."""
    kept = {key: value for key, value in record.items() if key not in IGNORED}
    return {key: _plain(value) if key == "summary" else value for key, value in kept.items()}
