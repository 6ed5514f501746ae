"""How far a plan's KV tokens are expected to be off: what the check against logged starts found for its class.

`data/expected_errors.json` is written by `kvsim capacity --check-csv --expected`. Each logged start was planned without
what its own model logged. A class is how much of the card the KV takes: where little is left, a small error in GiB is
a large one in tokens.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from kvsim.capacity.plan import Plan

FORMAT = "kvsim expected capacity errors 1"
CLASSES = {
    "given": "logged starts whose KV memory or overheads are given",
    "roomy": "logged starts of other models, planned from model, GPU and flags",
    "tight": "logged starts of other models, planned from model, GPU and flags, KV under {share:.0%} of the card",
}
"""What tells the starts of each class."""


def expected_error(made: Plan) -> dict[str, Any]:
    """The error to expect of the plan's KV tokens, as shares, with the class that they are of in words."""
    table = error_table()
    given, stage = made.deployment.given, made.stage
    known = given.kv_memory or given.num_gpu_blocks or (given.activation and given.non_torch)
    share = table["tight_share"]
    name = "given" if known else "tight" if stage.kv.best < share * made.deployment.total.best else "roomy"
    found = table["classes"][name]
    return {
        "kv_tokens_median": found["median"],
        "kv_tokens_p90": found["p90"],
        "starts": found["n"],
        "basis": f"{found['n']} {CLASSES[name].format(share=share)}",
    }


def in_words(error: Mapping[str, Any]) -> str:
    """The same as a line for people."""
    median, far = (100 * error[f"kv_tokens_{name}"] for name in ("median", "p90"))
    return f"expected error: KV tokens {median:.2g} % median, {far:.2g} % p90 ({error['basis']})"


def table_of(checked: Mapping[str, Any], tight_share: float) -> dict[str, Any]:
    """The data file from a checked table of starts (see `checking.scores`)."""
    given, default = checked["given"]["summary"], checked["default"]["summary"]
    classes = {"given": given["kv_tokens"], "roomy": default["kv_tokens"], "tight": default["kv_tokens_tight"]}
    return {"format": FORMAT, "tight_share": tight_share, "classes": classes}


@cache
def error_table() -> dict[str, Any]:
    """The data file: `classes` by name, and `tight_share`."""
    text = files("kvsim.capacity.answers").joinpath("data/expected_errors.json").read_text("utf-8")
    table: dict[str, Any] = json.loads(text)
    return table
