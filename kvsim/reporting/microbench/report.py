"""Figures of a fit in a folder, one of each kind of operation that was measured."""

from pathlib import Path
from typing import Any

from kvsim.microbench.fit.fit import Fit
from kvsim.reporting.style import foot_text, house_style, save_figure
from kvsim.timing.fitting.calibration import EMULATED
from kvsim.version import __version__

STAMP = "EMULATED: no GPU took these times"


def write_figures(found: Fit, folder: Path) -> list[Path]:
    """Write `NAME.png` and `NAME.svg` of each kind of operation that was fitted. Returns the paths."""
    from kvsim.reporting.microbench.figures import figure_of
    from kvsim.reporting.microbench.specs import SPECS

    folder.mkdir(parents=True, exist_ok=True)
    stamp = STAMP if found.calibration.provenance == EMULATED else None
    foot = footer(found)
    written = []
    for spec in SPECS:
        fits = [one for one in found.families if one.entry.family.partition(":")[0] in spec.kinds]
        if fits:
            with house_style():
                figure = figure_of(spec, fits, found.device, foot, stamp)
            written += save_figure(figure, folder, spec.stem)
    return written


def footer(found: Fit) -> str:
    """What made the figure and where its numbers come from: the device, its driver, the day, the input's hash."""
    about = found.calibration.about
    env: dict[str, Any] = about["env"]
    parts = [
        f"kvsim {__version__}",
        found.calibration.provenance,
        f"device {env['device']}" + (f", driver {env['driver']}" if env.get("driver") else ""),
        f"backend {env['backend']}",
    ]
    if env.get("started_utc"):
        parts.append(str(env["started_utc"])[:10])
    parts.append(f"input {about['input_sha256'][:12]}")
    if about["accepted"]:
        parts.append(f"accepted: {', '.join(about['accepted'])}")
    return foot_text(" · ".join(parts))
