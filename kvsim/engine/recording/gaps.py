"""Inter-token latency: every gap between two tokens of a sequence, counted without looking at one that decodes.

A sequence that decodes emits a token at the end of each decode step, so the gap is the step, for all of them at once.
It is longer for those that are late: they sampled while the others stood still, or came back from host memory; and for
all when steps in between only computed prompts.
"""

from kvsim.metrics.histogram import DurationHistogram
from kvsim.metrics.memory import Ramp
from kvsim.metrics.requests import Journey
from kvsim.request import Sequence


class TokenGaps:
    """The histogram of gaps of requests that arrived after the warm-up (`warmup_ps`)."""

    def __init__(self, *, warmup_ps: int = 0) -> None:
        self.histogram = DurationHistogram()
        self.counts = True
        """The step that is being recorded lies in the measured window."""
        self._warmup_ps = warmup_ps
        self._early: set[int] = set()
        """Decoding sequences of requests that arrived before the end of the warm-up; their gaps do not count."""
        self._late: dict[int, int] = {}
        """Decoding sequences whose last token did not come at the end of the last decode step: when it came."""
        self._stalled_since_ps: int | None = None
        """When the last decode step ended, if steps have passed since."""

    def sampled(self, now_ps: int, journey: Journey) -> None:
        """A token is out at the end of a prompt, or of what had to be computed again; from now on it decodes."""
        self._joins(journey)
        if journey.first_token_ps is not None and self.counts and journey.sequence.id not in self._early:
            self.histogram.add(now_ps - journey.last_token_ps)
        if self._stalled_since_ps is not None:
            self._late[journey.sequence.id] = now_ps

    def _joins(self, journey: Journey) -> None:
        if journey.request.arrival_ps < self._warmup_ps:
            self._early.add(journey.sequence.id)

    def resumed(self, journey: Journey) -> None:
        """It decodes again, in the step that begins now."""
        self._joins(journey)
        self._late[journey.sequence.id] = journey.last_token_ps

    def paused(self, now_ps: int, journey: Journey) -> None:
        """It decodes no more for now; notes when its last token came."""
        number = journey.sequence.id
        since = now_ps if self._stalled_since_ps is None else self._stalled_since_ps
        journey.last_token_ps = self._late.get(number, since)

    def came_late(self, now_ps: int, journey: Journey) -> None:
        """A token that was in flight when it was preempted is out."""
        early = journey.request.arrival_ps < self._warmup_ps
        if journey.first_token_ps is not None and self.counts and not early:
            self.histogram.add(now_ps - journey.last_token_ps)
        journey.last_token_ps = now_ps

    def left(self, sequence: Sequence) -> None:
        """It is gone."""
        self._early.discard(sequence.id)
        self._late.pop(sequence.id, None)

    def stalled(self, start_ps: int) -> None:
        """A step that began at `start_ps` has computed prompts only."""
        if self._stalled_since_ps is None:
            self._stalled_since_ps = start_ps

    def stepped(self, start_ps: int, now_ps: int, decodes: int) -> None:
        """A step is over in which so many sequences decoded."""
        since = start_ps if self._stalled_since_ps is None else self._stalled_since_ps
        self._stalled_since_ps = None
        if not self._late:
            if self.counts:
                self.histogram.add(now_ps - since, decodes - len(self._early))
            return
        if self.counts:
            punctual = decodes - len(self._early) - sum(number not in self._early for number in self._late)
            self.histogram.add(now_ps - since, punctual)
            for number, last_ps in self._late.items():
                if number not in self._early:
                    self.histogram.add(now_ps - last_ps)
        self._late.clear()

    def leapt(self, start_ps: int, ramp: Ramp, steps: int, decodes: int) -> None:
        """`steps` decode steps are over."""
        if self._late or self._stalled_since_ps is not None:
            self.stepped(start_ps, start_ps + ramp.first_ps, decodes)
            ramp, steps = ramp.after(1), steps - 1
        if self.counts and steps:
            self.histogram.add_ramp(ramp.first_ps, ramp.rise_ps, steps, decodes - len(self._early), ramp.bend_ps)
