"""The traffic of one run, as a stream of requests: from a trace or generated, with what the clients decide.

Workload(TraceTraffic("azure-conv-2023", rate=4.0), max_tokens=512)
Workload(GeneratedTraffic(arrivals=Poisson(rate=8.0), prompt_tokens=..., output_tokens=..., requests=1000),
seed=1)
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice, repeat
from typing import Any, Protocol

from kvsim.content import Content, Layers
from kvsim.errors import PastClockError
from kvsim.request import PS_PER_S, Request
from kvsim.workload.arguments import check_whole
from kvsim.workload.arrivals import LAST_PS
from kvsim.workload.clients.beam import Beam
from kvsim.workload.clients.limits import MODEL_LIMIT, MaxTokens, Patience, max_tokens_rule
from kvsim.workload.clients.tags import TagMix, Tags
from kvsim.workload.generated import GeneratedTraffic
from kvsim.workload.layers import Shared, Stack, layer_map
from kvsim.workload.layers.stack import prompt
from kvsim.workload.layers.warm import Warm, shared_requests
from kvsim.workload.readers.interface import Row
from kvsim.workload.sessions.drive import ByTheAnswers, Loop, LoopTraffic, UnderWay, by_the_clock
from kvsim.workload.sessions.loop import SessionTraffic, Sources
from kvsim.workload.streams import Streams

__all__ = ["GeneratedTraffic", "LoopTraffic", "SessionTraffic", "Traffic", "Workload"]


class Traffic(Protocol):
    """Who arrives when and how long; a `TraceTraffic` or a `GeneratedTraffic`."""

    def rows(self, streams: Streams) -> Iterator[Row]:
        """(arrival in picoseconds, prompt tokens, output tokens), one by one, arrivals never decreasing."""

    def more_outputs(self, streams: Streams) -> Iterator[int] | None:
        """True output lengths of further samples of the same prompts, without end; None: as long as the first."""

    def contents(self) -> Iterator[Content] | None:
        """What the prompt of each row is; None: nothing is known."""

    def layers(self) -> Layers:
        """Which layer of sharing each stream of `contents` belongs to, as far as it is known."""

    def describe(self) -> dict[str, object]:
        """What the run folder says of it: plain values, and no time or path of the machine."""


class Workload:
    """The requests of one run, in order of arrival; iterating gives the same stream each time.

    `max_tokens` is a whole number, "model_limit" (the engine allows what its model does) or {"times_output":
    factor}. `samples` outputs are asked of every request, each of a length of its own where lengths are drawn.
    With `beam` they are the candidates of a beam search, all as long as the first. With `layers` prompts begin with
    shared texts, which their lengths include; one that is too short for them and a token more is made that long.
    `warm` is what the cache holds before the run. `cancel` says which clients give up and when; `priority` and `tenant`
    are put on every request, or by `mix` what each kind of client has. `seed` is the root of all draws. ValueError on a
    wrong argument, InputError on a wrong trace.

    Where the loop is `closed`, iterating gives what comes by itself, and `after` what comes because a request ended.
    """

    def __init__(
        self,
        traffic: Traffic | LoopTraffic,
        *,
        seed: int = 0,
        max_tokens: int | str | Mapping[str, float] | MaxTokens = MODEL_LIMIT,
        samples: int = 1,
        beam: Beam | None = None,
        layers: Sequence[Shared] = (),
        cancel: Patience | None = None,
        priority: int = 0,
        tenant: str = "",
        mix: Sequence[Tags] = (),
        warm: Warm | None = None,
    ) -> None:
        check_whole("samples", samples, 1)
        self._traffic = traffic
        if beam is not None and samples < 2:
            raise ValueError(f"samples: beam search needs at least 2 candidates; got {samples}")
        self._samples = samples
        self._beam = beam
        self._layers = tuple(layers)
        self._streams = Streams(seed)
        self._max_tokens = max_tokens_rule(max_tokens)
        self._cancel = cancel
        self._everyone = Tags(priority=priority, tenant=tenant)
        self._mix = TagMix(mix) if mix else None
        self._warm = warm
        if warm is not None and warm.requests and self.closed:
            raise ValueError(
                "warm: requests come off the front of traffic that knows its times, and a closed loop does not"
            )
        self._loop: ByTheAnswers[Any] | None = None
        self._follows = False
        self._under_way: UnderWay | None = None

    @property
    def closed(self) -> bool:
        """Whether requests come because others have ended."""
        return isinstance(self._traffic, LoopTraffic) and self._traffic.closed

    def layers(self) -> Layers:
        """Which layer of sharing each stream of the prompts belongs to. May read a trace once more."""
        traffic = self._traffic
        if isinstance(traffic, LoopTraffic):
            return traffic.layers(layer_map(self._layers).layers(in_sessions=True))
        return layer_map(self._layers).layers(in_sessions=False) if self._layers else traffic.layers()

    def __iter__(self) -> Iterator[Request]:
        """Requests numbered from 0, made one by one as the run asks for them; those that warm the cache are left out.

        PastClockError in place of the first that arrives past the 64-bit clock; those before it have come by then.
        """
        requests = self._all()
        return requests if self._warm is None else self._behind_the_warm(requests, self._warm.requests)

    def warm(self, most_tokens: int) -> Iterator[Request]:
        """What the cache has served before the run, in order; of shared texts about `most_tokens` tokens at most.

        InputError where too few requests are left to arrive.
        """
        if self._warm is None:
            return
        if self._warm.shared:
            yield from shared_requests(Stack(self._layers, self._streams), most_tokens)
        yield from islice(self._all(), self._warm.requests)

    def _behind_the_warm(self, requests: Iterator[Request], count: int) -> Iterator[Request]:
        """The others, as early as if the last one that warms the cache had come at 0."""
        start_ps = 0
        for number, request in enumerate(requests):
            if number < count:
                start_ps = request.arrival_ps
                continue
            request.arrival_ps -= start_ps
            yield request

    def _all(self) -> Iterator[Request]:
        if not isinstance(self._traffic, LoopTraffic):
            return self._rows(self._traffic)
        sources = Sources(
            streams=self._streams, layers=self._layers, samples=1 if self._beam else self._samples,
            cancel=self._cancel, mix=self._mix,
        )  # fmt: skip
        loop: Loop[Any] = self._traffic.loop(sources)
        # What recorded sessions hold of each other nobody knows until all are over.
        drawn = isinstance(self._traffic, SessionTraffic)
        self._under_way = UnderWay() if self._follows and drawn else None
        if self.closed:
            self._loop = ByTheAnswers(loop, self._dressed, self._under_way)
            return map(_on_clock, self._loop.starts())
        return map(_on_clock, by_the_clock(loop, self._dressed, self._under_way))

    def after(self, request_id: int, end_ps: int, end: str, generated_tokens: int) -> list[Request]:
        """The requests that come because one has ended, none before `end_ps`; of the stream last begun. Mutates it.

        `generated_tokens` is how many tokens it got in all. PastClockError as in the stream.
        """
        assert self._loop is not None
        return [_on_clock(request) for request in self._loop.after(request_id, end_ps, end, generated_tokens)]

    def follow(self) -> None:
        """In the streams begun from now on know which sessions are under way, so that `over` can be asked. Mutates."""
        self._follows = True

    def over(self, request: Request) -> Sequence[int]:
        """Ids of the requests whose own tokens no later prompt holds, now that this one has ended, too. Mutates.

        To be asked once for each request, behind `after`, and only of a stream that is followed (`follow`).
        """
        if not isinstance(self._traffic, LoopTraffic):
            return (request.id,)
        if self._under_way is None or request.session is None:
            return ()
        return self._under_way.ended(request.session)

    def _rows(self, traffic: Traffic) -> Iterator[Request]:
        max_tokens, everyone, mix = self._max_tokens.of, self._everyone, self._mix
        priority, tenant = everyone.priority, everyone.tenant
        patiences_ps: Iterator[int | None] = repeat(None)
        if self._cancel is not None:
            patiences_ps = self._cancel.patiences_ps(self._streams.generator("cancel"))
        rows = enumerate(traffic.rows(self._streams))
        further = self._samples - 1
        shared = Stack(self._layers, self._streams).draws() if self._layers else None
        kinds = mix.draws(self._streams.generator("tags")) if mix else None
        contents = traffic.contents()
        lengths = traffic.more_outputs(self._streams) if further and not self._beam else None
        for (number, (arrival_ps, prompt_tokens, output)), patience_ps in zip(rows, patiences_ps, strict=False):
            request = Request(number, arrival_ps, prompt_tokens, output, 0, patience_ps, priority, tenant)
            if arrival_ps > LAST_PS:
                _on_clock(request)
            if further:
                request.more_outputs = (output,) * further if lengths is None else tuple(islice(lengths, further))
                request.max_tokens = max_tokens(max(output, *request.more_outputs))
            else:
                request.max_tokens = max_tokens(output)
            if shared is not None:
                request.content = prompt(next(shared), number, prompt_tokens)
                request.prompt_tokens = request.content.tokens
            elif contents is not None:
                request.content = next(contents)
            if kinds is not None and mix is not None:
                self._tag(request, mix.kinds[next(kinds)])
            if self._beam is not None:
                self._replace(request, self._beam)
            yield request

    def _dressed(self, request: Request, kind: int | None) -> Request:
        """A turn of a session with all that its client says; `kind` None: what was recorded with it stays."""
        if kind is None:
            request.tenant = request.tenant or self._everyone.tenant
            request.priority = request.priority or self._everyone.priority
        if self._samples > 1 and not request.more_outputs:
            request.more_outputs = (request.output_tokens,) * (self._samples - 1)
        if kind is None:
            self._limit(request, self._everyone)
        else:
            self._tag(request, self._everyone if self._mix is None else self._mix.kinds[kind])
        if self._beam is not None:
            self._replace(request, self._beam)
        return request

    def _tag(self, request: Request, tags: Tags) -> None:
        request.tenant, request.priority, request.slo_class = tags.tenant, tags.priority, tags.slo_class
        self._limit(request, tags)

    def _limit(self, request: Request, tags: Tags) -> None:
        rule = tags.max_tokens or self._max_tokens
        request.max_tokens = rule.of(max(request.output_tokens, *request.more_outputs, 0))

    def _replace(self, request: Request, beam: Beam) -> None:
        draws = self._streams.generator("beam", request.id)
        request.replacements = beam.replacements(draws, self._samples, request.output_tokens)

    def describe(self) -> dict[str, object]:
        """The report for the run folder, plain values ready for JSON. Reads a trace once if need be."""
        return {
            **self._traffic.describe(),
            **self._max_tokens.describe(),
            "cancel": None if self._cancel is None else asdict(self._cancel),
            "samples": self._samples,
            "beam": None if self._beam is None else asdict(self._beam),
            "layers": [layer.describe() for layer in self._layers],
            "priority": self._everyone.priority,
            "tenant": self._everyone.tenant,
            "warm": None if self._warm is None else asdict(self._warm),
            "mix": None if self._mix is None else [tags.describe() for tags in self._mix.kinds],
        }


def _on_clock(request: Request) -> Request:
    if request.arrival_ps > LAST_PS:
        raise PastClockError(
            f"workload: request {request.id} arrives {request.arrival_ps / PS_PER_S:.3g} s after the start, "
            f"past the end of the 64-bit clock ({LAST_PS / PS_PER_S:.3g} s); take fewer requests, "
            "a higher rate or a horizon before that"
        )
    return request
