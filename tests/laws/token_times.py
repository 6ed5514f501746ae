"""The time of each token of each sequence, noted one by one: what the gaps in the engine's histogram are judged by."""

from collections import defaultdict

from kvsim.engine.recording import Recording


class TokenTimes(Recording):
    """A recording of a stepwise run that looks at every live sequence after every step."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.times = defaultdict(list)
        """By sequence id: (time of the token, it counts in the window)."""
        self.early = set()
        """Sequences whose request came before the end of the warm-up."""
        self._warmup_ps = options.get("warmup_ps", 0)
        self._saturated = options.get("window") == "saturated"
        self._counts = True

    def stepped(self, start_ps, now_ps, clock, use, beside, batch, plan, live):
        self._counts = batch.waiting > 0 or not self._saturated
        for journey in live.values():
            if journey.sequence.decoding and not plan.stalled:
                self._note(now_ps, journey)
        super().stepped(start_ps, now_ps, clock, use, beside, batch, plan, live)

    def sampled(self, now_ps, journey):
        self._note(now_ps, journey)
        super().sampled(now_ps, journey)

    def _note(self, now_ps, journey):
        self.times[journey.sequence.id].append((now_ps, self._counts))
        if journey.request.arrival_ps < self._warmup_ps:
            self.early.add(journey.sequence.id)

    def measured_gaps(self):
        """Every gap between two tokens of one sequence, where the later one counts, sorted."""
        return sorted(
            after - before
            for number, times in self.times.items()
            if number not in self.early
            for (before, _), (after, counts) in zip(times, times[1:], strict=False)
            if counts
        )
