"""Prompts in every N-th step only, while requests decode (rule 20 of vLLM's scheduler)."""

from collections.abc import Iterable

from kvsim.scheduling.vllm.batch import Followed


class PrefillCadence:
    """Holds prompts back until `interval` steps have passed since the last that computed some (1: never).

    A step that was free to admit and left somebody waiting shows that the engine is full: nothing is held then.
    """

    def __init__(self, interval: int) -> None:
        self._interval = interval
        self._executed_steps = 0
        self._last_prefill_step = -interval
        self._full = False

    def holds(self, running: Iterable[Followed]) -> bool:
        """Whether the next step computes no prompts."""
        return (
            self._interval > 1
            and not self._full
            and self._executed_steps + 1 - self._last_prefill_step < self._interval
            and any(not request.prefilling for request in running)
        )

    def released(self, waiting: Iterable[Followed]) -> None:
        """A step that held nothing back has admitted whom it could; these still wait. Mutates."""
        if self._interval > 1:
            self._full = any(not request.set_aside for request in waiting)

    def scheduled(self, *, tokens: bool, prefill: bool) -> None:
        """A step was scheduled, with anything to compute or not, with parts of prompts or not. Mutates."""
        self._executed_steps += tokens
        if prefill:
            self._last_prefill_step = self._executed_steps

    def leapt(self, steps: int) -> None:
        """So many steps were scheduled without any part of a prompt. Mutates."""
        self._executed_steps += steps
