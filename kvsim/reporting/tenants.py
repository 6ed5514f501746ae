"""What each tenant got, as a table with a column for each: requests, tokens, latencies, goodput, share of the pool."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kvsim.metrics.result import Result
from kvsim.reporting.comparison import Group, Number, Row

NOBODY = "(nobody named)"
"""What the requests are called whose tenant nobody named."""
LETTERS = 24
"""Of a tenant's name so many are shown."""
NOTE = (
    "KV held: tokens times seconds, worked out from each request's times as if its KV grew evenly; a shared token "
    "counts for each tenant that holds it. Counts and tokens are of the whole run."
)


@dataclass(frozen=True)
class TenantTable:
    """`names` head the columns, those with the most requests first; `note` says how to read it."""

    names: tuple[str, ...]
    groups: tuple[Group, ...]
    note: str


def tenant_table(result: Result) -> TenantTable | None:
    """The table of a run; None where all its requests are one tenant's.

    A tenant is who the requests say they are of; where they say nothing, their class of service.
    """
    told: Mapping[str, Mapping[str, Any]] | None = result.metrics.get("tenants")
    if not told:
        return None
    every = tuple(told.values())

    def row(label: str, unit: str, digits: int, *numbers: Callable[[Mapping[str, Any]], Number]) -> Row:
        return Row(label, unit, digits, tuple(tuple(number(one) for number in numbers) for one in every))

    ends = ["finished", "rejected"]
    ends += [end for end in ("aborted", "cancelled", "unfinished") if any(one[end] for one in every)]
    rows = [row("arrived", "", 0, _at("arrived")), *(row(end, "", 0, _at(end)) for end in ends)]
    rows += [
        row("prompts", "tokens", 0, _at("prompt_tokens")),
        row("outputs", "tokens", 0, _at("output_tokens")),
    ]
    if any(one["hit_rate"] is not None for one in every):
        rows.append(row("hit rate", "%", 1, _at("hit_rate", times=100)))
    rows += [
        row("TTFT, p50 / p99", "s", 2, _at("ttft_s", "p50"), _at("ttft_s", "p99")),
        row("TPOT, p50 / p99", "ms", 1, _at("tpot_s", "p50", times=1000), _at("tpot_s", "p99", times=1000)),
    ]
    if any(one["goodput_per_s"] is not None for one in every):
        rows.append(row("goodput", "/s", 2, _at("goodput_per_s")))
    rows += [
        row("KV held", "token s", 0, _at("kv_token_s")),
        row("share of the pool's time", "%", 1, _at("pool_time_share", times=100)),
    ]
    left_out = result.metrics.get("tenants_left_out", 0)
    note = f"{NOTE} {left_out:,} tenants with fewer requests are left out." if left_out else NOTE
    return TenantTable(tuple(_shown(name) for name in told), (Group("By tenant", tuple(rows)),), note)


def _shown(name: str) -> str:
    return (name if len(name) <= LETTERS else f"{name[: LETTERS - 1].rstrip()}…") or NOBODY


def _at(key: str, inner: str | None = None, times: float = 1) -> Callable[[Mapping[str, Any]], Number]:
    def number(told: Mapping[str, Any]) -> Number:
        value = told[key]
        if inner is not None and value is not None:
            value = value[inner]
        if value is None or times == 1:
            return value  # type: ignore[no-any-return]
        return float(value * times)

    return number
