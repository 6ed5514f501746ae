"""Reading what is to be exported: a run folder, or a comparison with one for each variant."""

from pathlib import Path

from kvsim.errors import InputError
from kvsim.metrics.result import Result
from kvsim.metrics.run_files import read_object
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
    return Source(
        str(folder), read_object(folder / SUMMARY)["scenario"], [Result.load(part, in_files=True) for part in parts]
    )


def _variants(folder: Path) -> list[str] | None:
    """The names of the variants of a comparison, None of a run."""
    variants = read_object(folder / SUMMARY).get("variants")
    return None if variants is None else [variant["name"] for variant in variants]
