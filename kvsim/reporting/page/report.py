"""A report: the figures of a subject, its page, and its Markdown twin, all in one folder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kvsim.errors import InputError
from kvsim.metrics.result import write_whole
from kvsim.reporting.inputs import Subject
from kvsim.reporting.page.content import Content, content_of
from kvsim.reporting.page.map import MapData, maps_of
from kvsim.reporting.page.markdown import markdown
from kvsim.reporting.page.pictures import Picture, draw, shown
from kvsim.reporting.page.render import render
from kvsim.reporting.run_folder import README, SUMMARY, folder_names, readme
from kvsim.reporting.style import FORMATS

Progress = Callable[[float, str], None]

PAGE = "report.html"

MOST_BYTES = 3_000_000
"""Of a page: what opens at once and can be mailed."""

MAP_LETTERS = 1_300_000
"""Of all maps of a page."""

ROOM_A_FIGURE = 2_000
"""Bytes of a figure beside the figure itself: its title, its caption, and what says that it was left out."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """What a report has written: all paths, its page (None: not asked for), and the maps that are in it."""

    paths: Sequence[Path]
    page: Path | None
    maps: Sequence[MapData]


def write_report(
    subject: Subject,
    folder: str | Path,
    *,
    formats: Sequence[str] = tuple(FORMATS),
    page: bool = True,
    progress: Progress | None = None,
) -> Written:
    """Write the figures in these formats, the page unless it is not wanted, and the README; equal subjects give equal
    bytes. Raises InputError where the page cannot be made small enough."""
    folder = Path(folder)
    pictures = draw(subject, list(dict.fromkeys([*formats, *(("svg", "png") if page else ())])), progress)
    content = content_of(subject)
    maps = maps_of(subject.results, MAP_LETTERS) if page else []
    written = []
    if page:
        if progress:
            progress(1.0, "writing the page")
        written.append(write_whole(folder / PAGE, _page(content, pictures, maps)))
    for picture in pictures:
        written += [
            write_whole(folder / f"{picture.place}.{form}", data)
            for form, data in picture.forms.items()
            if form in formats
        ]
    mapped = any(one.text for one in maps)
    text = markdown(content, pictures, formats, PAGE if page else None, _files(subject, folder), mapped=mapped)
    written.append(write_whole(folder / README, text.encode()))
    return Written(paths=written, page=folder / PAGE if page else None, maps=maps)


def _page(content: Content, pictures: Sequence[Picture], maps: Sequence[MapData]) -> bytes:
    """The page with as many of its figures as it has room for."""
    bare = len(render(content, [], maps).encode())
    room = MOST_BYTES - bare
    if room < 0:
        raise InputError(
            f"{PAGE}: would be {bare:,} bytes long without any figure, and may be {MOST_BYTES:,}; report fewer results "
            "at once"
        )
    mapped = {one.name for one in maps if one.text}
    alone = next(iter(mapped), None) if len(mapped) == 1 else None
    # The map itself says more than its picture.
    others = [one for one in pictures if not (one.is_map and (one.result or alone) in mapped)]
    room -= ROOM_A_FIGURE * len(others)
    return render(content, shown(others, max(0, room)), maps).encode()


def _files(subject: Subject, folder: Path) -> str:
    """What lies in the folder of a run or a comparison, as its own README says it."""
    if not (folder / SUMMARY).exists() or not subject.results:
        return ""
    names = [path.name for path in folder.iterdir()]
    results = subject.results
    runs = list(zip(folder_names([result.name for result in results]), results, strict=True))
    text = readme(subject.name, names, runs if len(runs) > 1 else ())
    return "\n".join(text.splitlines()[4:]).replace("\n## ", "\n### ")
