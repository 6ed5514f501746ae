"""Reading what is to be exported: a run folder, or a comparison with one for each variant."""

from pathlib import Path

from kvsim.errors import InputError
from kvsim.metrics.result import Result
from kvsim.metrics.run_files import read_object, written_by
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
    summary = read_object(folder / SUMMARY)
    if "axes" in summary:
        raise InputError(
            f"{folder}: is a sweep, whose runs keep no tables but runs.parquet; name a run or a comparison"
        )
    if "variants" not in summary:
        result = Result.load(folder, in_files=True)
        return Source(str(folder), result.name, [result])
    with written_by("a comparison", folder / SUMMARY):
        title, names = summary["scenario"], [variant["name"] for variant in summary["variants"]]
    return Source(str(folder), title, [Result.load(folder / name, in_files=True) for name in folder_names(names)])
