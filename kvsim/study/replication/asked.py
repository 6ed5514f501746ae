"""What is asked of a study, checked before anything runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kvsim.errors import InputError
from kvsim.scenario.messages import alternatives
from kvsim.scenario.resolve import Scenario
from kvsim.study.statistics.intervals import LEVEL
from kvsim.study.statistics.sequential import LEAST, MOST

Method = Literal["replications", "batches", "sessions"]
"""What intervals are from: runs on seeds of their own, arrival windows of one run, or the sessions of one trace."""


@dataclass(frozen=True)
class Asked:
    """How often, how exactly and against what. `InputError` from `check` says what does not go together.

    `replications` of each variant; with `until_ci` (a share, 0.05 for 5 %) as many more as it takes, `most` in all.
    `batches` cuts one run instead. `baseline` is a variant's name (None: the first). `mser` finds the warm-up.
    """

    replications: int = 1
    until_ci: float | None = None
    batches: int | None = None
    baseline: str | None = None
    mser: bool = False
    most: int = MOST
    level: float = LEVEL

    @property
    def intervals(self) -> bool:
        """More is asked for than one run of each variant."""
        return self.replications > 1 or self.until_ci is not None or self.batches is not None

    @property
    def first_replications(self) -> int:
        """How many runs there are before anybody looks whether they are enough."""
        least = 1 if self.until_ci is None else min(LEAST, self.most)
        return max(self.replications, least)

    def method(self, variants: Sequence[tuple[str, Scenario]]) -> Method:
        """What the intervals of these variants are from."""
        if self.batches is not None:
            return "batches"
        return "sessions" if variants[0][1].trace is not None else "replications"

    def shares_out(self, variants: Sequence[tuple[str, Scenario]]) -> bool:
        """There are more runs than the first one of each variant."""
        return self.mser or (self.intervals and self.method(variants) == "replications")

    def check(self, variants: Sequence[tuple[str, Scenario]]) -> str:
        """Return the name of the baseline; InputError where these variants cannot be studied like this."""
        names = [name for name, _ in variants]
        if self.replications < 1:
            raise InputError(f"--replications {self.replications}: must be at least 1")
        if self.until_ci is not None and not 0 < self.until_ci < 1:
            raise InputError(f"--until-ci {self.until_ci:g}: must be a share above 0 and below 1, for example 5%")
        if self.batches is not None and self.batches < 2:
            raise InputError(f"--batches {self.batches}: must be at least 2")
        if self.batches is not None and (self.replications > 1 or self.until_ci is not None):
            raise InputError(
                "--batches: cuts one run instead of repeating it; leave out --replications and --until-ci, or it"
            )
        if self.baseline is not None and self.baseline not in names:
            raise InputError(f"--baseline {self.baseline}: is no variant here; choose {alternatives(names)}")
        if self.baseline is not None and not self.intervals:
            raise InputError(
                "--baseline: differences need intervals, and one run of each variant has none; "
                "add --replications 10 or --batches 20"
            )
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"{twice}: names two variants; give each a name of its own")
        if self.intervals and self.batches is None:
            self._check_traces(variants)
        return self.baseline or names[0]

    def _check_traces(self, variants: Sequence[tuple[str, Scenario]]) -> None:
        traces = {scenario.trace for _, scenario in variants}
        if traces == {None}:
            return
        if len(traces) > 1:
            shown = alternatives(sorted("generated traffic" if trace is None else trace for trace in traces))
            raise InputError(
                f"workload.trace: variants differ ({shown}), so that no differences are paired; compare variants on "
                "one traffic"
            )
        if self.until_ci is not None:
            [trace] = traces
            raise InputError(
                f"--until-ci: {trace} is one realisation, and more runs of it are the same run again; leave it out: "
                "with --replications its sessions are bootstrapped"
            )
