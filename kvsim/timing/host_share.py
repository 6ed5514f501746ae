"""A part of every live request's KV in host memory: each step reads it over the host link before attention can.

The link works beside the GPU, and a step takes the longer of the two; or nothing overlaps, and it takes both. Of the
prompts of a step the KV cached before them is read too, and new KV goes the other way at the same time.
"""

from fractions import Fraction

from kvsim.request import PS_PER_S
from kvsim.step import StepPlan
from kvsim.timing.fitted import FittedRange
from kvsim.timing.interface import Anew, Line, StepTiming


def as_fraction(share: float) -> Fraction:
    """The share as it was written: 0.7 is seven tenths, whatever binary makes of it."""
    return Fraction(repr(share))


class HostShareTiming:
    """Step times of `gpu`, with `share` of each token's `kv_bytes` (on one rank) behind a link of that rate.

    `overlapped`: the link reads while the GPU computes.
    """

    def __init__(
        self, gpu: StepTiming, *, share: float, kv_bytes: int, link_bytes_per_s: float, overlapped: bool
    ) -> None:
        self._gpu, self._overlapped = gpu, overlapped
        self._token_ps = round(PS_PER_S * float(as_fraction(share) * kv_bytes) / link_bytes_per_s)
        self.provenance = gpu.provenance
        self.fitted: FittedRange | None = gpu.fitted

    def decode(self, rows: int, context: int = 0) -> Line:
        """See `StepTiming`: where the link falls behind the GPU as contexts grow, the line bends."""
        base, slope, until = self._gpu.decode(rows, context)
        link = self._token_ps
        if not self._overlapped:
            return Line(base, slope + link, until)
        if link <= slope:
            return Line(base, slope, until)
        bend = base // (link - slope) + 1
        if context >= bend:
            return Line(0, link, until)
        return Line(base, slope, bend if until is None else min(bend, until))

    def anew(self, rows: int, tokens: int) -> Anew:
        """See `StepTiming`. Where nothing is kept, nothing is on the host."""
        return self._gpu.anew(rows, tokens)

    def step_ps(self, plan: StepPlan) -> int:
        """See `StepTiming`."""
        gpu_ps = self._gpu.step_ps(plan)
        if plan.pairs:
            return gpu_ps
        chunks = plan.padded_chunks
        read = plan.rows.context + sum(written for _, written in chunks)
        new = plan.rows.height + sum(length for length, _ in chunks)
        link_ps = self._token_ps * max(read, new)
        return max(gpu_ps, link_ps) if self._overlapped else gpu_ps + link_ps
