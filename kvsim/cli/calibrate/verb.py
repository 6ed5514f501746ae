"""`kvsim calibrate`: what the verb's actions are."""

import argparse
from typing import Any

from kvsim.cli.calibrate import build, export, fit, run, trace, validate


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "calibrate",
        help="measure this GPU and fit the cost model",
        description="Measure a GPU, and fit the parameters of the cost model to measurements.",
        allow_abbrev=False,
    )
    actions: Any = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for action in (build, run, fit, validate, export, trace):
        action.add(actions)
