"""What a card attains of its data sheet where nobody has measured its kernels: copies, and large matrix products.

Both are widely published (`data/attained.csv`), and are what a server card of the same architecture tells worst: its
memory pays for error correction, its tensor cores meet their power limit, and those of a GeForce add up in 32 bits at
half the rate. So a card without kernel fits takes from its relatives how kernels behave, and from its own rates how
fast memory and tensor cores are:

    bandwidth share = copies / data sheet
    compute share   = that of the relatives x median over products of (their predicted time / measured time)

Products are of work long enough to show what power allows, so no further loss in sustained work is taken. Smaller ones
than those in the table measure launches. That kernels which do little but read reach what a copy does is an assumption;
llama.cpp's published decode rates of four Ada cards, which are not in this table, lie on a line of 0.91 of the data
sheet's bandwidth where the RTX 4090's copies are 0.91.
"""

import csv
from collections import defaultdict
from functools import cache
from importlib.resources import files

import numpy as np

from kvsim.timing.families import device, family
from kvsim.timing.families.interface import Column, Values

COPIES, PRODUCTS = "copy", "matmul"
SCALES = {"GB/s": 1e9, "TFLOP/s": 1e12}
NO_LOSS = 1e-3
"""Of the sustained rate: the least that the family takes."""
ROUNDS = 5
"""Nearly all of a product's time is in proportion to the compute share, the rest takes a few rounds."""
PRODUCTS_OF = "linear:bf16"
"""The family whose products are published."""
READERS = ("linear", "decode_attention", "moe")
"""Kinds of kernels that are limited by reading memory."""


def attained(gpu: str, name: str, relatives: Values) -> dict[str, float] | None:
    """Parameters of family `name` on `gpu` with what the card attains, the rest those of `relatives`.

    None where nothing was published of the card that the family depends on.
    """
    rates = _rates().get(gpu)
    if rates is None or name.partition(":")[0] not in READERS:
        return None
    chip, values = device(gpu), dict(relatives)
    if COPIES in rates:
        copies = [rate for _, rate in rates[COPIES]]
        values["bandwidth_share"] = float(np.median(copies)) / chip.bandwidth_bytes_per_s
    if name == PRODUCTS_OF and PRODUCTS in rates:
        values["sustained_loss"] = NO_LOSS
        size, rate = (np.array(column) for column in zip(*rates[PRODUCTS], strict=True))
        for _ in range(ROUNDS):
            predicted = family(name).seconds(values, _square(size), chip)
            values["compute_share"] *= float(np.median(predicted / (2 * size**3 / rate)))
    return values


def _square(size: Column) -> dict[str, Column]:
    """Products of square matrices in a loop, as benchmarks run them."""
    return {"m": size, "n": size, "k": size}


@cache
def _rates() -> dict[str, dict[str, list[tuple[float, float]]]]:
    """(size, bytes or FLOP per second) by GPU and quantity."""
    text = files("kvsim.timing").joinpath("data/attained.csv").read_text("utf-8")
    found: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for row in csv.DictReader(text.splitlines()):
        rate = float(row["value"]) * SCALES[row["unit"]]
        found[row["gpu"]][row["quantity"]].append((float(row["size"] or 0), rate))
    return found
