"""Prompt and output lengths that belong together: rows of a recording, drawn with replacement."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kvsim.workload.arrivals.interface import CHUNK

if TYPE_CHECKING:
    from numpy.random import Generator


class JointRows:
    """Pairs (prompt tokens, output tokens), every row as likely as every other; so what goes together stays together.

    Holds 16 bytes a row. `name` says where the rows are from. ValueError where there are none.
    """

    def __init__(self, rows: Iterable[tuple[int, int]], *, name: str = "") -> None:
        import numpy as np

        self.name = name
        self._rows = np.array(list(rows), dtype=np.int64).reshape(-1, 2)
        if not len(self._rows):
            raise ValueError("rows: must be at least one; got none")

    def pairs(self, generator: "Generator", chunk: int = CHUNK) -> Iterator[tuple[int, int]]:
        """(prompt tokens, output tokens), without end; the same whatever the `chunk` they are drawn in."""
        while True:
            drawn = self._rows[generator.integers(len(self._rows), size=chunk)]
            yield from zip(*drawn.T.tolist(), strict=True)

    def describe(self) -> dict[str, object]:
        """Where the rows are from and how many there are."""
        return {"distribution": "joint", "rows_of": self.name, "rows": len(self._rows)}
