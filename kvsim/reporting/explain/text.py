"""The phases of a request as text for 80 columns: a paragraph each, with its small matrices."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kvsim.reporting.explain.pool import Slot, rows
from kvsim.study.explain.attention import Array
from kvsim.study.explain.cost import total
from kvsim.study.explain.example import Step, Walk
from kvsim.study.explain.request_bytes import RequestBytes

PHASES = ("allocate", "prefill", "decode", "release")
"""Those that have a figure, in order."""

MASKED, UNWRITTEN = "-", "__"

TWELVE_DIGITS = 1e-12
"""Sums of floats depend on their order, and with it on the machine; a real difference would be far larger."""

_LABEL, _CELL = 13, 6
"""Letters of the caption of a row of slots, and of one slot."""


@dataclass(frozen=True)
class Section:
    """One phase: what happens in words, and its matrices as lines that keep their columns."""

    name: str
    title: str
    words: str
    lines: list[str]


def sections(walk: Walk, request: RequestBytes) -> list[Section]:
    """The four phases of the example, what a cache saves, and the request of a real model."""
    return [_given(walk), *(_PHASES[name](walk) for name in PHASES), _cost(walk), _sized(request)]


def _given(walk: Walk) -> Section:
    given, width = walk.example, walk.example.embeddings.shape[1]
    prompt = " ".join(given.tokens[: given.prompt_tokens])
    lines = [
        f"  {token:>5}  ({', '.join(f'{value:g}' for value in row)})"
        for token, row in zip(given.tokens, given.embeddings, strict=True)
    ]
    return Section(
        "given",
        "Given",
        f"A model of one attention layer with one head of d = {width}, whose projections are the identity: q = k = v = "
        f'x. The prompt is "{prompt}". x of "{given.tokens[given.prompt_tokens]}" and the candidates for the next '
        f"token are given too. All else is computed here, the memory by kvsim's own allocators.",
        lines,
    )


def _allocate(walk: Walk) -> Section:
    given, taken = walk.example, walk.cached[0].after("allocate")[0]
    blocks = (taken.reserved + taken.used + taken.internal) // given.block_size
    return Section(
        "allocate",
        "1 Allocate",
        f"The {given.prompt_tokens} tokens of the prompt need slots for their keys and values before anything is "
        f"computed: {blocks} blocks of {given.block_size} slots from a pool of {given.pool_blocks}. Nothing is "
        f"written yet ({UNWRITTEN}): the slots are reserved, the last one for the first token that is decoded.",
        _pool(walk, "allocate"),
    )


def _prefill(walk: Walk) -> Section:
    given, step, hit = walk.example, walk.prefill, walk.hit_prefill
    candidates = ", ".join(f"{token} {share:.2f}" for token, share in given.candidates.items())
    skipped = len(walk.prefill.tokens) - len(hit.tokens)
    return Section(
        "prefill",
        "2 Prefill",
        "One step computes the whole prompt and writes K and V of every token. The causal mask hides later tokens "
        f"({MASKED}). Only the last position predicts: from its output the model samples (given: {candidates}), "
        f'greedily "{walk.next_token}". Q is used once and never cached. A second request with this prompt, where '
        f"blocks keep their contents, finds {skipped} tokens (whole blocks only) and skips their rows: it computes "
        f'"{" ".join(hit.tokens)}" alone, against the cached K and V, and gets the same output.',
        [
            f"{'':>7}{'  q k / sqrt d':<{_CELL * 3 + 4}}{'  weights':<{_CELL * 3 + 4}}  outputs",
            *_attention_rows(step, given.tokens),
            f"  second request, {skipped} tokens found:",
            *_attention_rows(hit, given.tokens),
            "",
            *_pool(walk, "prefill"),
        ],
    )


def _decode(walk: Walk) -> Section:
    given, step = walk.example, walk.decodes[-1]
    lines = [f"{'':>11}{''.join(f'{token:>8}' for token in given.tokens[: step.cached + 1])}"]
    for name, row in (("scores", step.attended.scores[0][0]), ("weights", step.attended.weights[0][0])):
        lines.append(f"  {name:<9}{_numbers(row, 4, 8)}")
    lines.append(f"  {'output':<9}{_numbers(step.attended.outputs[0], 4, 8)}")
    read = f"{step.cached} cached and the one just appended"
    return Section(
        "decode",
        "3 Decode",
        f'A step now computes one token, "{step.tokens[0]}": it appends its K and V and reads all {step.cached + 1} '
        f"({read}). Nothing comes later than the one query, so that decode needs no mask. The output is that of "
        f"computing all {step.cached + 1} tokens again, in {_off(step)}. Each layer has a cache of its own, since each "
        f'has its own K and V; here there is one. Next comes "{given.last}" (given), and the request ends.',
        [*lines, "", *_pool(walk, "decode")],
    )


def _release(walk: Walk) -> Section:
    given = walk.example
    kept = walk.cached[0].after("release")[0].cached // given.block_size
    return Section(
        "release",
        "4 Release or keep",
        f'"{given.last}" was sampled last, so that its K and V are never computed: {len(given.tokens)} tokens are '
        f"written, one fewer than prompt and output have. Without prefix caching the blocks are free at once; with "
        f"it, {kept} full blocks stay cached, in brackets, until somebody needs the room.",
        _pool(walk, "release"),
    )


_PHASES = {"allocate": _allocate, "prefill": _prefill, "decode": _decode, "release": _release}


def _cost(walk: Walk) -> Section:
    step = walk.decodes[-1]
    head = f"  {'':<19}{'FLOPs':>8}{'without':>10}{'bytes':>10}{'without':>10}"
    kept, again = [*step.with_cache, total(step.with_cache)], [*step.without_cache, total(step.without_cache)]
    lines = [
        f"  {one.name:<19}{one.flops:>8,}{other.flops:>10,}{one.bytes:>10,}{other.bytes:>10,}"
        for one, other in zip(kept, again, strict=True)
    ]
    return Section(
        "cost",
        "What the cache saves",
        f'The step that computes "{step.tokens[0]}", with the cache and without it, where all {step.cached + 1} tokens '
        "are computed again. A multiplication, addition, division or exponential is one FLOP; an operator reads its "
        "inputs and writes its output once, numbers of 8 bytes.",
        [head, *lines],
    )


def _sized(request: RequestBytes) -> Section:
    tokens = request.prompt_tokens + request.output_tokens
    lines = [
        _bytes(f"prefill, {request.prompt_tokens:,} tokens", request.prefill_bytes),
        _bytes("each token", request.bytes_per_token),
    ]
    if request.far_bytes_per_token != request.bytes_per_token:
        lines.append(_bytes("  once windows are full", request.far_bytes_per_token))
    if request.state_bytes:
        lines.append(_bytes("fixed state, in all of these", request.state_bytes))
    lines += [
        _bytes(f"by the formula, {tokens:,} tokens", request.formula_bytes),
        _bytes(f"in an engine, {request.engine_tokens:,} tokens", request.engine_bytes),
    ]
    words = (
        f"{request.model}: {request.layers}, in {request.kv_dtype}. Prompt {request.prompt_tokens:,}, output "
        f"{request.output_tokens:,} tokens. The formula counts every token; an engine never computes the KV of the "
        "token sampled last, since no token follows that would attend to it."
    )
    if request.block_bytes is not None:
        size = request.block_size
        lines.append(_bytes(f"in {request.blocks:,} blocks of {size}", request.block_bytes))
    elif request.window_tokens is not None:
        words += (
            f" Its window layers keep the last {request.window_tokens:,} tokens at most; an engine gives blocks behind "
            "the window back, a few at a time."
        )
    return Section("request", "The same for a real model", words, lines)


def _bytes(label: str, size: int) -> str:
    return f"  {label:<34}{size:>18,} B"


def _attention_rows(step: Step, tokens: Sequence[str]) -> list[str]:
    """A line for each new token: its scores, weights and output."""
    found = step.attended
    lines = []
    for token, *rows_of in zip(step.tokens, found.scores[0], found.weights[0], found.outputs, strict=True):
        scores, weights, outputs = rows_of
        cells = [_numbers(scores, 3, _CELL), _numbers(weights, 3, _CELL, scores), _numbers(outputs, 3, _CELL)]
        lines.append(f"{token:>5}  {'    '.join(cells)}")
    return lines


def _numbers(row: Array, digits: int, width: int, scores: Array | None = None) -> str:
    """Numbers in columns; what the mask hides (where the score is -inf) is a dash."""
    seen = np.isfinite(row if scores is None else scores)
    return "".join(
        f"{value:>{width}.{digits}f}" if there else f"{MASKED:>{width}}" for value, there in zip(row, seen, strict=True)
    )


def _pool(walk: Walk, section: str) -> list[str]:
    """The pool before and after, a block in each pair of bars."""
    size = walk.example.block_size
    lines = []
    for caption, these in rows(walk, section):
        cells = list(map(_slot, these))
        blocks = ["".join(cells[at : at + size]) for at in range(0, len(cells), size)]
        lines.append(f"  {caption:<{_LABEL}}|{'|'.join(blocks)}|")
    return lines


def _slot(slot: Slot) -> str:
    text = {"used": slot.token, "cached": f"[{slot.token}]", "free": ""}.get(slot.kind, UNWRITTEN)
    return f"{text:^{_CELL}}"


def _off(step: Step) -> str:
    return "all of 12 digits" if step.off_recomputed < TWELVE_DIGITS else f"within {step.off_recomputed:.0e}"
