"""The seam between the engine and whatever says how long a step takes."""

from typing import NamedTuple, Protocol

from kvsim.step import StepPlan
from kvsim.timing.fitted import FittedRange


class Anew(NamedTuple):
    """The time of a step that computes all contexts again, in integer picoseconds, around a number of tokens.

    `base_ps + token_ps x tokens + pair_ps x pairs of tokens that attend to one another`, for fewer than `until_tokens`
    tokens (None: for any number).
    """

    base_ps: int
    token_ps: int
    pair_ps: int
    until_tokens: int | None = None


class Line(NamedTuple):
    """The time of a step that only decodes, in integer picoseconds: `base_ps + slope_ps x context`.

    It holds from the context that was asked about up to `until_context` (not included; None: for any).
    """

    base_ps: int
    slope_ps: int
    until_context: int | None = None


class StepTiming(Protocol):
    """Step times in integer picoseconds. Pure: the same batch always takes the same time.

    For a batch that only decodes, the time is piecewise linear in the context, with integers that depend on the
    number of rows alone. That is what makes a leap exact.
    """

    provenance: str
    """Where the numbers come from, for every figure and table: "datasheet", for instance."""
    fitted: FittedRange | None
    """The batches and shapes that they were fitted to; None where nothing was."""

    def decode(self, rows: int, context: int = 0) -> Line:
        """How long a step takes that decodes `rows` sequences, around so many context tokens of all of them."""
        ...

    def anew(self, rows: int, tokens: int) -> Anew:
        """How long a step takes that computes `tokens` tokens of `rows` sequences from the start (nothing is kept)."""
        ...

    def step_ps(self, plan: StepPlan) -> int:
        """The planned step: decoding rows, prompt chunks, slots copied, gathered and swapped, pages mapped."""
        ...


class LinearTiming:
    """A step time that is linear in everything, given outright: for tests, theory and what-ifs.

    All arguments are integer picoseconds: per step, per decoding row or chunk, per context token, per prefill token
    (padding included), per slot copied or gathered, per page mapped, per slot swapped, and per pair of tokens where
    nothing is kept. With `step_ps` alone every step takes the same time, and the engine is a queue of the textbooks.
    """

    provenance = "given in the scenario"
    fitted: FittedRange | None = None

    def __init__(
        self,
        *,
        step_ps: int,
        per_sequence_ps: int = 0,
        per_context_ps: int = 0,
        per_prefill_ps: int = 0,
        per_copied_ps: int = 0,
        per_mapped_ps: int = 0,
        per_swapped_ps: int = 0,
        per_pair_ps: int = 0,
    ) -> None:
        if step_ps < 1:
            raise ValueError(f"step_ps is {step_ps}; a step takes at least one picosecond")
        parts = {
            "per_sequence_ps": per_sequence_ps,
            "per_context_ps": per_context_ps,
            "per_prefill_ps": per_prefill_ps,
            "per_copied_ps": per_copied_ps,
            "per_mapped_ps": per_mapped_ps,
            "per_swapped_ps": per_swapped_ps,
            "per_pair_ps": per_pair_ps,
        }
        for name, value in parts.items():
            if value < 0:
                raise ValueError(f"{name} is {value}; no part of a step takes less than no time")
        self._step, self._sequence = step_ps, per_sequence_ps
        self._context, self._prefill, self._copied = per_context_ps, per_prefill_ps, per_copied_ps
        self._mapped, self._swapped, self._pair = per_mapped_ps, per_swapped_ps, per_pair_ps

    def decode(self, rows: int, context: int = 0) -> Line:
        """See `StepTiming`."""
        return Line(self._step + self._sequence * rows, self._context)

    def anew(self, rows: int, tokens: int) -> Anew:
        """See `StepTiming`."""
        return Anew(self._step + self._sequence * rows, self._prefill, self._pair)

    def step_ps(self, plan: StepPlan) -> int:
        """See `StepTiming`."""
        rows = plan.rows.height + len(plan.chunks)
        if plan.pairs:
            tokens = plan.computed_anew
            base, token, pair, _ = self.anew(rows, tokens)
            computed = base + token * tokens + pair * plan.pairs
        else:
            tokens = sum(tokens for tokens, _ in plan.padded_chunks)
            computed = self._step + self._sequence * rows + self._context * plan.rows.context + self._prefill * tokens
        return (
            computed
            + self._copied * (plan.copied_slots + plan.gathered_slots)
            + self._mapped * plan.mapped_pages
            + self._swapped * plan.swapped_slots
        )
