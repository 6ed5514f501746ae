"""Batches for tests of step times."""

from kvsim.step import Rows, StepPlan


def step_of(decodes=0, context=0, chunks=(), copied_slots=0, mapped_pages=0, **more):
    """A plan of `decodes` sequences over `context` tokens, prompt chunks, slots copied and pages mapped."""
    return StepPlan(
        chunks=list(chunks),
        decodes=decodes,
        rows=Rows(decodes, context),
        copied_slots=copied_slots,
        mapped_pages=mapped_pages,
        **more,
    )
