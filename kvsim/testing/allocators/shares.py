"""What sequences hold in common after forks, counted token by token, without trusting the allocator with anything."""

from collections.abc import Mapping
from itertools import count


class Shares:
    """The place of every written token, as a number; a fork holds its parent's places.

    `common` tokens of a fork stay in common. The tokens behind them lie in a block that is not full: it has `writers`,
    and each of them but the last has it copied before it writes.
    """

    def __init__(self) -> None:
        self._places: dict[int, list[int]] = {}
        self._fresh = count()
        self._writers: dict[int, set[int]] = {}
        self._starts: dict[int, int] = {}
        """Where the block that it must copy begins."""
        self._landing: dict[int, int] = {}
        """The same, for those whose copy is in flight."""

    def fork(self, parent: int, child: int, written: Mapping[int, int], common: int) -> None:
        """`child` holds what `parent` has written; behind the first `common` tokens lies a block that is not full."""
        self._complete(written)
        self._places[child] = self._places[parent].copy()
        if common < len(self._places[child]):
            writers = self._writers.setdefault(parent, {parent})
            writers.add(child)
            self._writers[child] = writers
            self._starts[parent] = self._starts[child] = common

    def write(self, sequence: int) -> int:
        """It is about to write; how many tokens must be copied for that."""
        writers = self._writers.get(sequence)
        if writers is None:
            return 0
        self._landing[sequence] = start = self._starts[sequence]
        self._let_go(sequence)
        return len(self._places[sequence]) - start

    @property
    def moving(self) -> int:
        """Slots that are being copied into."""
        return sum(len(self._places[sequence]) - start for sequence, start in self._landing.items())

    def settle(self) -> None:
        """The copies have arrived."""
        for sequence, start in self._landing.items():
            places = self._places[sequence]
            places[start:] = [next(self._fresh) for _ in places[start:]]
        self._landing.clear()

    def leave(self, sequence: int) -> None:
        """It holds nothing any more."""
        self._places.pop(sequence, None)
        self._landing.pop(sequence, None)
        if sequence in self._writers:
            self._let_go(sequence)

    def _let_go(self, sequence: int) -> None:
        writers = self._writers.pop(sequence)
        del self._starts[sequence]
        writers.discard(sequence)
        if len(writers) == 1:
            last = writers.pop()
            del self._writers[last], self._starts[last]

    def distinct(self, written: Mapping[int, int]) -> int:
        """Slots that hold the `written` tokens of all sequences, those in common counted once.

        What is being copied for a sequence counts where it comes from, as long as somebody holds that.
        """
        self._complete(written)
        return len({place for sequence in written for place in self._places[sequence][: self._landing.get(sequence)]})

    def alone(self, sequence: int, written: Mapping[int, int]) -> bool:
        """Nobody else holds any of its slots."""
        others = {number: tokens for number, tokens in written.items() if number != sequence}
        return self.distinct(written) - self.distinct(others) == written[sequence]

    def _complete(self, written: Mapping[int, int]) -> None:
        """Whatever has been written since lies in places of its own."""
        for sequence, tokens in written.items():
            places = self._places.setdefault(sequence, [])
            places += [next(self._fresh) for _ in range(tokens - len(places))]
