"""Token counts as traces write them."""

import re

from kvsim.workload.lengths import LONGEST

RIGHT = f"write a whole number of tokens from 1 to {LONGEST}"

_WHOLE = re.compile(r"(\+?[0-9]+)(\.0*)?")


def read_tokens(text: str) -> int:
    """The count, or 0 where the text is not a whole number from 1 to `LONGEST`; `why_not` then says the
    reason.

    A whole number with a decimal point ("374.0", as data frames write it) counts.
    """
    if text.isdigit() and text.isascii() and len(text) <= 10:
        count = int(text)
        return count if count <= LONGEST else 0
    found = _WHOLE.fullmatch(text.strip())
    if found is None or len(found[1]) > 20:
        return 0
    count = int(found[1])
    return count if count <= LONGEST else 0


def why_not(text: str, what: str) -> str:
    """Why `read_tokens` does not take the text; `what` is "prompt" or "output"."""
    text = text.strip()
    if not text:
        return "empty cell"
    try:
        number = float(text)
    except ValueError:
        return "not a number"
    if number != number:
        return "not a number"
    if number < 0:
        return f"negative {what} tokens"
    if number == 0:
        return "a prompt of 0 tokens" if what == "prompt" else "an output of 0 tokens (a failed call)"
    return "more tokens than any context window" if number > LONGEST else "not a whole number"
