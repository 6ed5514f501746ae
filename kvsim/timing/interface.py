"""The seam between the engine and whatever says how long a step takes."""

from collections.abc import Sequence as Seq
from typing import Protocol

from kvsim.step import Chunk


class StepTiming(Protocol):
    """Step times in integer picoseconds. Pure: the same batch always takes the same time.

    For a batch that only decodes, the time is linear in the context: `base + slope x context` with both numbers
    integers that depend on the number of sequences alone. That is what makes a leap exact.
    """

    provenance: str
    """Where the numbers come from, for every figure and table: "datasheet", for instance."""

    def decode(self, decodes: int) -> tuple[int, int]:
        """(base, slope): picoseconds of a step of `decodes` decoding sequences, and per context token."""
        ...

    def step_ps(self, decodes: int, context: int, chunks: Seq[Chunk], copied_slots: int, mapped_pages: int = 0) -> int:
        """One step of `decodes` decoding sequences over `context` tokens, prompt chunks, slots copied, pages mapped."""
        ...


class LinearTiming:
    """A step time that is linear in everything, given outright: for tests, theory and what-ifs.

    All arguments are integer picoseconds: per step, per decoding sequence, per context token, per prefill token, per
    slot copied, per page mapped. With `step_ps` alone every step takes the same time, and the engine is a queue of
    the textbooks.
    """

    provenance = "given in the scenario"

    def __init__(
        self,
        *,
        step_ps: int,
        per_sequence_ps: int = 0,
        per_context_ps: int = 0,
        per_prefill_ps: int = 0,
        per_copied_ps: int = 0,
        per_mapped_ps: int = 0,
    ) -> None:
        if step_ps < 1:
            raise ValueError(f"step_ps is {step_ps}; a step takes at least one picosecond")
        parts = {
            "per_sequence_ps": per_sequence_ps,
            "per_context_ps": per_context_ps,
            "per_prefill_ps": per_prefill_ps,
            "per_copied_ps": per_copied_ps,
            "per_mapped_ps": per_mapped_ps,
        }
        for name, value in parts.items():
            if value < 0:
                raise ValueError(f"{name} is {value}; no part of a step takes less than no time")
        self._step, self._sequence = step_ps, per_sequence_ps
        self._context, self._prefill, self._copied = per_context_ps, per_prefill_ps, per_copied_ps
        self._mapped = per_mapped_ps

    def decode(self, decodes: int) -> tuple[int, int]:
        """See `StepTiming`."""
        return self._step + self._sequence * decodes, self._context

    def step_ps(self, decodes: int, context: int, chunks: Seq[Chunk], copied_slots: int, mapped_pages: int = 0) -> int:
        """See `StepTiming`."""
        tokens = sum(chunk.tokens for chunk in chunks)
        return (
            self._step
            + self._sequence * (decodes + len(chunks))
            + self._context * context
            + self._prefill * tokens
            + self._copied * copied_slots
            + self._mapped * mapped_pages
        )
