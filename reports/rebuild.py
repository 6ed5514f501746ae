"""Make the committed reports again: one folder a question, as `reports.toml` lists them, and the index of all.

    python reports/rebuild.py                    all of them, in place
    python reports/rebuild.py block-size cliff   some of them
    python reports/rebuild.py --to DIR           elsewhere, to compare; `reports/` stays as it is

A folder keeps its page, its numbers as JSON and the figures that the page shows: the same bytes each time under the
versions of `constraints.txt`. Reports of measured data need $KVSIM_DATA, and stay as they are without it.
"""

import argparse
import contextlib
import io
import json
import os
import shlex
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from kvsim.cli.main import main as kvsim
from kvsim.metrics.result import Result
from kvsim.reporting.figures.catalogue import FIGURES
from kvsim.reporting.question.answer import answered, measured
from kvsim.reporting.question.header import Question, question_of
from kvsim.reporting.question.numbers import numbers_of
from kvsim.reporting.question.readme import (
    Beside,
    Page,
    Shown,
    cliff_facts,
    cliff_tables,
    results_facts,
    results_published,
    results_tables,
    sweep_facts,
    sweep_tables,
)
from kvsim.reporting.run_folder import README, SUMMARY, folder_names

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_name("reports.toml")
DATA = "KVSIM_DATA"
PAGE = "report.html"
QUIET = {"sweep": ["--jobs", "1"], "plan": ["--jobs", "1"], "report": ["--formats", "png"]}
"""What is added to a verb here: reports are what is shared out, and no other form of a figure is kept."""
PAGES = {None: ["--no-page", "--no-addresses"], "plain": ["--no-addresses"], "map": []}
"""What is added to `kvsim report`, by the page that a report keeps."""
RECORDS = (SUMMARY, "cliff.json", "hit_curve.json", "check.json", "validation.json")
"""The numbers of a report: the first of these that its commands wrote."""

Entry = Mapping[str, Any]


def entries() -> dict[str, Entry]:
    """Every report by name, in the order of the index."""
    return tomllib.loads(LIST.read_text("utf-8"))


def shown(entry: Entry) -> list[str]:
    """The files of the figures that a report's page shows, in their order."""
    return [f"{stem}.png" for stem in entry["figures"]]


def kept(entry: Entry) -> list[str]:
    """The files that a report has beside its page and its numbers."""
    return shown(entry) + ([PAGE] if entry.get("page") else [])


def rebuild(name: str, entry: Entry, target: Path) -> Path:
    """Run a report's commands and put what it keeps into `target / name`, in place of what is there."""
    home = ROOT if "data" not in entry else Path(os.environ[DATA]) / entry["data"]
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / name
        for number, command in enumerate(entry["commands"]):
            argv = shlex.split(command)[1:]
            if "-o" in argv:
                argv[argv.index("-o") + 1] = str(made / argv[argv.index("-o") + 1])
            else:
                argv += ["-o", str(made)]
            argv += QUIET.get(argv[0], [])
            if argv[0] == "report":
                argv += PAGES[entry.get("page")]
            if "expected" in entry and not number and target == ROOT / "reports":
                argv += ["--expected", str(ROOT / entry["expected"])]
            with contextlib.chdir(home), contextlib.redirect_stdout(io.StringIO()) as said:
                code = kvsim(argv)
            if code:
                raise SystemExit(f"{name}: `{command}` ended with {code}\n{said.getvalue()}")
        page = _page(name, entry, made)
        folder = target / name
        shutil.rmtree(folder, ignore_errors=True)
        for file in (*kept(entry), _record(made).name):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(made / file, folder / file)
        (folder / README).write_text(page.text(), "utf-8")
    return folder


def _record(made: Path) -> Path:
    return next(made / name for name in RECORDS if (made / name).exists())


