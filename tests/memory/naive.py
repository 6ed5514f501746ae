"""What the naive models of the allocators have in common: they count, by looking at everything each time.

They share no code with `kvsim.memory`. A story is: `begin`, some `grow`, `granted`, `settle`, some `write`; between
steps `fork`, `retire`, `release`. What a model answers to `grow` is None, or (need, free, largest hole) that were
short.
"""

import pickle
from collections import Counter
from copy import deepcopy


class Naive:
    shares = False
    grows_in_leaps = False
    entry_bytes = 0
    evicted = 0
    stores_early = False
    """What somebody has asked for is found by others before it is written, so that they stay until the step is over."""
    steps_ahead = 0
    """Steps by which those that decode have their slots before they write."""

    def __init__(self, slots):
        self.slots = slots
        self.written = {}
        self.retired = set()
        self.work = Counter(allocations=0, frees=0, copies=0, evictions=0, mapped_pages=0, table_bytes=0)
        self.begin()

    def begin(self):
        """A new call: nothing has been copied, slid together or mapped by it."""
        self.copied, self.pages, self.compacted = 0, 0, []

    def copy(self):
        return deepcopy(self)

    def used(self):
        return sum(tokens for name, tokens in self.written.items() if name not in self.retired)

    def dead(self):
        return sum(self.written[name] for name in self.retired)

    def usage(self):
        """In the order of `PoolUse`."""
        free, used, dead, moving, rounding = self.free(), self.used(), self.dead(), self.moving(), self.rounding()
        cached = self.cached()
        return (
            used,
            self.slots - free - used - dead - moving - cached - rounding,
            dead,
            moving,
            cached,
            free,
            self.largest(),
            rounding,
        )

    def largest(self):
        return self.free()

    def moving(self):
        return 0

    def cached(self):
        return 0

    def kept(self):
        """Slots whose content may be found."""
        return 0

    def rounding(self):
        return 0

    def external(self, need):
        return 0

    def shared(self):
        return 0

    def alone(self, name):
        return True

    def table(self, entries):
        self.work["table_bytes"] = max(self.work["table_bytes"], entries * self.entry_bytes)

    def enter(self, name, written=0):
        self.written[name] = written

    def meet(self, sequence):
        """A sequence that will be looked up or admitted, as it is now."""

    def lookup(self, name):
        return 0

    def finds(self, name):
        """What a waiting one finds, in whatever words."""
        return self.lookup(name)

    def granted(self):
        """All that this call asked for can be had."""

    def begin_decode(self, name):
        """It decodes from now on."""

    def computed(self, name):
        """A chunk of it has just been written."""

    def settle(self):
        """Copies have arrived."""

    def write(self, name, tokens):
        self.written[name] += tokens

    def retire(self, name):
        self.retired.add(name)

    def release(self, name):
        self.retired.discard(name)
        del self.written[name]

    def preempt(self, name):
        self.release(name)


class NaiveCache(Naive):
    """It keeps contents, and is all data."""

    grows_in_leaps = True
    entry_bytes = 4

    def copy(self):
        return pickle.loads(pickle.dumps(self))


class NaiveNothing(Naive):
    """`no-cache`: nothing is kept."""

    def __init__(self):
        super().__init__(0)

    def used(self):
        return 0

    def dead(self):
        return 0

    def free(self):
        return 0

    def owned(self, name):
        return 0

    def grow(self, name, tokens, **admission):
        return None
