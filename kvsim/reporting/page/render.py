"""From what a page says and shows to one HTML file that needs nothing else."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvsim.reporting.finding import straight
from kvsim.reporting.page.content import Content
from kvsim.reporting.page.map import MapData
from kvsim.reporting.page.pictures import Shown
from kvsim.reporting.style import CLASS_COLOURS
from kvsim.step import CLASSES

if TYPE_CHECKING:
    from markupsafe import Markup

ASSETS = Path(__file__).parent / "assets"
TABLES = ("tables.js",)
MAP = ("changes.js", "pool.js", "look.js", "plane.js", "map.js")
"""The scripts in the order in which they run; the second only where there is a map."""


def render(content: Content, pictures: Sequence[Shown], maps: Sequence[MapData]) -> str:
    """The page as HTML. Every text is escaped, and nothing runs but the scripts that kvsim brings."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: straight(value) if type(value) is str else value,
    )
    environment.filters["names"] = with_names
    fitting = [one for one in maps if one.text]
    scripts = ["\n" + "\n".join(_asset(name) for name in (*TABLES, *(MAP if fitting else ())))]
    return environment.get_template("page.html.j2").render(
        content=content,
        pictures=pictures,
        together=[shown for shown in pictures if shown.picture.result is None],
        alone=_by_result(pictures),
        maps=fitting,
        no_room=[one.name for one in maps if not one.text],
        unmapped=_unmapped(content, maps),
        map_data=Markup(json_block(_model(fitting))),
        classes=_occurring(fitting),
        style=Markup(_asset("page.css")),
        scripts=[Markup(script) for script in scripts],
        policy=policy(scripts),
        svg=Markup,
    )


def with_names(text: str) -> "Markup":
    """A text as HTML, in which what stands between backquotes is a name."""
    from markupsafe import Markup, escape

    parts = re.split("`([^`]+)`", straight(text))
    return Markup().join(
        Markup(f"<code>{escape(part)}</code>") if at % 2 else escape(part) for at, part in enumerate(parts)
    )


def policy(scripts: Sequence[str]) -> str:
    """What the page may do: nothing but draw, with its own styles, images that are written out in it, and exactly
    these scripts."""
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def json_block(value: object) -> str:
    """JSON that can stand in a script element: no `<` in it could end it, or begin a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _model(maps: Sequence[MapData]) -> Mapping[str, Any]:
    return {
        "classes": [{"name": name, "colour": CLASS_COLOURS[name]} for name in CLASSES],
        "samples": any(sample for one in maps for _, sample in one.owners),
        "maps": [one.plain for one in maps],
    }


def _occurring(maps: Sequence[MapData]) -> list[tuple[str, str]]:
    """The classes that the maps show, with their colours."""
    there = {kind for one in maps for kind in one.kinds} | {"used", "free"}
    return [(name, CLASS_COLOURS[name]) for name in CLASSES if name in there]


def _unmapped(content: Content, maps: Sequence[MapData]) -> list[str]:
    """The results whose addresses nobody recorded."""
    names = content.numbers.columns[1:] if content.numbers else []
    return [name for name in names if name not in {one.name for one in maps}]


def _by_result(pictures: Sequence[Shown]) -> list[tuple[str, list[Shown]]]:
    found: dict[str, list[Shown]] = {}
    for shown in pictures:
        if shown.picture.result is not None:
            found.setdefault(shown.picture.result, []).append(shown)
    return list(found.items())


def _asset(name: str) -> str:
    return (ASSETS / name).read_text("utf-8")
