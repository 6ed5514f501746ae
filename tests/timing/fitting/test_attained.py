"""Cards whose kernels nobody measured take what they attain from published copies and products."""

import csv
import os
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from kvsim.catalog.gpus import gpus
from kvsim.timing.families import device, family
from kvsim.timing.fitting.attained import COPIES, PRODUCTS, SCALES, attained
from kvsim.timing.fitting.calibration import ATTAINED, DATASHEET, shipped

TABLE = list(csv.DictReader(files("kvsim.timing").joinpath("data/attained.csv").read_text("utf-8").splitlines()))
CARDS = sorted({row["gpu"] for row in TABLE})


def rows_of(card, quantity):
    return [row for row in TABLE if row["gpu"] == card and row["quantity"] == quantity]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['gpu']}-{row['quantity']}-{row['size']}-{row['value']}")
def test_a_published_rate_is_of_a_known_card_and_has_a_source_and_is_near_its_data_sheet(row):
    card = next(card for card in gpus() if card.name == row["gpu"])
    rate = float(row["value"]) * SCALES[row["unit"]]
    sheet = {COPIES: card.bandwidth_bytes_per_s, PRODUCTS: card.bf16_flops_per_s}[row["quantity"]]
    assert row["source"]
    # Boost clocks go beyond those of the data sheet, by a seventh at most.
    assert 0.5 * sheet < rate < 1.15 * sheet


@pytest.mark.parametrize("card", CARDS)
def test_memory_is_read_as_fast_as_the_card_copies(card):
    copies = np.median([float(row["value"]) for row in rows_of(card, COPIES)]) * 1e9
    for name in ("linear:bf16", "decode_attention:bf16", "linear:fp8"):
        values, said = shipped().values(card, name)
        assert values["bandwidth_share"] * device(card).bandwidth_bytes_per_s == pytest.approx(copies)
        assert said == ATTAINED


@pytest.mark.parametrize("card", CARDS)
def test_half_of_the_published_products_are_predicted_too_long_and_half_too_short(card):
    values, _ = shipped().values(card, "linear:bf16")
    rows = rows_of(card, PRODUCTS)
    size = np.array([float(row["size"]) for row in rows])
    measured = 2 * size**3 / (np.array([float(row["value"]) for row in rows]) * 1e12)
    predicted = family("linear:bf16").seconds(values, {"m": size, "n": size, "k": size}, device(card))
    assert np.median(predicted / measured) == pytest.approx(1.0, abs=0.005)


def test_what_no_product_tells_is_the_relatives():
    relatives, _ = shipped().values("L40S", "linear:bf16")
    ada, _ = shipped().values("RTX-4090", "linear:bf16")
    assert {name for name in ada if ada[name] != pytest.approx(relatives[name])} == {
        "bandwidth_share", "compute_share", "sustained_loss",
    }  # fmt: skip
    assert shipped().values("RTX-4090", "prefill_attention:packed")[1] == DATASHEET


def test_a_gpu_with_kernel_fits_keeps_them():
    for name in ("A100-SXM-80GB", "L40S", "B200-SXM"):
        assert shipped().values(name, "linear:bf16")[0] == shipped().entries[name, "linear:bf16"].values


def test_nothing_is_known_of_a_card_that_nobody_published():
    assert attained("L4", "linear:bf16", {}) is None
    assert shipped().values("L4", "linear:bf16")[1] == DATASHEET


def test_an_unseen_card_is_its_data_sheet_and_other_gpus_alone():
    blind = shipped().without(["RTX-4090"])
    relatives, _ = shipped().values("L40S", "linear:bf16")
    assert blind.values("RTX-4090", "linear:bf16") == (pytest.approx(relatives), DATASHEET)
    assert blind.without(["T4"]).values("RTX-4090", "linear:bf16")[1] == DATASHEET


@pytest.mark.oracle
def test_decoding_one_sequence_on_ada_cards_reads_weights_as_fast_as_the_rtx_4090_copies():
    """llama.cpp, 8B at 16 bits, four cards of 360 to 1,008 GB/s: the slope of time over bytes is the memory's."""
    folder = os.environ.get("KVSIM_DATA")
    if not folder:
        pytest.skip("KVSIM_DATA names no folder of measurements")
    # As the source names them; other counts of cards are left out.
    cards = {"4080 16GB", "RTX 4000 Ada 20GB", "4090 24GB", "RTX 6000 Ada 48GB"}
    with (Path(folder) / "measured" / "llamacpp_batch1.csv").open() as table:
        rows = [
            row
            for row in csv.DictReader(table)
            if row["gpu"] in cards and row["weights"] == "F16" and "8B" in row["model"] and row["decode_tok_s"]
        ]
    assert len(rows) == 4
    # Llama-3-8B without its input embedding: 8.03e9 - 128,256 x 4,096 weights of 2 bytes.
    weights = 2 * (8.030e9 - 128256 * 4096)
    at_peak = [weights / device(row["gpu"]).bandwidth_bytes_per_s for row in rows]
    slope, _ = np.polyfit(at_peak, [1 / float(row["decode_tok_s"]) for row in rows], 1)
    values, _ = shipped().values("RTX-4090", "linear:bf16")
    assert 1 / slope == pytest.approx(values["bandwidth_share"], rel=0.02)
