"""What later prompts of a session still hold of its earlier turns: all of it, the last turns, or a summary."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from kvsim.content import Run
from kvsim.workload.arguments import check_whole


class Exchange(NamedTuple):
    """A turn and its answer, as the prompts after it repeat them."""

    runs: tuple[Run, ...]
    tokens: int


class History(Protocol):
    """A rule for what is kept; holds its parameters and no state."""

    keep: ClassVar[str]

    def kept(self, exchanges: list[Exchange]) -> tuple[list[Exchange], int]:
        """What the next prompt repeats, and how many tokens of a summary nobody has seen before stand in its place."""

    def describe(self) -> dict[str, Any]:
        """The rule and its parameters, as plain values."""


class _Named:
    keep: ClassVar[str]

    def describe(self) -> dict[str, Any]:
        """The rule and its parameters, as plain values."""
        return {"keep": self.keep} | asdict(self)  # type: ignore[call-overload, no-any-return]


@dataclass(frozen=True)
class Whole(_Named):
    """Everything: each prompt begins with the one before and its answer, so all of that may be found again."""

    keep: ClassVar[str] = "whole"

    def kept(self, exchanges: list[Exchange]) -> tuple[list[Exchange], int]:
        """See `History`."""
        return exchanges, 0


@dataclass(frozen=True, kw_only=True)
class Window(_Named):
    """The last `turns` turns. Once the first falls out, nothing behind the shared layers stands where it stood."""

    keep: ClassVar[str] = "window"
    turns: int

    def __post_init__(self) -> None:
        check_whole("turns", self.turns, 1)

    def kept(self, exchanges: list[Exchange]) -> tuple[list[Exchange], int]:
        """See `History`."""
        return exchanges[-self.turns :], 0


@dataclass(frozen=True, kw_only=True)
class Truncate(_Named):
    """Whole turns from the end, as many as are `tokens` tokens at most; what is dropped stays dropped."""

    keep: ClassVar[str] = "truncate"
    tokens: int

    def __post_init__(self) -> None:
        check_whole("tokens", self.tokens, 1)

    def kept(self, exchanges: list[Exchange]) -> tuple[list[Exchange], int]:
        """See `History`."""
        left = sum(exchange.tokens for exchange in exchanges)
        start = 0
        while left > self.tokens:
            left -= exchanges[start].tokens
            start += 1
        return exchanges[start:], 0


@dataclass(frozen=True, kw_only=True)
class Compact(_Named):
    """Everything, until it is more than `tokens` tokens: then a summary of `summary_tokens` takes its place."""

    keep: ClassVar[str] = "compact"
    tokens: int
    summary_tokens: int

    def __post_init__(self) -> None:
        check_whole("tokens", self.tokens, 1)
        check_whole("summary_tokens", self.summary_tokens, 1)

    def kept(self, exchanges: list[Exchange]) -> tuple[list[Exchange], int]:
        """See `History`."""
        if sum(exchange.tokens for exchange in exchanges) > self.tokens:
            return [], self.summary_tokens
        return exchanges, 0


HISTORIES: dict[str, type[Whole] | type[Window] | type[Truncate] | type[Compact]] = {
    rule.keep: rule for rule in (Whole, Window, Truncate, Compact)
}
"""Rules by the name that a scenario gives them."""
