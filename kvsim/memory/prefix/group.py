"""A group of layers that sees the past in the same way, and what that means for its block tables."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from kvsim.memory.prefix.chain import Chain

Find = Callable[[int], tuple[int, ...] | None]
"""Number of a content to the blocks that hold it, one for each group that is asked together; None if one lacks it."""


class Group(ABC):
    """What one group of layers needs of its past: everything, or a window.

    Blocks are counted from the start of the sequence. Groups that are equal are looked up together.
    """

    @property
    @abstractmethod
    def most_blocks(self) -> int | None:
        """Blocks that one sequence holds at most while it is computed in chunks; None: as many as its tokens fill."""

    @abstractmethod
    def behind(self, computed_tokens: int) -> int:
        """Whole blocks at the start that the next token after `computed_tokens` does not see."""

    @abstractmethod
    def hit(self, chain: Chain, blocks: int, find: Find, none: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The longest usable prefix of at most `blocks` blocks that is cached: its blocks, `none` where none is needed.

        Pure. `find` and `none` speak for all groups that are looked up together.
        """

    @abstractmethod
    def keeps(self, block: int, boundaries: Sequence[int]) -> bool:
        """Whether block number `block`, once full, is put into the map.

        `boundaries` are tokens at which a later request may go on: the last token of the prompt, and where a prefix
        was found to be shared.
        """
