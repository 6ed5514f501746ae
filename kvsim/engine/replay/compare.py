"""A replay beside its recording: equal, or the first record and field that differ with both states."""

from collections.abc import Iterator
from itertools import zip_longest

from kvsim.engine.replay.case import Record

IGNORED = ("engine", "version", "core", "tree")
"""Fields that name what ran."""

_PLACES = {"step": "step", "i": "operation"}
"""Field that numbers a record, and what it numbers."""

_MISSING = "(missing)"


def compare_records(ours: Iterator[Record], recorded: Iterator[Record]) -> tuple[int, str | None]:
    """(records compared, None), or up to the first that differs with a description of the difference."""
    count = 0
    for ours_line, recorded_line in zip_longest(ours, recorded):
        if ours_line is None or recorded_line is None:
            ended = "the replay" if ours_line is None else "the recording"
            text = f"{ended} ends after record {count}, the other goes on"
            return count, f"{text}\n  ours:     {ours_line}\n  recorded: {recorded_line}"
        ours_line, recorded_line = _plain(ours_line), _plain(recorded_line)
        for key in {**recorded_line, **ours_line}:
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
