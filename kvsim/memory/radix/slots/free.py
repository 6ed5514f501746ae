"""The free slots, in the order in which SGLang hands them out."""

from array import array
from collections import deque
from collections.abc import Iterable
from typing import TypeAlias

Slots: TypeAlias = "array[int]"
"""Numbers of slots, in the order of the tokens that they hold."""


class FreeSlots:
    """The free pages of a pool: the next one handed out is the first.

    As in SGLang 0.5.23 (`mem_cache/allocator/token.py` and `paged.py`, without disaggregation, so unsorted): a new pool
    hands out in the order of its numbers. Freed slots go to the end of the queue where a page is one slot, and to its
    head where pages are larger, in either case in the order of the row that they come from. While results of a batch
    are dealt with (`hold` to `let_go`) nothing comes free, and then all of it at once (`free_group_begin`, `_end`).
    SGLang's slot or page 0 is a dummy outside the pool; slot 0 here is its first real one.
    """

    def __init__(self, slots: int, page_size: int) -> None:
        self._size = page_size
        self._pages = deque(range(slots // page_size))
        self._held: list[int] | None = None

    def __len__(self) -> int:
        """Free slots."""
        return (len(self._pages) + len(self._held or ())) * self._size

    def take(self, slots: int) -> Slots:
        """So many, whole pages, from the head. Mutates."""
        size, pages = self._size, self._pages
        if size == 1:
            return array("q", [pages.popleft() for _ in range(slots)])
        taken = array("q")
        for _ in range(slots // size):
            first = pages.popleft() * size
            taken.extend(range(first, first + size))
        return taken

    def give(self, slots: Slots) -> None:
        """These come back, whole pages. Mutates."""
        size = self._size
        pages = slots if size == 1 else [first // size for first in slots[::size]]
        if self._held is None:
            self._return(pages)
        else:
            self._held.extend(pages)

    def hold(self) -> None:
        """What comes back from now on comes free together. Mutates."""
        self._held = []

    def let_go(self) -> None:
        """It comes free now. Mutates."""
        held, self._held = self._held, None
        self._return(held or ())

    def _return(self, pages: Iterable[int]) -> None:
        if self._size == 1:
            self._pages.extend(pages)
        else:
            self._pages.extendleft(reversed(list(pages)))
