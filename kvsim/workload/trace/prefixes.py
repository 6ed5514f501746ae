"""What the prompts of a trace share: their prefix blocks, as one list."""

import os
from array import array
from dataclasses import dataclass, replace
from itertools import islice

from kvsim.errors import InputError
from kvsim.workload.arguments import check_whole
from kvsim.workload.readers import READERS
from kvsim.workload.readers.interface import Intake, OnBadRow
from kvsim.workload.readers.options import ReadOptions
from kvsim.workload.readers.request import BlockId
from kvsim.workload.trace.files import nothing_kept, opened, trace_path


@dataclass(frozen=True)
class Prefixes:
    """The prompts of a trace in file order, as `tokens` and as blocks of `block_tokens` tokens.

    Blocks are numbered from 0 in order of appearance; the last block of a prompt may be partly filled, and tokens
    behind it are like no other prompt's. `other_ways` counts blocks that were seen behind another block than before:
    none where ids name prefixes, some where they name contents.
    """

    trace: str
    format: str
    block_tokens: int
    tokens: "array[int]"
    blocks: "list[array[int]]"
    distinct_blocks: int
    other_ways: int
    rows_read: int
    rows_dropped: dict[str, int]

    def full(self) -> "list[array[int]]":
        """The blocks without those that are partly filled: what an engine can share."""
        size = self.block_tokens
        return [blocks[: tokens // size] for blocks, tokens in zip(self.blocks, self.tokens, strict=True)]


def read_prefixes(
    trace: str | os.PathLike[str],
    *,
    format: str | None = None,
    block_tokens: int | None = None,
    on_bad_row: OnBadRow = "error",
    requests: int | None = None,
    options: ReadOptions | None = None,
) -> Prefixes:
    """Read the prompts of a trace, or the first so many, into memory: 8 bytes a block.

    `block_tokens` beats what the file or its format says. InputError on a wrong file, and on one whose format tells
    nothing of what prompts share; ValueError on a wrong argument.
    """
    for argument, value in (("block_tokens", block_tokens), ("requests", requests)):
        if value is not None:
            check_whole(argument, value, 1)
    options = options or ReadOptions()
    if block_tokens is not None:
        options = replace(options, block_tokens=block_tokens)
    intake = Intake(str(trace), on_bad_row, options)
    reader, source = opened(trace_path(trace), str(trace), format)
    if reader.identity(source, options) == "absent":
        able = ", ".join(name for name, one in READERS.items() if one.prefix_identity != "absent")
        raise InputError(
            f"{trace}: this trace (format {reader.format}) does not tell what prompts share, so no hit can be counted; "
            f"give one with ids of prefix blocks (formats: {able})"
        )
    size = options.block_tokens or reader.block_tokens(source)
    numbers: dict[BlockId, int] = {}
    behind = array("q")
    """By block number the block before it where it was first seen; -1 at the head of a prompt."""
    tokens, prompts = array("q"), []
    other_ways = 0
    for prompt in islice(reader.prompts(source, intake, size), requests):
        blocks = array("q")
        before = -1
        for block in prompt.blocks:
            number = numbers.setdefault(block, len(numbers))
            if number == len(behind):
                behind.append(before)
            elif behind[number] != before:
                other_ways += 1
            blocks.append(number)
            before = number
        tokens.append(prompt.tokens)
        prompts.append(blocks)
    if not prompts:
        raise intake.wrong(nothing_kept(intake))
    return Prefixes(
        trace=str(trace),
        format=reader.format,
        block_tokens=size,
        tokens=tokens,
        blocks=prompts,
        distinct_blocks=len(numbers),
        other_ways=other_ways,
        rows_read=intake.row,
        rows_dropped=dict(sorted(intake.dropped.items())),
    )
