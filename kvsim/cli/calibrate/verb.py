"""`kvsim calibrate`: what the verb's actions are."""

import argparse
from typing import Any

from kvsim.cli.calibrate import export, fit, validate


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "calibrate",
        help="fit the cost model to measurements",
        description="Fit the parameters of the cost model to measurements.",
        allow_abbrev=False,
    )
    actions: Any = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for action in (fit, validate, export):
        action.add(actions)
