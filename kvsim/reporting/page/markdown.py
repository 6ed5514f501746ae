"""The Markdown twin of a page: what a report's folder shows on a code host."""

from collections.abc import Iterator, Sequence

from kvsim.reporting.exports.markdown import escaped
from kvsim.reporting.inputs.sheet import Sheet
from kvsim.reporting.page.content import Content
from kvsim.reporting.page.pictures import Picture


def markdown(
    content: Content,
    pictures: Sequence[Picture],
    formats: Sequence[str],
    page: str | None,
    files: str = "",
    *,
    mapped: bool,
) -> str:
    """The finding, the tables one looks at first, the figures, and what to know of them.

    `formats` are those in which figures lie in the folder, `page` is the name of the HTML page there, which has a
    memory map if `mapped`; `files` says in Markdown what else lies there.
    """
    lines = [f"# {escaped(content.name)}", ""]
    if content.description:
        lines += [escaped(content.description), ""]
    for text in content.findings:
        lines += [f"**{escaped(text)}**", ""]
    if page:
        lines += [
            f"[{page}]({page}) is the same as one page, with tables to sort{' and the memory map' if mapped else ''}: "
            "open it here.",
            "",
        ]
    for sheet in (content.glance, content.intervals, None if content.glance else content.numbers):
        lines += _sheet(sheet)
    lines += _figures(pictures, formats)
    lines += _sheet(content.tenants)
    for exhibit in content.exhibits:
        for sheet in exhibit.sheets:
            lines += _sheet(sheet)
    lines += _list("Notes", content.notes)
    lines += _list("Where the numbers come from", content.provenance)
    lines += _list("What is not modelled", content.not_modelled)
    if files:
        lines += ["## Files", "", files.strip(), ""]
    return "\n".join(lines).rstrip() + "\n"


def _sheet(sheet: Sheet | None) -> Iterator[str]:
    if sheet is None or not sheet.rows:
        return
    yield f"## {escaped(sheet.title)}"
    yield ""
    if sheet.note:
        yield escaped(sheet.note)
        yield ""
    yield _row([escaped(head) for head in sheet.columns])
    yield _row(["---:" if numeric else "---" for numeric in sheet.numeric])
    for body in sheet.bodies:
        if body.heading:
            yield _row([f"**{escaped(body.heading)}**", *[""] * (len(sheet.columns) - 1)])
        for row in body.rows:
            yield _row([escaped(cell.text) for cell in row])
    yield ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _figures(pictures: Sequence[Picture], written: Sequence[str]) -> Iterator[str]:
    if not pictures:
        return
    yield "## Figures"
    yield ""
    result: str | None = None
    for picture in pictures:
        form = next((form for form in ("png", "svg") if form in written and form in picture.forms), None)
        if form is None:
            continue
        if picture.result != result:
            result = picture.result
            yield f"### {escaped(result or '')}"
            yield ""
        yield f"![{escaped(picture.title)}](<{picture.place}.{form}>)"
        yield ""
        yield f"{escaped(picture.title)}. {escaped(picture.caption)}".strip()
        yield ""


def _list(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"## {title}"
        yield ""
        yield from (f"- {escaped(line)}" for line in lines)
        yield ""
