"""The kinds of value a scenario holds: texts with a unit on the user's side, plain numbers on kvsim's
side."""

from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from kvsim.units import (
    duration_text,
    parse_duration,
    parse_rate,
    parse_share,
    parse_size,
    rate_text,
    size_text,
)

MOST = 1 << 53
"""The most of anything counted: the largest whole number that JSON keeps apart from its neighbours everywhere."""

MOST_BYTES = 1 << 63
"""The most of a size: what the 64 bits of an address reach, and half of it kept for the sign."""

_NUMBER = r"^\s*[0-9.]+([eE][+-]?[0-9]+)?\s*"


def _text_schema(units: str, examples: list[str]) -> dict[str, Any]:
    return {"type": "string", "pattern": f"{_NUMBER}({units})\\s*$", "examples": examples}


def _size(value: object) -> int:
    size_bytes = parse_size(value)
    if size_bytes > MOST_BYTES:
        raise ValueError(f"{value} is beyond any memory; write at most {size_text(MOST_BYTES)}")
    return size_bytes


def _longer(value: object) -> int:
    duration_ps = parse_duration(value)
    if duration_ps == 0:
        raise ValueError(f"{value} is no time at all; write a duration above 0, for example 2s")
    return duration_ps


def _page(value: object) -> int:
    # Late: capacity brings the catalogue along, which only a scenario with pages needs here.
    from kvsim.capacity.pages import is_page

    page_bytes = parse_size(value)
    if not is_page(page_bytes):
        raise ValueError(f"{value} is no page of a GPU; write a multiple of 64KiB, at most 2MiB, such as 2MiB or 64KiB")
    return page_bytes


_DURATION_SCHEMA = _text_schema("ps|ns|us|µs|ms|s|min|h|d", ["50ms", "2s", "1.5min"])

Size = Annotated[
    int,
    BeforeValidator(_size),
    PlainSerializer(size_text, when_used="json"),
    WithJsonSchema(_text_schema("B|[kKMGT]B|[KMGT]iB", ["80GiB", "16GB", "512MiB"])),
]
"""A size, written `12GiB`; held as bytes."""

Page = Annotated[
    int,
    BeforeValidator(_page),
    PlainSerializer(size_text, when_used="json"),
    WithJsonSchema(_text_schema("B|KiB|MiB", ["2MiB", "64KiB"])),
]
"""The size of a page of physical memory, written `2MiB`; held as bytes."""

Duration = Annotated[
    int,
    BeforeValidator(parse_duration),
    PlainSerializer(duration_text, when_used="json"),
    WithJsonSchema(_DURATION_SCHEMA),
]
"""A duration from 0 on, written `50ms`; held as integer picoseconds."""

Timespan = Annotated[
    int,
    BeforeValidator(_longer),
    PlainSerializer(duration_text, when_used="json"),
    WithJsonSchema(_DURATION_SCHEMA),
]
"""A duration above 0; held as integer picoseconds."""

Rate = Annotated[
    float,
    BeforeValidator(parse_rate),
    PlainSerializer(rate_text, when_used="json"),
    WithJsonSchema(_text_schema("/ *(s|min|h|d)", ["8/s", "480/min"])),
]
"""A rate above 0, written `8/s`; held per second."""

Share = Annotated[
    float,
    BeforeValidator(parse_share),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": 1},
                {"type": "string", "pattern": _NUMBER + r"%\s*$"},
            ]
        }
    ),
]
"""A fraction, written `0.9` or `90%`; held as a number from 0 to 1."""

Count = Annotated[int, Field(ge=1, le=MOST)]
"""A whole number from 1 on: tokens, slots, blocks, requests."""

Positive = Annotated[float, Field(gt=0)]
"""A finite number above 0."""


class Part(BaseModel):
    """A mapping of a scenario: strict (no text for a number), without unknown keys, not to be changed once
    read."""

    # Deferred: the outermost mapping builds the validators of all parts once, on first use.
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    @classmethod
    def inner(cls, key: str) -> list[type["Part"]]:
        """Return the models of the mappings that `key` may hold."""
        return _parts_in(cls.model_fields[key].annotation)

    @classmethod
    def descriptions(cls) -> dict[str, str]:
        """Return what each key means: the text below its line in the source.

        Read here and not by pydantic at import, which would cost every run what only `kvsim schema` shows.
        """
        import ast
        import inspect
        import textwrap

        found = {}
        for part in reversed(cls.__mro__):
            if part is Part or not issubclass(part, Part):
                continue
            body = ast.parse(textwrap.dedent(inspect.getsource(part))).body[0]
            assert isinstance(body, ast.ClassDef)
            for line, below in zip(body.body, body.body[1:], strict=False):
                if (
                    isinstance(line, ast.AnnAssign)
                    and isinstance(line.target, ast.Name)
                    and isinstance(below, ast.Expr)
                ):
                    found[line.target.id] = " ".join(ast.literal_eval(below.value).split())
        return found


def _parts_in(annotation: Any) -> list[type[Part]]:
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return [annotation]
    return [part for argument in get_args(annotation) for part in _parts_in(argument)]
