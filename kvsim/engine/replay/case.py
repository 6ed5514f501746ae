"""What the recorded cases of all engines have in common: their form, and prompts as segments of streams."""

from typing import Any, TypeGuard

from kvsim.content import Content, Run
from kvsim.errors import InputError

Record = dict[str, Any]

MOST = 1 << 53
"""The largest whole number that every reader of JSON keeps apart from its neighbours."""

STREAM_TOKENS = 1 << 20
"""A token is the number stream x 2^20 + position, so that streams lie end to end on one line of tokens."""

FIRST_OUTPUT_STREAM = 1_000_000
"""The output of request i is stream FIRST_OUTPUT_STREAM + i, unless it names another."""

_FORM = 'a prompt is a list of segments such as {"s": 1, "n": 100} or {"ids": [1, 2]}'


def parts_of(case: Record) -> tuple[Record, list[Any]]:
    """The settings and the requests of a case; InputError where it has none."""
    if (
        not isinstance(case, dict)
        or not isinstance(case.get("config"), dict)
        or not isinstance(case.get("requests"), list)
    ):
        raise InputError("not a recorded case: it needs a `config` object and a `requests` list")
    return case["config"], case["requests"]


def is_whole(value: object, least: int, most: int) -> TypeGuard[int]:
    """Whether a value is a whole number in this range."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def prompt_of(prompt: object, where: str) -> Content:
    """The tokens of a prompt: segments of `n` tokens of stream `s` from position `o` on, or lists of token `ids`."""
    if not isinstance(prompt, list) or not prompt:
        raise InputError(f"{where}: prompt is {shown(prompt)}; {_FORM}")
    content = Content()
    for segment in prompt:
        if not _append(content, segment):
            raise InputError(f"{where}: prompt has the segment {shown(segment)}; {_FORM}")
    return content


def stream_run(stream: int, position: int, tokens: int) -> Run:
    """So many tokens of a stream from a position on, on the one line of all tokens."""
    return Run(0, stream * STREAM_TOKENS + position, tokens)


def _append(content: Content, segment: object) -> bool:
    """Go on with one segment; False if it is none."""
    if not isinstance(segment, dict):
        return False
    if "ids" in segment:
        numbers = segment["ids"]
        if not isinstance(numbers, list) or not all(is_whole(number, 0, MOST) for number in numbers):
            return False
        for number in numbers:
            content.append(stream_run(0, number, 1))
        return True
    stream, position, tokens = segment.get("s", 0), segment.get("o", 0), segment.get("n")
    if not (is_whole(stream, 0, MOST) and is_whole(position, 0, MOST) and is_whole(tokens, 0, MOST)):
        return False
    content.append(stream_run(stream, position, tokens))
    return True


def shown(value: object) -> str:
    """Return a value cut to a readable length."""
    if isinstance(value, int) and value.bit_length() > 2000:  # Python refuses to write much longer ones as digits
        return f"a number of {value.bit_length():,} bits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
