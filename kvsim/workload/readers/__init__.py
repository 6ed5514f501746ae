"""Trace readers: one file per format, found by name or by how the file begins."""

from kvsim.errors import InputError
from kvsim.workload.readers.azure import AzureReader
from kvsim.workload.readers.bailian import BailianReader
from kvsim.workload.readers.interface import Reader, shown
from kvsim.workload.readers.mooncake import MooncakeReader

READERS: dict[str, Reader] = {reader.format: reader for reader in (AzureReader(), MooncakeReader(), BailianReader())}
"""Readers by the name of their format."""


def detect(first_line: str, trace: str) -> Reader:
    """The reader of the format that begins with this line; InputError listing all formats if none does."""
    for reader in READERS.values():
        if reader.recognises(first_line):
            return reader
    known = "; ".join(f"{reader.format} ({', '.join(reader.columns)})" for reader in READERS.values())
    raise InputError(
        f"{trace}: the first line is {shown(first_line.strip())}, no header of a known format; known formats: {known}"
    )
