"""The traffic of one run, as a stream of requests: from a trace or generated, with what the clients decide.

Workload(TraceTraffic("azure-conv-2023", rate=4.0), max_tokens=512)
Workload(GeneratedTraffic(arrivals=Poisson(rate=8.0), prompt_tokens=..., output_tokens=..., requests=1000),
seed=1)
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import islice, repeat
from typing import Protocol

from kvsim.content import Content
from kvsim.errors import PastClockError
from kvsim.request import PS_PER_S, Request
from kvsim.workload.arguments import check_whole
from kvsim.workload.arrivals import LAST_PS
from kvsim.workload.beam import Beam
from kvsim.workload.client import MODEL_LIMIT, MaxTokens, Patience, max_tokens_rule
from kvsim.workload.generated import GeneratedTraffic
from kvsim.workload.readers.interface import Row
from kvsim.workload.shared_prefix import SharedPrefix
from kvsim.workload.streams import Streams

__all__ = ["GeneratedTraffic", "Traffic", "Workload"]


class Traffic(Protocol):
    """Who arrives when and how long; a `TraceTraffic` or a `GeneratedTraffic`."""

    def rows(self, streams: Streams) -> Iterator[Row]:
        """(arrival in picoseconds, prompt tokens, output tokens), one by one, arrivals never decreasing."""

    def more_outputs(self, streams: Streams) -> Iterator[int] | None:
        """True output lengths of further samples of the same prompts, without end; None: as long as the first."""

    def contents(self) -> Iterator[Content] | None:
        """What the prompt of each row is; None: nothing is known."""

    def describe(self) -> dict[str, object]:
        """What the run folder says of it: plain values, and no time or path of the machine."""


class Workload:
    """The requests of one run, in order of arrival; iterating gives the same stream each time.

    `max_tokens` is a whole number, "model_limit" (the engine allows what its model does) or {"times_output":
    factor}. `samples` outputs are asked of every request, each of a length of its own where lengths are drawn.
    With `beam` they are the candidates of a beam search, all as long as the first. With `prefix` every prompt begins
    with a system prompt, which its length includes; one that is too short for it and a token more is made that long.
    `cancel` says which clients give up and when; `priority` and `tenant` are put on every request.
    `seed` is the root of all draws. ValueError on a wrong argument, InputError on a wrong trace.
    """

    def __init__(
        self,
        traffic: Traffic,
        *,
        seed: int = 0,
        max_tokens: int | str | Mapping[str, float] | MaxTokens = MODEL_LIMIT,
        samples: int = 1,
        beam: Beam | None = None,
        prefix: SharedPrefix | None = None,
        cancel: Patience | None = None,
        priority: int = 0,
        tenant: str = "",
    ) -> None:
        if isinstance(priority, bool) or not isinstance(priority, int):
            raise ValueError(f"priority: must be a whole number; got {priority!r}")
        if not -(1 << 63) <= priority < 1 << 63:
            raise ValueError(f"priority: must fit 64 bits; got {priority!r}")
        check_whole("samples", samples, 1)
        self._traffic = traffic
        if beam is not None and samples < 2:
            raise ValueError(f"samples: beam search needs at least 2 candidates; got {samples}")
        self._samples = samples
        self._beam = beam
        self._prefix = prefix
        self._streams = Streams(seed)
        self._max_tokens = max_tokens_rule(max_tokens)
        self._cancel = cancel
        self._priority = priority
        self._tenant = tenant

    def __iter__(self) -> Iterator[Request]:
        """Requests numbered from 0, made one by one as the run asks for them.

        PastClockError in place of the first that arrives past the 64-bit clock; those before it have come by then.
        """
        max_tokens, priority, tenant = self._max_tokens.of, self._priority, self._tenant
        patiences_ps: Iterator[int | None] = repeat(None)
        if self._cancel is not None:
            patiences_ps = self._cancel.patiences_ps(self._streams.generator("cancel"))
        rows = enumerate(self._traffic.rows(self._streams))
        further, prefix = self._samples - 1, self._prefix
        groups = prefix.draws(self._streams.generator("prefix")) if prefix else None
        contents = self._traffic.contents()
        lengths = self._traffic.more_outputs(self._streams) if further and not self._beam else None
        for (number, (arrival_ps, prompt, output)), patience_ps in zip(rows, patiences_ps, strict=False):
            if arrival_ps > LAST_PS:
                raise PastClockError(
                    f"workload: request {number} arrives {arrival_ps / PS_PER_S:.3g} s after the start, "
                    f"past the end of the 64-bit clock ({LAST_PS / PS_PER_S:.3g} s); take fewer requests, "
                    "a higher rate or a horizon before that"
                )
            request = Request(number, arrival_ps, prompt, output, 0, patience_ps, priority, tenant)
            if further:
                request.more_outputs = (output,) * further if lengths is None else tuple(islice(lengths, further))
                request.max_tokens = max_tokens(max(output, *request.more_outputs))
            else:
                request.max_tokens = max_tokens(output)
            if groups is not None and prefix is not None:
                request.prompt_tokens = prefix.prompt_tokens(prompt)
                request.content = prefix.content(next(groups), number, request.prompt_tokens)
            elif contents is not None:
                request.content = next(contents)
            if self._beam is not None:
                draws = self._streams.generator("beam", number)
                request.replacements = self._beam.replacements(draws, self._samples, output)
            yield request

    def describe(self) -> dict[str, object]:
        """The report for the run folder, plain values ready for JSON. Reads a trace once if need be."""
        return {
            **self._traffic.describe(),
            **self._max_tokens.describe(),
            "cancel": None if self._cancel is None else asdict(self._cancel),
            "samples": self._samples,
            "beam": None if self._beam is None else asdict(self._beam),
            "prefix": None if self._prefix is None else asdict(self._prefix),
            "priority": self._priority,
            "tenant": self._tenant,
        }
