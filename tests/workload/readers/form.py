"""A small trace of one format, to be written, read and damaged."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from kvsim.workload.readers.options import ReadOptions
from kvsim.workload.trace.recording import Recording


@dataclass(frozen=True)
class Form:
    """A small trace: its format, its text, and what a reader must be told."""

    format: str
    text: str
    suffix: str = ".jsonl"
    options: ReadOptions = field(default_factory=ReadOptions)

    def write(self, folder: Path, text: str | None = None) -> Path:
        path = folder / f"trace{self.suffix}"
        path.write_text(self.text if text is None else text)
        return path

    def read(self, folder: Path, **options):
        return Recording(self.write(folder), options=self.options, **options)


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


TEXT = ReadOptions(chars_per_token=4, output_tokens=7)
"""Of traces of texts without outputs: 4 characters a token."""
