"""Reading what is to be exported: a run folder, or a comparison with one for each variant."""

import json
from pathlib import Path
from typing import Any

from kvsim.errors import InputError
from kvsim.metrics.result import Result
from kvsim.reporting.exports.interface import Source
from kvsim.reporting.run_folder import SUMMARY, folder_names


def read_source(folder: str | Path) -> Source:
    """What `kvsim run -o` or `kvsim compare` left there; tables stay in their files until somebody asks for them.

    Raises InputError that names the folder or the file and says what is missing.
    """
    folder = Path(folder)
    if not (folder / SUMMARY).is_file():
        raise InputError(
            f"{folder}: holds no {SUMMARY}; name a folder that `kvsim run -o DIR` or `kvsim compare -o DIR` wrote"
        )
    variants = _variants(folder)
    if variants is None:
        result = Result.load(folder, in_files=True)
        return Source(str(folder), result.name, [result])
    parts = [folder / name for name in folder_names(variants)]
    return Source(str(folder), _summary(folder)["scenario"], [Result.load(part, in_files=True) for part in parts])


def _variants(folder: Path) -> list[str] | None:
    """The names of the variants of a comparison, None of a run."""
    variants = _summary(folder).get("variants")
    return None if variants is None else [variant["name"] for variant in variants]


def _summary(folder: Path) -> dict[str, Any]:
    path = folder / SUMMARY
    try:
        summary = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}); write the folder again") from error
    if not isinstance(summary, dict):
        raise InputError(f"{path}: is no object; write the folder again")
    return summary
