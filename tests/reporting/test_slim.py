"""Slim files show the same: paths to a hundredth of a point, pictures in their own colours."""

import io

import numpy as np
from PIL import Image

from kvsim.reporting.slim import PALETTE, slim_png, slim_svg


def png(dots):
    out = io.BytesIO()
    Image.fromarray(dots).save(out, format="PNG", dpi=(200, 200))
    return out.getvalue()


def dots_of(data):
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def test_a_picture_of_few_colours_loses_nothing():
    rng = np.random.default_rng(1)
    colours = rng.integers(0, 256, (PALETTE, 3), dtype=np.uint8)
    dots = colours[rng.integers(0, PALETTE, (60, 80))]
    slim = slim_png(png(dots))
    assert (dots_of(slim) == dots).all()
    assert round(Image.open(io.BytesIO(slim)).info["dpi"][0]) == 200
    assert slim == slim_png(png(dots))


def test_of_many_colours_the_most_frequent_stay_and_others_take_the_nearest():
    rng = np.random.default_rng(2)
    dots = np.full((100, 100, 3), 255, dtype=np.uint8)
    dots[:40] = (0, 114, 178)
    dots[40:50] = rng.integers(0, 256, (10, 100, 3), dtype=np.uint8)
    slim = dots_of(slim_png(png(dots)))
    assert (slim[:40] == dots[:40]).all()
    assert (slim[50:] == dots[50:]).all()
    assert len(np.unique(slim.reshape(-1, 3), axis=0)) <= PALETTE


def test_only_paths_are_rounded():
    text = '<path d="M 1.23456 -0.001 \nL 10.5 7.999 \nL 3 4 \n" style="stroke-width: 1.23456"/>\n<text x="1.23456"/>'
    assert slim_svg(text) == ('<path d="M 1.23 0 L 10.5 8 L 3 4" style="stroke-width: 1.23456"/>\n<text x="1.23456"/>')
