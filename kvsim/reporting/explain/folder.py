"""The folder of an explanation: a figure of each phase and a README.md that reads like the command's output."""

from pathlib import Path

from kvsim.metrics.result import write_whole
from kvsim.reporting.explain.text import PHASES, sections
from kvsim.study.explain.example import Walk
from kvsim.study.explain.request_bytes import RequestBytes
from kvsim.version import __version__

README = "README.md"


def write_explanation(walk: Walk, request: RequestBytes, folder: str | Path) -> list[Path]:
    """Write PNG and SVG of each phase and the README into `folder`, made if it is not there. Returns the paths."""
    # Importing matplotlib takes most of a second, so it waits until a figure is really drawn.
    from kvsim.reporting.explain.figures import draw_phase
    from kvsim.reporting.style import save_figure

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = [path for name in PHASES for path in save_figure(draw_phase(walk, name), folder, name)]
    return [*written, write_whole(folder / README, readme(walk, request).encode())]


def readme(walk: Walk, request: RequestBytes) -> str:
    """Every section with its figure, where it has one, and its matrices as they are printed."""
    parts = ["# The KV life cycle of one request"]
    for section in sections(walk, request):
        parts.append(f"## {section.title}")
        parts.append(section.words)
        if section.name in PHASES:
            parts.append(f"![{section.title}]({section.name}.png)")
        parts.append("\n".join(["```", *section.lines, "```"]))
    parts.append(f"Written by kvsim {__version__} (`kvsim explain`). Source of what is given: {walk.example.source}")
    return "\n\n".join(parts) + "\n"
