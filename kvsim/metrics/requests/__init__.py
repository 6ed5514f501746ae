"""What happened to each request: on its way, when it has ended, and all of them together."""

from kvsim.metrics.requests.journey import Journey, allowed_output, entering, sequence_ids, whose
from kvsim.metrics.requests.log import RequestLog
from kvsim.metrics.requests.marks import Marks
from kvsim.metrics.requests.records import NO_HITS, Ended, Event, Loss, added

__all__ = [
    "NO_HITS",
    "Ended",
    "Event",
    "Journey",
    "Loss",
    "Marks",
    "RequestLog",
    "added",
    "allowed_output",
    "entering",
    "sequence_ids",
    "whose",
]
