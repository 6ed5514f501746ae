"""Traces of one JSON object a line: rows as dictionaries, and the values in them."""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from kvsim.workload.readers import tokens
from kvsim.workload.readers.interface import Intake

_PS_DIGITS = 12
_LAST_DIGIT = 15
"""Times of more digits before the point are no seconds of anybody's life."""


def first_object(line: str) -> dict[str, Any]:
    """The object that a file begins with; an empty one where its first line is no JSON object. Pure; never raises."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}


def objects(lines: Iterator[str], intake: Intake) -> Iterator[dict[str, Any]]:
    """The rows in file order, one by one; decimal numbers exact. Blank lines are no rows."""
    row = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        row += 1
        intake.row, intake.line = row, number
        try:
            found = json.loads(line, parse_float=Decimal, parse_constant=_no_number)
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
    if isinstance(time, int | Decimal) and not isinstance(time, bool):
        exact = Decimal(time)
        if exact.is_zero() or exact.adjusted() < _LAST_DIGIT:
            return round(exact.scaleb(_PS_DIGITS - unit_digits))
    intake.bad(column, time, "missing" if time is None else "not a time", right)
    return None


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


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
