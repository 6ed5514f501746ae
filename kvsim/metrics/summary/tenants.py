"""What each tenant got: the `tenants` of the JSON contract, only where there is more than one."""

from collections.abc import Callable
from typing import Any

from kvsim.metrics.requests import Marks
from kvsim.metrics.summary.values import spread
from kvsim.request import PS_PER_S
from kvsim.step import ENDS

MOST_TENANTS = 32
"""So many are told of, those with the most requests; the rest are counted."""


def tenant_metrics(
    marks: Marks,
    inside: bytearray,
    out: bytearray,
    *,
    goodput_per_s: Callable[[bytearray], float | None],
    pool_token_ps: int,
    caches: bool,
) -> dict[str, Any]:
    """By tenant (where nobody named one: by class of service) what became of its requests.

    Counts, tokens and KV token-seconds are of the whole run; latencies and the hit rate of requests that arrived in the
    measured window (`inside`), goodput of those that finished in it (`out`). `kv_token_s` is worked out from the times
    of each request (`Ended.held_token_ps`), a shared token counts for each that holds it, and `pool_time_share` is that
    over `pool_token_ps`, the tokens of the pool times the length of the run. Empty for one tenant.
    """
    accounts = marks.tenants.accounts
    if len(accounts) < 2:
        return {}
    largest = sorted(accounts, key=lambda name: (-accounts[name].arrived, name))[:MOST_TENANTS]
    told = {}
    for name in largest:
        account, own = accounts[name], marks.of_tenant(name, inside)
        done = marks.finished(own)
        asked, hit, _ = marks.found_tokens(own) if caches else (0, 0, 0)
        told[name] = {
            "arrived": account.arrived,
            **{end: account.ends[end] for end in ENDS},
            "prompt_tokens": account.prompt_tokens,
            "output_tokens": account.output_tokens,
            "hit_tokens": account.hit_tokens,
            "hit_rate": hit / asked if asked else None,
            "ttft_s": spread(marks.ttft_ps(own)),
            "tpot_s": spread(marks.tpot_ps(done)),
            "goodput_per_s": goodput_per_s(marks.of_tenant(name, out)),
            "kv_token_s": account.held_token_ps / PS_PER_S,
            "pool_time_share": account.held_token_ps / pool_token_ps if pool_token_ps else None,
        }
    left_out = len(accounts) - len(largest)
    return {"tenants": told} | ({"tenants_left_out": left_out} if left_out else {})
