"""The share of their remaining output that running requests are expected to need: admission's estimate."""

from kvsim.scheduling.sglang.request import Request
from kvsim.scheduling.sglang.settings import Rules


class NewTokenRatio:
    """Falls step by step while decodes fit, and starts anew when the engine is idle or had to retract."""

    def __init__(self, rules: Rules, conservativeness: float) -> None:
        self._rules = rules
        self._initial = min(rules.initial_ratio * conservativeness, 1.0)
        self._least = min(self._initial * rules.least_ratio_share, 1.0)
        self._decay = (self._initial - self._least) / rules.ratio_decay_steps
        self.value = self._initial

    def decay(self) -> None:
        """One decode step fitted. Mutates."""
        self.value = max(self.value - self._decay, self._least)

    def reset(self) -> None:
        """Nothing is left to do. Mutates."""
        self.value = self._initial

    def after_retraction(self, kept: list[Request]) -> None:
        """What the requests kept have generated, and a little ahead, of all that they may. Mutates."""
        ahead = self._rules.retract_ahead_tokens * len(kept)
        generated = sum(request.outputs for request in kept)
        self.value = min(1.0, (generated + ahead) / (sum(request.max_new for request in kept) + 1))
