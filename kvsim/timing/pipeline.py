"""Pipeline stages with micro-batches: as many batches in flight as there are stages, each on a stage of its own.

A step here is a round: every sequence gets its token once. Its rows are dealt evenly over the micro-batches, its chunks
longest first. Once the pipeline is full, each micro-batch takes as long as a pass through all stages, and they all pass
at the same time: a round takes what the largest of them takes, and the sends between stages. With equal stages that is
exact; where rows are fewer than stages the others idle, as they do in the engine.
"""

from dataclasses import replace

from kvsim.step import NO_ROWS, Rows, StepPlan
from kvsim.timing.fitted import FittedRange
from kvsim.timing.interface import Anew, Line, StepTiming


class PipelineTiming:
    """Step times on `stages` stages of the model that `whole` times on one.

    Between two stages a micro-batch takes `send_ps`, and `send_token_ps` for each of its tokens.
    """

    def __init__(self, whole: StepTiming, *, stages: int, send_ps: int, send_token_ps: int) -> None:
        self._whole, self._stages = whole, stages
        self._send_ps, self._send_token_ps = send_ps, send_token_ps
        self.provenance = whole.provenance
        self.fitted = None if whole.fitted is None else _of_micro_batches(whole.fitted, stages)

    def decode(self, rows: int, context: int = 0) -> Line:
        """See `StepTiming`."""
        micro = -(-rows // self._stages)
        base, slope, _ = self._whole.decode(micro)
        # The largest micro-batch attends to its rows' part of the context.
        return Line(base + self._sends_ps(micro), -(-slope * micro // rows) if rows else slope)

    def anew(self, rows: int, tokens: int) -> Anew:
        """See `StepTiming`. Nobody serves so on stages: as on one."""
        return self._whole.anew(rows, tokens)

    def step_ps(self, plan: StepPlan) -> int:
        """See `StepTiming`."""
        rows, context, _ = plan.rows
        if plan.pairs:
            return self._whole.step_ps(plan)
        if not plan.chunks:
            alone, here = self._whole.decode(rows, context), self.decode(rows, context)
            moved_ps = self._whole.step_ps(plan) - alone.base_ps - alone.slope_ps * context
            return here.base_ps + here.slope_ps * context + moved_ps
        return max(self._micro_batch_ps(part) for part in self._dealt(plan))

    def _dealt(self, plan: StepPlan) -> list[StepPlan]:
        """The micro-batches of a round with prompts; what is moved first is moved by each, on its own stage."""
        rows, context, _ = plan.rows
        micro = -(-rows // self._stages)
        mine = Rows(micro, -(-context * micro // rows)) if rows else NO_ROWS
        ordered = sorted(plan.chunks, key=lambda chunk: -chunk.tokens)
        groups = [ordered[number :: self._stages] for number in range(min(self._stages, len(ordered)))]
        return [replace(plan, chunks=group, rows=mine, decodes=min(plan.decodes, micro)) for group in groups]

    def _micro_batch_ps(self, part: StepPlan) -> int:
        tokens = part.rows.height + sum(length for length, _ in part.padded_chunks)
        return self._whole.step_ps(part) + self._sends_ps(tokens)

    def _sends_ps(self, tokens: int) -> int:
        return (self._stages - 1) * (self._send_ps + self._send_token_ps * tokens)


def _of_micro_batches(fitted: FittedRange, stages: int) -> FittedRange:
    """A round holds as many micro-batches as there are stages."""
    spans = dict(fitted.spans)
    for name in ("sequences", "tokens"):
        if name in spans:
            spans[name] = spans[name]._replace(high=spans[name].high * stages)
    return FittedRange(spans, fitted.shapes)
