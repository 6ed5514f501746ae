"""Traces of one JSON object a line: rows as dictionaries, and the values in them."""

import json
from collections.abc import Iterator
from typing import Any

from kvsim.workload.readers.files.json_values import exact, no_number
from kvsim.workload.readers.interface import Intake
from kvsim.workload.readers.values import tokens
from kvsim.workload.readers.values.times import ps_of


def objects(lines: Iterator[str], intake: Intake) -> Iterator[dict[str, Any]]:
    """The rows in file order, one by one; decimal numbers exact. Blank lines are no rows."""
    row = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        row += 1
        intake.row, intake.line = row, number
        try:
            found = json.loads(line, parse_float=exact, parse_constant=no_number)
        except (ValueError, RecursionError) as error:
            intake.bad(None, line.strip(), f"not JSON ({error})", "write one JSON object a line")
            continue
        if isinstance(found, dict):
            yield found
        else:
            intake.bad(None, line.strip(), "no JSON object", "write one JSON object a line")


def read_count(row: dict[str, Any], column: str, what: str, intake: Intake) -> int:
    """Tokens from 1 on, or 0 after the row was handed to `intake.bad`; `what` is "prompt" or "output"."""
    text = "" if row.get(column) is None else str(row[column])
    count = tokens.read_tokens(text)
    if not count:
        reason = tokens.why_not(text, what) if text else "missing"
        intake.bad(column, text or None, reason, tokens.RIGHT)
    return count


def read_time_ps(row: dict[str, Any], column: str, unit_digits: int, right: str, intake: Intake) -> int | None:
    """Picoseconds, exact; None after the row was handed to `intake.bad`.

    The file counts in units of 10^-`unit_digits` seconds: 0 for seconds, 3 for milliseconds.
    """
    time = row.get(column)
    time_ps = None if isinstance(time, str) else ps_of(time, unit_digits)
    if time_ps is None:
        intake.bad(column, time, "missing" if time is None else "not a time", right)
    return time_ps


def read_ids(row: dict[str, Any], column: str, prompt: int, block_tokens: int, intake: Intake) -> list[Any] | None:
    """The ids of a prompt's blocks; None after the row was handed to `intake.bad`.

    As many as whole blocks fit in the prompt, or one more for the tokens that are left.
    """
    ids = row.get(column)
    if not isinstance(ids, list) or not all(type(block) in (int, str) for block in ids):
        right = f"write one number a block of {block_tokens} tokens"
        intake.bad(column, ids, "missing" if ids is None else "no list of block ids", right)
        return None
    least, most = prompt // block_tokens, -(-prompt // block_tokens)
    if not least <= len(ids) <= most:
        expected = f"{least}" if least == most else f"{least} or {most}"
        fits = f"; blocks of {-(-prompt // len(ids))} tokens would do" if ids else ""
        intake.bad(
            column,
            ids,
            f"{len(ids)} ids for {prompt} tokens, not {expected} of {block_tokens} tokens each",
            f"say how many tokens a block of this trace has (`block_size` in its first row, or --block-tokens){fits}",
        )
        return None
    return ids
