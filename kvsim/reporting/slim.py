"""Figures in fewer bytes: paths without digits that nobody sees, pictures of few colours.

A page holds a dozen of them, and none may weigh more than what it shows.
"""

import io
import re

PALETTE = 256
"""Colours that a picture of one byte a dot can have."""

_PATH = re.compile(r' d="([^"]*)"')
_NUMBER = re.compile(r"-?\d+\.\d+")
_DIGITS = 2
"""Behind the point of a coordinate: a hundredth of a point (1/72 inch) is far below what a printer can set."""


def slim_svg(text: str) -> str:
    """The same drawing, its paths rounded to a hundredth of a point and without line breaks."""
    return _PATH.sub(lambda path: f' d="{_NUMBER.sub(_rounded, " ".join(path[1].split()))}"', text)


def _rounded(number: re.Match[str]) -> str:
    text = f"{float(number[0]):.{_DIGITS}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def slim_png(data: bytes) -> bytes:
    """The same picture with the `PALETTE` colours that most of its dots have; any other dot takes the nearest one.

    A figure is a few flat colours and the shades between them at its edges, so that hardly anything is lost. What has
    no more colours than that loses nothing.
    """
    import numpy as np
    from PIL import Image

    picture = Image.open(io.BytesIO(data)).convert("RGB")
    dots = np.asarray(picture).astype(np.int32) @ np.array([1 << 16, 1 << 8, 1], dtype=np.int32)
    flat = dots.ravel()
    # Most dots are as the one before them, and only where they change there is something to sort.
    starts = np.flatnonzero(np.diff(flat, prepend=-1))
    lengths = np.diff(starts, append=len(flat))
    colours, which = np.unique(flat[starts], return_inverse=True)
    counts = np.bincount(which, weights=lengths)
    parts = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=1)
    # The same order each time where as many dots have one as another.
    kept = parts[np.lexsort((colours, -counts))[:PALETTE]]
    nearest = ((parts[:, None, :] - kept[None, :, :]) ** 2).sum(axis=2).argmin(axis=1).astype(np.uint8)
    slim = Image.fromarray(np.repeat(nearest[which], lengths).reshape(dots.shape), mode="P")
    slim.putpalette(kept.astype(np.uint8).tobytes())
    out = io.BytesIO()
    slim.save(out, format="PNG", dpi=picture.info.get("dpi"))
    return out.getvalue()
