"""Tables that are built once, when somebody first looks at them."""

from collections.abc import Callable, Iterator, Mapping

from kvsim.metrics.tables.rows import Table


class MadeTables(Mapping[str, Table]):
    """Tables by name, from what makes each of them."""

    def __init__(self, makers: Mapping[str, Callable[[], Table]]) -> None:
        self._makers = makers
        self._made: dict[str, Table] = {}

    def __getitem__(self, name: str) -> Table:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)
