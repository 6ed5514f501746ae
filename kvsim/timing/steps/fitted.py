"""The fitted range of a model's steps on one GPU: the kernels of `shapes` against what each family's fits have seen."""

from collections.abc import Iterator

from kvsim.timing.families.measured import stands_for
from kvsim.timing.fitted import FittedRange, Span, furthest, narrowest
from kvsim.timing.fitting.calibration import Calibration
from kvsim.timing.steps.kernels import BF16_BYTES
from kvsim.timing.steps.shapes import Shapes


class Seen:
    """What the fits of each family on `gpu` have seen, as spans; of the GPU's own microbenchmarks where these serve."""

    def __init__(self, calibration: Calibration, gpu: str, *, latent: bool) -> None:
        self._calibration, self._gpu, self._latent = calibration, gpu, latent

    def span(self, family: str, column: str) -> Span | None:
        """Of one column; None where nobody fitted the family."""
        own = stands_for(family, latent=self._latent)
        if own is not None and (self._gpu, own) in self._calibration.entries:
            family = own
        found = self._calibration.ranges(self._gpu, family).get(column)
        return None if found is None else Span(family, *found)


def fitted_range(
    calibration: Calibration, gpu: str, shapes: Shapes, decode: str, prefill: str, block_size: int | None = None
) -> FittedRange:
    """Of every step of these shapes; `decode` and `prefill` name the families of attention.

    `block_size`: of the block tables through which decoding reads the KV (None: in one piece).
    """
    seen = Seen(calibration, gpu, latent=shapes.model.kv_lora_rank is not None)
    linear = [(f"linear:{dtype}", "m") for dtype in sorted({one.dtype for one in (*shapes.matrices, shapes.head)})]
    tokens = [*linear, *([(shapes.experts_family, "tokens")] if shapes.model.moe_layers else [])]
    spans = {
        "sequences": [seen.span(decode, "sequences")],
        "context": [seen.span(decode, "context")],
        "tokens": [*(seen.span(*one) for one in tokens), *_messages(seen, shapes)],
        "chunk": [seen.span(prefill, "tokens")],
        "cached": [seen.span(prefill, "cached")],
    }
    known = {name: narrowest(span for span in every if span is not None) for name, every in spans.items()}
    values = [*_shapes(seen, shapes, decode, prefill), (seen.span(decode, "block"), "slots a block", block_size or 0)]
    return FittedRange(
        spans={name: span for name, span in known.items() if span is not None},
        shapes=tuple(furthest((span, what, value) for span, what, value in values if span is not None)),
    )


def _messages(seen: Seen, shapes: Shapes) -> Iterator[Span]:
    """Messages of an all-reduce as tokens."""
    span = seen.span("all_reduce:graph", "bytes") if shapes.layout.gpus > 1 else None
    if span is not None:
        width = BF16_BYTES * shapes.model.hidden
        yield Span(span.family, max(1.0, span.low / width), span.high / width)


def _shapes(seen: Seen, shapes: Shapes, decode: str, prefill: str) -> Iterator[tuple[Span | None, str, float]]:
    """(span, what, value) of everything that the model and its cut decide."""
    for matrix in (*shapes.matrices, shapes.head):
        for column, what, value in (("n", "outputs", matrix.n), ("k", "inputs", matrix.k)):
            yield seen.span(f"linear:{matrix.dtype}", column), what, value
    for kind in shapes.attention:
        for family in (decode, prefill):
            for column in ("heads", "kv_heads", "head_dim"):
                yield seen.span(family, column), column.replace("_", " "), getattr(kind, column)
    model, layout = shapes.model, shapes.layout
    if model.moe_layers:
        sizes = {
            "hidden": model.hidden,
            "intermediate": model.moe_intermediate or 0,
            "experts": model.experts,
            "active": model.experts_active,
            "tensor_ranks": layout.expert_tensor,
            "expert_ranks": layout.expert_parallel,
        }
        for column, size in sizes.items():
            yield seen.span(shapes.experts_family, column), column.replace("_", " "), size
    if layout.gpus > 1:
        yield seen.span("all_reduce:graph", "ranks"), "ranks", layout.gpus
