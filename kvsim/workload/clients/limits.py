"""What the client decides: how many tokens it lets the engine write (`max_tokens`) and how long it waits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Protocol

from kvsim.request import PS_PER_S
from kvsim.workload.arguments import check_positive, check_share, check_whole
from kvsim.workload.arrivals import CHUNK, as_written

if TYPE_CHECKING:
    from numpy.random import Generator


MODEL_LIMIT = "model_limit"

MOST = 1 << 53
"""The largest `max_tokens`: far beyond any model, and within the 64 bits of a table."""

MOST_TIMES = 1_000_000
"""The largest multiple of the true output, for the same reason."""


class MaxTokens(Protocol):
    """The client's rule for `max_tokens`; the only thing about a request's end that policies may know."""

    def of(self, output_tokens: int) -> int | None:
        """`max_tokens` of a request with this true output; None leaves it to the model's limit."""

    def describe(self) -> dict[str, object]:
        """The rule, and `max_tokens_provenance`: "client", or "oracle" if it uses the true output."""


@dataclass(frozen=True)
class ModelLimit:
    """The client sets nothing: the engine allows `max_model_len` minus the prompt."""

    def of(self, output_tokens: int) -> int | None:
        """None: the engine knows its own limit."""
        return None

    def describe(self) -> dict[str, object]:
        """The rule, for the report."""
        return {"max_tokens": MODEL_LIMIT, "max_tokens_provenance": "client"}


@dataclass(frozen=True)
class FixedLimit:
    """Every request carries the same `max_tokens` (at least 1; ValueError otherwise)."""

    max_tokens: int

    def __post_init__(self) -> None:
        check_whole("max_tokens", self.max_tokens, 1, MOST)

    def of(self, output_tokens: int) -> int | None:
        """The fixed number."""
        return self.max_tokens

    def describe(self) -> dict[str, object]:
        """The rule, for the report."""
        return {"max_tokens": self.max_tokens, "max_tokens_provenance": "client"}


class TimesOutput:
    """`max_tokens` is `times` the true output, rounded up: an oracle, since no client knows how long its
    output will be.

    `times` is taken as its decimal is written (1.1 x 10 is 11). ValueError where it is not a finite number
    above 0.
    """

    def __init__(self, times: float) -> None:
        check_positive("times_output", times)
        if times > MOST_TIMES:
            raise ValueError(f"times_output: must be at most {MOST_TIMES:,}; got {times!r}")
        self.times = times
        self._numerator, self._denominator = as_written(times).as_integer_ratio()

    def of(self, output_tokens: int) -> int | None:
        """The true output times the factor, rounded up."""
        return -(-output_tokens * self._numerator // self._denominator)

    def describe(self) -> dict[str, object]:
        """The rule, for the report."""
        return {"max_tokens": {"times_output": self.times}, "max_tokens_provenance": "oracle"}


def max_tokens_rule(spec: int | str | Mapping[str, float] | MaxTokens) -> MaxTokens:
    """The rule that a scenario writes as a number, as `model_limit` or as `{times_output: factor}`.

    ValueError naming `max_tokens` (or `times_output`) for anything else.
    """
    if spec == MODEL_LIMIT:
        return ModelLimit()
    if isinstance(spec, Mapping) and set(spec) == {"times_output"}:
        return TimesOutput(spec["times_output"])
    if isinstance(spec, int) and not isinstance(spec, bool):
        return FixedLimit(spec)
    if not isinstance(spec, int | float | str | Mapping) and hasattr(spec, "of"):
        return spec
    raise ValueError(f"max_tokens: must be a whole number, `{MODEL_LIMIT}` or {{times_output: factor}}; got {spec!r}")


@dataclass(frozen=True, kw_only=True)
class Patience:
    """Clients that cancel `after_s` seconds after their request arrived, if it has not ended by then.

    `share` is the share of requests whose client does so (1: all); which ones is drawn from a stream of its
    own. ValueError where `after_s` is not a finite number above 0 or `share` is not from 0 to 1.
    """

    after_s: float
    share: float = 1.0

    def __post_init__(self) -> None:
        check_positive("after_s", self.after_s)
        check_share("share", self.share)

    def patiences_ps(self, generator: "Generator", chunk: int = CHUNK) -> Iterator[int | None]:
        """Picoseconds from arrival to cancellation, without end; None: this client waits."""
        after_ps = round(as_written(self.after_s) * PS_PER_S)
        if self.share in (0, 1):
            yield from repeat(after_ps if self.share else None)
        while True:
            for gives_up in (generator.random(chunk) < self.share).tolist():
                yield after_ps if gives_up else None
