"""Generated traffic: arrivals and lengths by their laws."""

from collections.abc import Iterator
from itertools import islice

from kvsim.content import Layers
from kvsim.workload.arguments import check_whole
from kvsim.workload.arrivals import CHUNK, ArrivalProcess
from kvsim.workload.lengths import JointRows, LengthDistribution, Tally
from kvsim.workload.readers.interface import Row
from kvsim.workload.streams import Streams


class GeneratedTraffic:
    """Arrivals and lengths drawn independently, each from a stream of its own.

    Independent draws are a fair default: prompts and outputs of most recorded traces hardly correlate. Where they do,
    `joint` draws rows of both in place of the two laws.
    `requests` ends the stream after so many; without it the stream has no end and the run needs a horizon.
    `chunk` values are drawn at a time; no result depends on it. ValueError on a wrong argument.
    """

    def __init__(
        self,
        *,
        arrivals: ArrivalProcess,
        prompt_tokens: LengthDistribution | None = None,
        output_tokens: LengthDistribution | None = None,
        joint: JointRows | None = None,
        requests: int | None = None,
        chunk: int = CHUNK,
    ) -> None:
        if requests is not None:
            check_whole("requests", requests, 1)
        check_whole("chunk", chunk, 1)
        if (joint is None) == (prompt_tokens is None) or (prompt_tokens is None) != (output_tokens is None):
            raise ValueError("prompt_tokens: give it and output_tokens, or joint in place of both")
        self._arrivals = arrivals
        self._prompt_tokens = prompt_tokens
        self._output_tokens = output_tokens
        self._joint = joint
        self._requests = requests
        self._chunk = chunk
        self.outside: dict[str, Tally] = {}
        """By kind of length how many were drawn and how many fell outside their bounds, of the rows last begun."""

    def rows(self, streams: Streams) -> Iterator[Row]:
        """(arrival in picoseconds, prompt tokens, output tokens); the first comes after one gap."""
        chunk = self._chunk if self._requests is None else min(self._chunk, self._requests)
        arrivals_ps = self._arrivals.arrivals_ps(streams.generator("arrivals"), chunk)
        if self._prompt_tokens is None or self._output_tokens is None:
            assert self._joint is not None
            pairs = self._joint.pairs(streams.generator("joint"), chunk)
            rows = ((arrival_ps, *pair) for arrival_ps, pair in zip(arrivals_ps, pairs, strict=False))
            return islice(rows, self._requests)
        prompts, outputs = Tally(), Tally()
        self.outside = {"prompt": prompts, "output": outputs}
        lengths = zip(
            arrivals_ps,
            self._prompt_tokens.lengths(streams.generator("prompt_tokens"), chunk, prompts),
            self._output_tokens.lengths(streams.generator("output_tokens"), chunk, outputs),
            strict=False,
        )
        return islice(lengths, self._requests)

    def more_outputs(self, streams: Streams) -> Iterator[int] | None:
        """Drawn from the same law, in a stream of their own; None: as long as the first, where lengths are joint."""
        if self._output_tokens is None:
            return None
        return self._output_tokens.lengths(streams.generator("more_outputs"), self._chunk)

    def contents(self) -> None:
        """No two prompts are alike."""

    def layers(self) -> Layers:
        """Nobody shares anything."""
        return Layers()

    def describe(self) -> dict[str, object]:
        """The report for the run folder: the process and the laws with their parameters."""
        return {
            "source": "generated",
            "arrivals": self._arrivals.describe(),
            "rate_per_s": self._arrivals.rate,
            **self._lengths(),
            "requests_asked": self._requests,
            "prefix_identity": "absent",
        }

    def policy(self, kind: str) -> str:
        """What becomes of a "prompt" or "output" length outside its bounds: clip or redraw."""
        law = self._prompt_tokens if kind == "prompt" else self._output_tokens
        return "clip" if law is None else law.outside

    def _lengths(self) -> dict[str, object]:
        if self._prompt_tokens is None or self._output_tokens is None:
            assert self._joint is not None
            return {"lengths": self._joint.describe()}
        return {"prompt_tokens": self._prompt_tokens.describe(), "output_tokens": self._output_tokens.describe()}
