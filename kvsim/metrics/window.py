"""The measured window: what is added up between the end of the warm-up and the last arrival."""

from collections.abc import Sequence

from kvsim.step import CLASSES, PoolUse

N_CLASSES = len(CLASSES)


class Totals:
    """Exact sums over a stretch of time: Python integers, slots x picoseconds and requests x picoseconds."""

    __slots__ = (
        "duplicate_ps",
        "free_waiting_ps",
        "host_peak",
        "host_ps",
        "max_running",
        "peaks",
        "requests_ps",
        "rounding_ps",
        "running_ps",
        "scattered_ps",
        "shared_ps",
        "slots_ps",
        "stay_ps",
        "time_ps",
        "tokens",
        "unusable_ps",
    )

    def __init__(self) -> None:
        self.time_ps = 0
        self.slots_ps = [0] * N_CLASSES
        """Integral of each class, in the order of `step.CLASSES`."""
        self.peaks = [0] * N_CLASSES
        self.running_ps = 0
        """Integral of the sequences that run."""
        self.requests_ps = 0
        """Integral of the requests of which at least one sequence runs."""
        self.shared_ps = 0
        """Integral of the slots that sharing saves."""
        self.duplicate_ps = 0
        """Integral of the slots that sharing would have saved."""
        self.host_ps = 0
        """Integral of the slots taken in host memory."""
        self.host_peak = 0
        self.rounding_ps = 0
        """Integral of what is taken beyond what was asked; part of `external`, and not free."""
        self.scattered_ps = 0
        """Integral of the free slots outside the largest hole."""
        self.unusable_ps = 0
        """While requests wait: integral of the free slots that lie in holes too small for the head of the queue."""
        self.free_waiting_ps = 0
        """While requests wait: integral of all free slots that lie in holes."""
        self.stay_ps = 0
        """Integral of the requests in the system."""
        self.max_running = 0
        self.tokens = 0
        """Output tokens emitted."""

    def tally(self, time_ps: int, running: int, requests: int, tokens: int) -> None:
        """Some time with so many sequences, of so many requests, running and so many tokens emitted."""
        self.time_ps += time_ps
        self.requests_ps += requests * time_ps
        self.running_ps += running * time_ps
        self.tokens += tokens
        if running > self.max_running:
            self.max_running = running

    def reach(self, levels: tuple[int, ...]) -> None:
        """The classes have come to these levels, in the order of `step.CLASSES`."""
        peaks = self.peaks
        for index, level in enumerate(levels):
            if level > peaks[index]:
                peaks[index] = level

    def beside(self, time_ps: int, shared: int, duplicate: int, host: int) -> None:
        """Some time in which so many slots were saved by sharing, kept twice, and taken in host memory."""
        if shared:
            self.shared_ps += shared * time_ps
        if duplicate:
            self.duplicate_ps += duplicate * time_ps
        if host:
            self.host_ps += host * time_ps
            self.host_peak = max(self.host_peak, host)

    def in_holes(self, time_ps: int, use: PoolUse, external: int, waiting: bool) -> None:
        """Some time in which the free slots lay in holes, `external` of all slots lost to their shape."""
        self.rounding_ps += use.rounding * time_ps
        self.scattered_ps += (use.free - use.largest_hole) * time_ps
        if waiting:
            self.unusable_ps += (external - use.rounding) * time_ps
            self.free_waiting_ps += use.free * time_ps

    @classmethod
    def joined(cls, several: Sequence["Totals"]) -> "Totals":
        """The sums over pools side by side, all over the same time. Peaks are sums of maxima."""
        whole = several[0].copy()
        for one in several[1:]:
            if one.time_ps != whole.time_ps:
                raise ValueError(f"totals over {one.time_ps} ps and over {whole.time_ps} ps are not of the same time")
            for name in cls.__slots__:
                if name not in ("time_ps", "slots_ps", "peaks"):
                    setattr(whole, name, getattr(whole, name) + getattr(one, name))
            whole.slots_ps = [mine + its for mine, its in zip(whole.slots_ps, one.slots_ps, strict=True)]
            whole.peaks = [mine + its for mine, its in zip(whole.peaks, one.peaks, strict=True)]
        return whole

    def copy(self) -> "Totals":
        """A frozen state of the sums."""
        twin = Totals()
        for name in self.__slots__:
            setattr(twin, name, getattr(self, name))
        twin.slots_ps, twin.peaks = self.slots_ps.copy(), self.peaks.copy()
        return twin


class Occupancy:
    """How many requests are in the system, from arrivals and ends alone: one side of Little's law.

    The other side, the sum of the requests' stays, comes from the request records, which this never sees.
    """

    __slots__ = ("_since_ps", "count", "stay_ps")

    def __init__(self) -> None:
        self.count = 0
        self.stay_ps = 0
        """Integral of `count` over time up to the last change or reading."""
        self._since_ps = 0

    def reading(self, now_ps: int) -> int:
        """The integral up to `now_ps`."""
        self.stay_ps += self.count * (now_ps - self._since_ps)
        self._since_ps = now_ps
        return self.stay_ps

    def arrive(self, now_ps: int) -> None:
        """One more request is in the system."""
        self.reading(now_ps)
        self.count += 1

    def leave(self, now_ps: int) -> None:
        """One request has ended."""
        self.reading(now_ps)
        self.count -= 1
