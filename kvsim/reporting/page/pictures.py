"""The figures of a report: drawn into its folder, and in the form in which its page holds them."""

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvsim.metrics.result import Result
from kvsim.reporting.figures.catalogue import FIGURES
from kvsim.reporting.figures.interface import FigureKind, figures_of
from kvsim.reporting.inputs import Subject
from kvsim.reporting.inputs.exhibit import Found
from kvsim.reporting.run_folder import INTERVALS_FIGURE, MAP_FIGURE, folder_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Progress = Callable[[float, str], None]


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure of a report: of which result (None: of all together), where it lies in the report's folder, without
    the ending, and its bytes in each form."""

    title: str
    caption: str
    place: str
    forms: Mapping[str, bytes]
    result: str | None = None

    @property
    def is_map(self) -> bool:
        """It shows what lies at which address."""
        return self.place.rpartition("/")[2] == MAP_FIGURE


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A figure as a page holds it: an SVG's elements, or the address of an image that is written out in it; or
    neither, where there was no room."""

    picture: Picture
    svg: str = ""
    image: str = ""


def draw(subject: Subject, formats: Sequence[str], progress: Progress | None = None) -> list[Picture]:
    """Every figure that the subject has something to show for, in these forms; those of a single result lie in a folder
    of its name, if there are several. Figures of exhibits are taken as they lie there."""
    results = list(subject.results)
    planned: list[tuple[FigureKind, list[Result], str, str | None]] = []
    together = figures_of(results, FIGURES) if results else []
    planned += [(kind, results, kind.name, None) for kind in together]
    if len(results) > 1:
        done = {kind.name for kind in together}
        for result, name in zip(results, folder_names([result.name for result in results]), strict=True):
            own = [kind for kind in figures_of([result], FIGURES) if kind.name not in done]
            planned += [(kind, [result], f"{name}/{kind.name}", result.name) for kind in own]
    made = [*_intervals(subject, formats)]
    for number, (kind, of, place, owner) in enumerate(planned):
        if progress:
            progress(number / len(planned), f"drawing {kind.title}")
        forms = _forms(kind.draw(of), formats)
        made.append(Picture(title=kind.title, caption=kind.caption, place=place, forms=forms, result=owner))
    return made + [_found(figure) for exhibit in subject.exhibits for figure in exhibit.figures]


def _intervals(subject: Subject, formats: Sequence[str]) -> Iterator[Picture]:
    from kvsim.reporting.study.figure import has_intervals, study_figure

    if subject.study is None or not has_intervals(subject.study):
        return
    yield Picture(
        title="How sure",
        caption="Each variant's estimate with its interval; green is better than the baseline, red worse, black "
        "neither, hollow without an interval.",
        place=INTERVALS_FIGURE,
        forms=_forms(study_figure(subject.study, subject.results), formats),
    )


def _forms(figure: "Figure", formats: Sequence[str]) -> dict[str, bytes]:
    from kvsim.reporting.style import figure_bytes

    return {form: figure_bytes(figure, form) for form in formats}


def _found(figure: Found) -> Picture:
    kind = next((kind for kind in FIGURES if kind.name == figure.stem), None)
    words = re.sub(r"[_-]+", " ", figure.stem)
    return Picture(
        title=kind.title if kind else f"{words[0].upper()}{words[1:]}",
        caption=kind.caption if kind else "",
        place=figure.stem,
        forms={form: path.read_bytes() for form, path in figure.files.items()},
    )


def shown(pictures: Sequence[Picture], most_letters: int) -> list[Shown]:
    """How a page holds these figures, so that together they take at most so many letters.

    Each is an SVG, which stays sharp and whose text can be searched, unless that is long and longer than its PNG. Where
    all of them do not fit, those whose PNG saves most are PNG; then the last ones are left out.
    """
    svgs = [_svg(picture, place) for place, picture in enumerate(pictures)]
    images = [_image(picture) for picture in pictures]
    chosen = [svg or image for svg, image in zip(svgs, images, strict=True)]
    saved = [len(text) - len(image) if image else 0 for text, image in zip(chosen, images, strict=True)]
    for place in sorted(range(len(chosen)), key=lambda place: -saved[place]):
        too_much = len(chosen[place]) > MOST_LETTERS or sum(map(len, chosen)) > most_letters
        if saved[place] > 0 and too_much:
            chosen[place] = images[place]
    left = most_letters
    made = []
    for picture, text in zip(pictures, chosen, strict=True):
        if not text or len(text) > left:
            made.append(Shown(picture=picture))
            continue
        left -= len(text)
        is_image = text.startswith("data:")
        made.append(Shown(picture=picture, image=text) if is_image else Shown(picture=picture, svg=text))
    return made


MOST_LETTERS = 400_000
"""Of an SVG that is longer than its PNG."""

_FIRST = re.compile(r"\A.*?(?=<svg)", re.DOTALL)
_DROPPED = re.compile(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", re.DOTALL)
_SPACE_NAMES = re.compile(r'\sxmlns(:\w+)?="[^"]*"')
_TAGS = re.compile(r"<[^>]*>")
_IDS = re.compile(r'\sid="([^"]*)"')
_USES = re.compile(r'(url\(#|href="#)([^")]*)')


def inline_svg(text: str, prefix: str, label: str) -> str:
    """An SVG file of matplotlib as an element of a page: without what only a file needs, and with names that begin with
    `prefix`, so that those of two figures are never the same."""
    text = _DROPPED.sub("", _FIRST.sub("", text))
    used = {name for tag in _TAGS.findall(text) for _, name in _USES.findall(tag)}

    def named(tag: re.Match[str]) -> str:
        own = _IDS.sub(lambda name: f' id="{prefix}{name[1]}"' if name[1] in used else "", tag[0])
        return _SPACE_NAMES.sub("", _USES.sub(lambda use: f"{use[1]}{prefix}{use[2]}", own))

    text = re.sub(r"\n\s*", "\n", _TAGS.sub(named, text)).strip()
    return text.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def _svg(picture: Picture, place: int) -> str:
    from markupsafe import escape

    found = picture.forms.get("svg")
    return "" if found is None else inline_svg(found.decode(), f"f{place}-", str(escape(picture.title)))


def _image(picture: Picture) -> str:
    found = picture.forms.get("png")
    return "" if found is None else f"data:image/png;base64,{base64.b64encode(found).decode()}"