def _page(name: str, entry: Entry, made: Path) -> Page:
    asked = question(entry)
    record = json.loads(_record(made).read_text("utf-8"))
    numbers = numbers_of(record)
    captions = {kind.name: kind.caption for kind in FIGURES}
    figures = [
        Shown(f"{stem}.png", caption or captions[stem.rpartition("/")[2]]) for stem, caption in entry["figures"].items()
    ]
    published = [
        Beside(one["label"], one["published"], measured(one["simulated"], numbers), one.get("unit", ""))
        for one in entry.get("published", ())
    ]
    tables: list[str] = []
    facts: list[str] = []
    gaps: list[str] = []
    more = ""
    if "variants" in record:
        results = _results(record, made)
        published += results_published(results)
        tables, (facts, gaps) = results_tables(results), results_facts(results)
    elif "axes" in record:
        tables, (facts, gaps) = sweep_tables(record), sweep_facts(record)
    elif "knee_per_s" in record:
        tables, (facts, gaps) = cliff_tables(record), cliff_facts(record)
    elif (made / README).exists():
        more = _below((made / README).read_text("utf-8"), shown(entry))
    else:
        facts = list(record.get("notes", ()))
    return Page(
        name=name,
        question=asked,
        answer=answered(asked.answer, numbers),
        commands=_typed(entry),
        figures=figures,
        published=published,
        source=entry.get("source", ""),
        page=PAGE if entry.get("page") else "",
        tables=tables,
        facts=facts,
        gaps=gaps,
        more=more,
    )


def question(entry: Entry) -> Question:
    """From the head of the scenario; of a report without one, from the list."""
    if "scenario" in entry:
        return question_of((ROOT / entry["scenario"]).read_text("utf-8"))
    return Question(**{key: " ".join(entry.get(key, "").split()) for key in ("question", "shows", "expect", "answer")})


def _results(record: Mapping[str, Any], made: Path) -> list[Result]:
    names = [variant["name"] for variant in record["variants"]]
    results = [Result.load(made / folder) for folder in folder_names(names)]
    for result, name in zip(results, names, strict=True):
        result.name = name
    return results


def _below(text: str, figures: Sequence[str]) -> str:
    """The page that a verb wrote, without the figures that are above already, its headings one level down."""
    lines = [line for line in text.splitlines() if not any(line.endswith(f"]({figure})") for figure in figures)]
    return "\n".join(f"#{line}" if line.startswith("#") else line for line in lines)


def _typed(entry: Entry) -> list[str]:
    """The commands as a reader types them."""
    home = [f"cd $KVSIM_DATA/{entry['data']}".removesuffix("/.")] if "data" in entry else []
    return home + list(entry["commands"])


def index(target: Path, listed: Mapping[str, Entry]) -> str:
    """The page of all reports that are there: each question with its answer and its picture."""
    parts = [(ROOT / "reports" / "index.md").read_text("utf-8").rstrip()]
    for name, entry in listed.items():
        page = next((here / name / README for here in (target, ROOT / "reports") if (here / name).exists()), None)
        if page is not None:
            question, answer = [line for line in page.read_text("utf-8").splitlines() if line][:2]
            picture = f"{name}/{shown(entry)[0]}"
            parts += [f"## [{question.removeprefix('# ')}]({name}/README.md)", answer, f"![{name}]({picture})"]
    return "\n\n".join(parts) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Rebuild what is asked for, and the index."""
    parser = argparse.ArgumentParser(description="Make the committed reports again.")
    parser.add_argument("names", metavar="NAME", nargs="*", help="reports of reports.toml; default: all")
    parser.add_argument("--to", metavar="DIR", type=Path, default=ROOT / "reports", help="where they go")
    parser.add_argument("--jobs", metavar="N", type=int, default=os.cpu_count(), help="how many at a time")
    args = parser.parse_args(argv)
    listed = entries()
    unknown = [name for name in args.names if name not in listed]
    if unknown:
        parser.error(f"{unknown[0]} is not listed; there are {', '.join(listed)}")
    wanted = {name: entry for name, entry in listed.items() if not args.names or name in args.names}
    for name in [name for name, entry in wanted.items() if "data" in entry and not os.environ.get(DATA)]:
        print(f"{name}: needs the measured data that ${DATA} names, and stays as it is")
        del wanted[name]
    target = args.to.absolute()
    first = {name: entry for name, entry in wanted.items() if "expected" in entry}
    rest = {name: entry for name, entry in wanted.items() if name not in first}
    for batch in (first, rest):  # others print the errors that the first ones find
        with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
            for folder in pool.map(rebuild, batch, batch.values(), [target] * len(batch)):
                size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
                print(f"{folder.name}: {size / 1000:,.0f} kB", flush=True)
    (target / README).write_text(index(target, listed), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
