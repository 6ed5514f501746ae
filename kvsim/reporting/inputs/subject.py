"""From the folders that a user names to what a report is about."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvsim.errors import InputError
from kvsim.metrics.result import Result
from kvsim.metrics.run_files import read_object, written_by
from kvsim.reporting.inputs.exhibit import Exhibit, any_exhibit, sweep_exhibit
from kvsim.reporting.run_folder import SUMMARY, folder_names

if TYPE_CHECKING:
    from kvsim.study.replication.study import Study

PLAN = "plan.json"

RECORDS = {
    "cliff.json": "cliff",
    "diagnosis.json": "diagnosis",
    "check.json": "check",
    "validation.json": "validation",
    "hit_curve.json": "hit curve",
}
"""The file by which a folder that holds neither run, study nor plan is known, and what people call it."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What a report is about: `results` side by side, what all their replications say, and what else was named."""

    name: str
    results: Sequence[Result] = ()
    study: "Study | None" = None
    exhibits: Sequence[Exhibit] = ()


def is_folder(text: str) -> bool:
    """It names a folder, or nothing that could be a file; InputError where nothing of that name is there."""
    path = Path(text)
    if not text or not path.exists():
        raise InputError(
            f"{text!r}: is not there; name a folder that `kvsim run`, `compare`, `sweep` or `plan` wrote, or a scenario"
        )
    return path.is_dir()


def load_subject(folders: Sequence[str | Path]) -> Subject:
    """Read run, comparison, study, sweep and plan folders. Results of several stand side by side, under names that
    tell them apart.

    Raises InputError that names the folder, or the file in it, and what is wrong; ValueError for no folder.
    """
    parts = [_load(Path(folder)) for folder in folders]
    if not parts:
        raise ValueError("folders must name at least one")
    if len(parts) == 1:
        return parts[0]
    studies = [part.study for part in parts if part.study is not None]
    if studies:
        raise InputError("a study with intervals has a report of its own; name it alone")
    results: list[Result] = []
    for part, folder in zip(parts, folders, strict=True):
        for result in part.results:
            result.name = _told_apart(result.name, Path(folder), {one.name for one in results})
            results.append(result)
    return Subject(
        name=" and ".join(dict.fromkeys(part.name for part in parts)),
        results=results,
        exhibits=[exhibit for part in parts for exhibit in part.exhibits],
    )


def _told_apart(name: str, folder: Path, taken: Collection[str]) -> str:
    """The name of a result, with as much of its folder, and a number where that is named twice, as none has yet."""
    known = [name, f"{folder.resolve().name}: {name}", f"{folder}: {name}"]
    numbered = (f"{known[-1]} ({number})" for number in itertools.count(2))
    return next(one for one in itertools.chain(known, numbered) if one not in taken)


def _load(folder: Path) -> Subject:
    if (folder / SUMMARY).exists():
        summary = read_object(folder / SUMMARY)
        if "variants" in summary:
            with written_by("a comparison", folder / SUMMARY):
                return _comparison(summary, folder)
        if "points" in summary and "axes" in summary:
            with written_by("a sweep", folder / SUMMARY):
                exhibit = sweep_exhibit(summary, folder)
            return Subject(name=exhibit.name, exhibits=[exhibit])
        result = Result.load(folder)
        return Subject(name=result.name, results=[result])
    if (folder / PLAN).exists():
        from kvsim.reporting.inputs.planned import plan_exhibit

        with written_by("a plan", folder / PLAN):
            exhibit = plan_exhibit(read_object(folder / PLAN), folder)
        return Subject(name=exhibit.name, exhibits=[exhibit])
    for file, kind in RECORDS.items():
        if (folder / file).exists():
            exhibit = any_exhibit(read_object(folder / file), kind, folder)
            return Subject(name=exhibit.name, exhibits=[exhibit])
    raise InputError(
        f"{folder}: holds nothing to report (no {SUMMARY}, {PLAN}, {', '.join(RECORDS)}); name a folder that "
        "`kvsim run`, `compare`, `sweep` or `plan` wrote with -o"
    )


def _comparison(summary: Mapping[str, Any], folder: Path) -> Subject:
    names = [variant["name"] for variant in summary["variants"]]
    results: list[Result] = []
    for name, below in zip(names, folder_names(names), strict=True):
        result = Result.load(folder / below)
        result.name = name
        results.append(result)
    study = None
    if "study" in summary:
        from kvsim.reporting.study.summary import study_of

        study = study_of(summary["study"])
    return Subject(name=summary["scenario"], results=results, study=study)
