"""The slots of one pool, counted: in a radix cache any free page is as good as any other."""

from typing import TYPE_CHECKING

from kvsim.errors import CheckError

if TYPE_CHECKING:
    from kvsim.memory.radix.slots import SlotBook


class SlotPool:
    """`slots` slots, one token each, handed out in whole pages."""

    def __init__(self, slots: int, *, page_size: int = 1) -> None:
        if page_size < 1 or slots < page_size or slots % page_size:
            raise ValueError(f"a pool of {slots:,} slots is not a whole number of pages of {page_size:,}, one or more")
        self.slots = slots
        self.page_size = page_size
        self.free = slots
        """Slots that nobody holds."""
        self.book: SlotBook | None = None
        """Which slots they are, where somebody wants to know: whoever takes, keeps or gives back tells it."""

    def floor(self, tokens: int) -> int:
        """`tokens` rounded down to whole pages."""
        return tokens // self.page_size * self.page_size

    def ceil(self, tokens: int) -> int:
        """`tokens` rounded up to whole pages."""
        return -(-tokens // self.page_size) * self.page_size

    def take(self, slots: int) -> None:
        """Hand out `slots`, whole pages. Mutates. CheckError where there are not as many: the caller had to evict."""
        if slots > self.free or slots < 0 or slots % self.page_size:
            raise CheckError(f"{slots:,} slots were asked of {self.free:,} free ones (page {self.page_size:,})")
        self.free -= slots

    def give(self, slots: int) -> None:
        """Take `slots` back, whole pages. Mutates. CheckError where more come back than went out."""
        if slots < 0 or slots > self.slots - self.free or slots % self.page_size:
            raise CheckError(f"{slots:,} slots were given back to a pool that has {self.slots - self.free:,} out")
        self.free += slots
