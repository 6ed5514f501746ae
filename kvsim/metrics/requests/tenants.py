"""Whose requests there were, and what they came to: sums by tenant, kept while the run goes on."""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence

from kvsim.metrics.requests.records import Ended


class Account:
    """What became of the requests of one tenant, of the whole run."""

    __slots__ = ("ends", "held_token_ps", "hit_tokens", "output_tokens", "prompt_tokens")

    def __init__(self) -> None:
        self.ends: Counter[str] = Counter()
        self.prompt_tokens = self.output_tokens = self.hit_tokens = 0
        self.held_token_ps = 0.0

    @property
    def arrived(self) -> int:
        """How many there were."""
        return self.ends.total()

    def add(self, records: Sequence[Ended]) -> None:
        """These were the tenant's. Mutates."""
        self.ends.update([record.end for record in records])
        self.prompt_tokens += sum([record.prompt_tokens for record in records])
        self.output_tokens += sum([record.generated_tokens for record in records])
        self.hit_tokens += sum([record.hit_tokens for record in records])
        self.held_token_ps += sum([record.held_token_ps for record in records])

    def join(self, other: "Account") -> None:
        """And these. Mutates."""
        self.ends.update(other.ends)
        for name in ("prompt_tokens", "output_tokens", "hit_tokens", "held_token_ps"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Whose:
    """Whose each of some requests is: one name for all of them, or two bytes each and more where there are many."""

    __slots__ = ("_count", "_names", "_numbers")

    def __init__(self, names: Sequence[str]) -> None:
        order = {name: number for number, name in enumerate(dict.fromkeys(names))}
        self._names = order
        self._count = len(names)
        code = "H" if len(order) <= 1 << 16 else "I"
        self._numbers = array(code, [order[name] for name in names]) if len(order) > 1 else None

    def are(self, name: str) -> Iterable[bool]:
        """For each of them, whether it is this tenant's."""
        number = self._names.get(name)
        if self._numbers is None or number is None:
            return (number is not None for _ in range(self._count))
        return (own == number for own in self._numbers)


class Tenants:
    """The accounts of all tenants by name, in the order in which they were first seen."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}

    def add(self, records: Sequence[Ended]) -> Whose:
        """These requests have ended; whose they were, in their order. Mutates."""
        names = [record.whose for record in records]
        by_name: dict[str, list[Ended]] = {}
        if len(set(names)) == 1:
            by_name[names[0]] = list(records)
        else:
            for name, record in zip(names, records, strict=True):
                by_name.setdefault(name, []).append(record)
        for name, own in by_name.items():
            self.accounts.setdefault(name, Account()).add(own)
        return Whose(names)

    def join(self, other: "Tenants") -> None:
        """And those of another replica. Mutates."""
        for name, account in other.accounts.items():
            self.accounts.setdefault(name, Account()).join(account)
