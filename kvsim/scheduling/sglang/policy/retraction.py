"""Which running requests give up their slots when the next decode does not fit."""

from kvsim.scheduling.sglang.request import Request
from kvsim.scheduling.sglang.rows import Rows
from kvsim.scheduling.sglang.settings import Rules


def retract(rows: Rows, requests: list[Request], rules: Rules) -> tuple[list[Request], list[Request], list[Request]]:
    """(kept, retracted, aborted) of requests of which at least one has to go. Mutates.

    Kept first are those with the most output, of equals the shortest prompts, and one at least; each retraction evicts
    toward a few tokens for every request kept. If even the last does not fit alone, it is aborted.
    """
    kept = sorted(requests, key=lambda request: (request.outputs, -request.prompt_tokens), reverse=True)
    retracted: list[Request] = []
    while len(kept) > 1 and (not retracted or not rows.decode_fits(kept)):
        gone = kept.pop()
        rows.retract(gone)
        rows.make_room(len(kept) * rules.retract_ahead_tokens)
        retracted.append(gone)
    aborted = []
    if len(kept) == 1 and not rows.decode_fits(kept):
        last = kept.pop()
        rows.retract(last)
        aborted.append(last)
    return kept, retracted, aborted
