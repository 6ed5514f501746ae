"""What is written down of a request when it has ended, of an allocation that failed, and of a preemption."""

from typing import NamedTuple

from kvsim.content import LAYERS

NO_HITS = (0,) * len(LAYERS)
"""Nothing found in any layer of sharing."""


class Ended(NamedTuple):
    """The record of one request, times in picoseconds; tokens and counts are sums over its samples."""

    id: int
    arrival_ps: int
    prompt_tokens: int
    output_tokens: int
    max_tokens: int | None
    priority: int
    tenant: str
    first_scheduled_ps: int | None
    first_token_ps: int | None
    end_ps: int
    end: str
    finish_reason: str | None
    generated_tokens: int
    preemptions: int
    lost_tokens: int
    recomputed_tokens: int
    swapped_tokens: int = 0
    samples: int = 1
    longest_tokens: int = 0
    """Output tokens of its longest sample, where it has several."""
    asked_tokens: int = 0
    hit_tokens: int = 0
    rehit_tokens: int = 0
    hit_layers: tuple[int, ...] = NO_HITS
    """`hit_tokens` by layer of sharing, in the order of `content.LAYERS`."""
    regret_tokens: int | None = 0
    session: int | None = None
    """None: it stood alone."""
    turn: int | None = None
    slo_class: str = ""
    away_ps: int = 0
    """How long it was preempted, in all; of several samples the mean."""

    @property
    def whose(self) -> str:
        """Its tenant; where nobody named one, its class of service."""
        return self.tenant or self.slo_class

    @property
    def gaps(self) -> int:
        """Gaps between the tokens of its longest sample."""
        return max(0, (self.longest_tokens or self.generated_tokens) - 1)

    @property
    def queue_ps(self) -> int | None:
        """Arrival to the first step that computes something of the request."""
        return None if self.first_scheduled_ps is None else self.first_scheduled_ps - self.arrival_ps

    @property
    def prefill_ps(self) -> int | None:
        """First scheduled to first token: the rest of the TTFT."""
        if self.first_token_ps is None or self.first_scheduled_ps is None:
            return None
        return self.first_token_ps - self.first_scheduled_ps

    @property
    def held_token_ps(self) -> float:
        """About how many tokens' KV it held for how long: token-picoseconds.

        As if its KV grew evenly, from what was found cached to the whole prompt until the first token, from there to
        the end of the output; and as if the time that it was preempted had been missing from its end.
        """
        if self.first_scheduled_ps is None:
            return 0.0
        token_ps = self.end_ps if self.first_token_ps is None else self.first_token_ps
        decode_ps = max(0, self.end_ps - token_ps - self.away_ps)
        prefill_ps = max(0, self.end_ps - self.first_scheduled_ps - self.away_ps - decode_ps)
        written = max(0, self.generated_tokens - self.samples)
        prompt = (min(self.hit_tokens, self.prompt_tokens) + self.prompt_tokens) * prefill_ps
        return (prompt + (2 * self.prompt_tokens + written) * decode_ps) / 2

    @property
    def ttft_ps(self) -> int | None:
        """Arrival to first output token, queueing included."""
        return None if self.first_token_ps is None else self.first_token_ps - self.arrival_ps

    @property
    def tpot_ps(self) -> float | None:
        """(E2E - TTFT) / (output - 1) of a finished request of two tokens or more; with samples, of the longest."""
        if self.end != "finished" or not self.gaps or self.first_token_ps is None:
            return None
        return (self.end_ps - self.first_token_ps) / self.gaps


class Event(NamedTuple):
    """One allocation that could not be met at once, or one request refused."""

    time_ps: int
    request: int
    cause: str
    outcome: str
    need_slots: int
    free_slots: int
    largest_hole_slots: int


class Loss(NamedTuple):
    """One preemption."""

    time_ps: int
    request: int
    tokens: int
    swapped_tokens: int = 0
    resumed_ps: int | None = None
    """When it ran again; None: it never did."""


def added(*layers: tuple[int, ...]) -> tuple[int, ...]:
    """Tokens by layer of sharing, of all together."""
    return tuple(map(sum, zip(*layers, strict=True)))
