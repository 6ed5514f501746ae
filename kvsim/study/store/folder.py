"""The folder itself: what study it is, the outcomes in pieces, and the table once all are there.

A piece is a file that appears whole under a name that is the hash of its content, so that neither a kill in the middle
nor two writers leave half of one, and a damaged one is found.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from kvsim.errors import InputError
from kvsim.metrics.result import to_json, write_whole
from kvsim.study.store.identity import Identity, read_identity

STUDY = "study.json"
PIECES = "pieces"
TABLE = "runs.parquet"

_NAME_DIGITS = 32
"""Hexadecimal digits of a piece's hash that make its name."""

Outcome = Mapping[str, Any]
"""What became of one run, as JSON holds it: its `key`, its `error` (None: fine), and what it gave."""


class Store:
    """The outcomes of one study in `folder`, which is made where it is missing.

    `outcomes` maps the key of every run that is done to its outcome. Raises InputError where the folder holds another
    study, this one and `resume` is not set, something else, or pieces that are damaged.
    """

    def __init__(self, folder: str | Path, identity: Identity, *, resume: bool) -> None:
        self.folder = Path(folder)
        self.outcomes: dict[str, Outcome] = {}
        if (self.folder / STUDY).exists():
            self._check(identity, resume=resume)
            for piece in self._pieces():
                self.outcomes |= {outcome["key"]: outcome for outcome in _read(piece)}
        elif self.folder.is_dir() and any(self.folder.iterdir()):
            raise InputError(f"{folder}: is not empty and holds no study (no {STUDY}); name a new folder")
        else:
            write_whole(self.folder / STUDY, to_json(identity.to_dict()).encode())

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """These are done: a piece more in the folder, whole or not at all."""
        self._write(outcomes)
        self.outcomes |= {outcome["key"]: outcome for outcome in outcomes}

    def close(self, table: bytes, keys: Sequence[str]) -> None:
        """Write the table of what is there, and make one piece of all outcomes, in the order of `keys`.

        Where there is none, the study is taken away again.
        """
        kept = [self.outcomes[key] for key in dict.fromkeys(keys) if key in self.outcomes]
        if not kept:
            (self.folder / STUDY).unlink()
            with suppress(OSError):  # it was there before, or somebody else has put something there
                self.folder.rmdir()
            return
        write_whole(self.folder / TABLE, table)
        whole = self._write(kept)
        for piece in self._pieces():
            if piece != whole:
                piece.unlink()

    def _write(self, outcomes: Sequence[Outcome]) -> Path:
        text = "".join(json.dumps(outcome, allow_nan=False) + "\n" for outcome in outcomes).encode()
        return write_whole(self.folder / PIECES / f"{_name_of(text)}.jsonl", text)

    def _pieces(self) -> list[Path]:
        return sorted((self.folder / PIECES).glob("*.jsonl"))

    def _check(self, identity: Identity, *, resume: bool) -> None:
        differences = identity.differences(read_identity(self.folder / STUDY))
        if differences:
            raise InputError(f"{self.folder}: holds another study ({'; '.join(differences)}); name another folder")
        if not resume:
            raise InputError(
                f"{self.folder}: holds this study already; go on with it with --resume, or name another folder"
            )


def _name_of(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:_NAME_DIGITS]


def _read(piece: Path) -> list[Outcome]:
    try:
        text = piece.read_bytes()
        if _name_of(text) != piece.stem:
            raise ValueError("its content is not what was written")
        return [json.loads(line) for line in text.splitlines()]
    except (OSError, ValueError) as error:
        raise InputError(
            f"{piece}: is damaged ({error}); delete this file, and --resume runs again what it held"
        ) from None
