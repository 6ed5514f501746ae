"""The pool of the example slot by slot: what each holds, for text and figures alike."""

from collections.abc import Sequence
from typing import NamedTuple

from kvsim.study.explain.example import Walk
from kvsim.study.explain.memory import Life, Moment


class Slot(NamedTuple):
    """One slot: its class of the accounting identity, and the token whose KV it holds ("": none)."""

    kind: str
    token: str


def slots(moment: Moment, life: Life, tokens: Sequence[str]) -> list[Slot]:
    """The pool as the request's block table orders it: its own blocks, then what is cached, then what is free."""
    behind = life.hit_tokens if moment.written else 0
    return [
        *(Slot("used", token) for token in tokens[: moment.used]),
        *[Slot("reserved", "")] * moment.reserved,
        *[Slot("internal", "")] * moment.internal,
        *(Slot("cached", token) for token in tokens[behind : behind + moment.cached]),
        *[Slot("free", "")] * moment.free,
    ]


def rows(walk: Walk, section: str) -> list[tuple[str, list[Slot]]]:
    """What is shown of the pool in a phase: a caption and the slots, from before it to after it."""
    tokens, first = walk.example.tokens, walk.cached[0]
    plain, second = walk.uncached[0], walk.cached[1]

    def row(caption: str, life: Life, moment: Moment) -> tuple[str, list[Slot]]:
        return caption, slots(moment, life, tokens)

    if section == "allocate":
        return [row("before", first, first.after("before")[0]), row("allocated", first, first.after("allocate")[0])]
    if section == "prefill":
        return [
            row("allocated", first, first.after("allocate")[0]),
            row("prefilled", first, first.after("prefill")[0]),
            row("2nd request", second, second.after("allocate")[0]),
            row("prefilled", second, second.after("prefill")[0]),
        ]
    if section == "decode":
        return [row("prefilled", first, first.after("prefill")[0]), row("decoded", first, first.after("decode")[-1])]
    return [
        row("decoded", first, first.after("decode")[-1]),
        row("released", plain, plain.after("release")[0]),
        row("or kept", first, first.after("release")[0]),
    ]
