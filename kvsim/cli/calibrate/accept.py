"""`--accept`: what is wrong with results and may pass all the same."""

import argparse

CHOICES = ("emulated", "drift", "unchecked", "cut-short", "few-points")


def add_accept(parser: argparse.ArgumentParser) -> None:
    """Say which these are; the calibration keeps those that were needed."""
    parser.add_argument(
        "--accept",
        metavar="WHAT",
        action="append",
        default=[],
        choices=CHOICES,
        help="let pass, and write down: emulated (no GPU took the times), drift (anchors moved by more than 3 %%), "
        "unchecked (kernels whose results nobody checked), cut-short (no end record), few-points (families with too "
        "few are left out); may be repeated",
    )
