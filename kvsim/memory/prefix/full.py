"""Full attention: every token sees all before it."""

from collections.abc import Sequence
from dataclasses import dataclass

from kvsim.memory.prefix.chain import Chain
from kvsim.memory.prefix.group import Find, Group


@dataclass(frozen=True)
class FullGroup(Group):
    """Holds every block to the end, keeps every block, and hits from the start to the first miss (rule 3 of vLLM)."""

    @property
    def most_blocks(self) -> int | None:
        """No bound but the sequence."""
        return None

    def behind(self, computed_tokens: int) -> int:
        """None: all of the past is seen."""
        return 0

    def hit(self, chain: Chain, blocks: int, find: Find, none: tuple[int, ...]) -> list[tuple[int, ...]]:
        """All blocks up to the first that is missing; those behind it miss for sure."""
        found: list[tuple[int, ...]] = []
        while len(found) < blocks and (block := find(chain[len(found)])) is not None:
            found.append(block)
        return found

    def keeps(self, block: int, boundaries: Sequence[int]) -> bool:
        """All of them."""
        return True
