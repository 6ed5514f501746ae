"""What traces of texts have in common: their words become tokens, and blocks, here."""

from typing import ClassVar

from kvsim.workload.readers.base import BaseReader
from kvsim.workload.readers.files.source import Source
from kvsim.workload.readers.interface import Identity, Scope
from kvsim.workload.readers.values.chain import BLOCK_TOKENS


class TextReader(BaseReader):
    """Prompts that begin with the same words begin alike, whoever says them."""

    time_unit: ClassVar[str] = "none"
    prefix_identity: ClassVar[Identity] = "real"
    hash_scope: ClassVar[Scope] = "global"

    def block_tokens(self, source: Source) -> int:
        """Blocks are made here."""
        return BLOCK_TOKENS
