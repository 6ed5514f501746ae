"""Which prompts were refused since they can never be served: enough of it to say why."""

from collections.abc import Iterable
from typing import NamedTuple


class Refused(NamedTuple):
    """One request that was rejected; of two, the one with the longer prompt, then the higher id, is the greater."""

    prompt_tokens: int
    id: int
    need_tokens: int


class Refusals:
    """The least and the greatest of those that were rejected for what they are, not for who waited."""

    def __init__(self) -> None:
        self.least: Refused | None = None
        self.greatest: Refused | None = None

    @classmethod
    def joined(cls, several: Iterable["Refusals"]) -> "Refusals":
        """Of all that any of them has seen."""
        whole = cls()
        for one in several:
            for refused in (one.least, one.greatest):
                if refused is not None:
                    whole.add(*refused)
        return whole

    def add(self, prompt_tokens: int, number: int, need_tokens: int) -> None:
        """One more was rejected."""
        one = Refused(prompt_tokens, number, need_tokens)
        self.least = one if self.least is None else min(self.least, one)
        self.greatest = one if self.greatest is None else max(self.greatest, one)
