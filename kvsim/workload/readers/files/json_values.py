"""JSON documents of many objects, in a list or one after the other, decoded one by one as the text comes in."""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from kvsim.errors import InputError
from kvsim.workload.readers.interface import Intake, shown

_LETTERS = 1 << 16
_BETWEEN = " \t\r\n,"


def exact(text: str) -> Decimal:
    """A decimal number as it is written; ValueError where its exponent is beyond all computing."""
    try:
        return Decimal(text)
    except ArithmeticError:
        raise ValueError(f"{text} is too large a number") from None


def no_number(name: str) -> None:
    """Refuse NaN and Infinity, which Python's parser would take."""
    raise ValueError(f"{name} is no JSON")


def document_objects(lines: Iterator[str], intake: Intake) -> Iterator[dict[str, Any]]:
    """The objects of a document in file order; decimal numbers exact.

    Holds one object and what was read ahead. `intake.row` counts objects, `intake.line` is where one begins.
    InputError where the text is no JSON: what follows cannot be told apart from it.
    """
    text = _Text(lines)
    decoder = json.JSONDecoder(parse_float=exact, parse_constant=no_number)
    row = intake.row
    in_list = text.skip("[" + _BETWEEN)
    while in_list:
        if text.peek() == "]":
            return
        row += 1
        intake.row, intake.line = row, text.line
        value = text.decode(decoder, intake)
        if isinstance(value, dict):
            yield value
        else:
            intake.bad(None, value, "no JSON object", "write a list of objects")
        in_list = text.skip(_BETWEEN)


class _Text:
    """Text as far as it was read, and where in it we are."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._ahead = ""
        self._at = 0
        self._ended = False
        self.line = 1

    def skip(self, letters: str) -> bool:
        """Go past these letters; whether anything is left."""
        while True:
            while self._at < len(self._ahead):
                letter = self._ahead[self._at]
                if letter not in letters:
                    return True
                self.line += letter == "\n"
                self._at += 1
            if not self._more(_LETTERS):
                return False

    def peek(self) -> str:
        return self._ahead[self._at]

    def decode(self, decoder: json.JSONDecoder, intake: Intake) -> Any:
        wanted = _LETTERS
        while True:
            try:
                value, end = decoder.raw_decode(self._ahead, self._at)
            except json.JSONDecodeError as error:
                # Perhaps it goes on in what was not read yet; twice as much each time, so that it stays linear.
                wanted *= 2
                if not self._more(wanted):
                    raise _no_json(intake, self._ahead[self._at :], error.msg) from None
            except (ValueError, RecursionError) as error:
                raise _no_json(intake, self._ahead[self._at :], str(error)) from None
            else:
                self.line += self._ahead.count("\n", self._at, end)
                self._at = end
                return value

    def _more(self, letters: int) -> bool:
        if self._ended:
            return False
        parts, got = [self._ahead[self._at :]], 0
        self._at = 0
        while got < letters:
            line = next(self._lines, None)
            if line is None:
                self._ended = True
                break
            parts.append(line)
            got += len(line)
        self._ahead = "".join(parts)
        return got > 0


def _no_json(intake: Intake, text: str, why: str) -> InputError:
    return intake.wrong(
        f"row {intake.row} (line {intake.line} of the file): {shown(text[:100])}: not JSON ({why}); "
        "write a whole JSON document"
    )
