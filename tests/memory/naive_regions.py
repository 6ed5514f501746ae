"""Naive regions: a letter for every slot, and everything found by looking at all of them.

The books know nothing of holes, snapshots or heaps. They are made by the rules as they are documented.
"""

from itertools import groupby

from tests.memory.naive import Naive

POWERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class NaiveRegions(Naive):
    """`places` says where each region lies: name -> (start, room, slots asked). A name is a request's or `copy n`."""

    entry_bytes = 16

    def __init__(self, slots, sizes, fit="first", unit=1, in_place=True, parts=1, compaction=False):
        super().__init__(slots)
        self.sizes, self.fit, self.unit = sizes, fit, unit
        self.in_place, self.parts, self.compaction = in_place, parts, compaction
        self.places, self.copying = {}, {}
        self.rover = self.copies = 0

    # Where things lie.

    def room(self, slots):
        if self.fit == "buddy":
            return next(power for power in POWERS if power >= slots)
        return next(room for room in range(0, slots + self.unit, self.unit) if room >= slots)

    def cells(self):
        cells = [None] * self.slots
        for name, (start, room, _) in self.places.items():
            assert cells[start : start + room] == [None] * room, "two owners"
            cells[start : start + room] = [name] * room
        return cells

    def holes(self):
        if self.fit == "buddy":
            return self.blocks()
        holes, at = [], 0
        for owner, run in groupby(self.cells()):
            length = len(list(run))
            holes += [(at, length)] if owner is None else []
            at += length
        return holes

    def blocks(self):
        """The free blocks of a pool that is the greedy sum of powers of two."""
        cells, pieces, free, start = self.cells(), [], [], 0
        while start < self.slots:
            length = max(power for power in POWERS if start + power <= self.slots)
            pieces.append((start, length))
            start += length
        while pieces:
            start, length = pieces.pop()
            owners = set(cells[start : start + length])
            if owners == {None}:
                free.append((start, length))
            elif None in owners:
                pieces += [(start, length // 2), (start + length // 2, length // 2)]
        return sorted(free)

    def free(self):
        return self.cells().count(None)

    def largest(self):
        return max((length for _, length in self.holes()), default=0)

    def moving(self):
        return sum(self.copying.values())

    def rounding(self):
        return sum(room - slots for _, room, slots in self.places.values())

    def external(self, need):
        limit = min(self.room(need), self.free())
        return self.rounding() + sum(length for _, length in self.holes() if length < limit)

    def place(self, slots):
        """Where a region of `slots` goes; None if nowhere."""
        room = self.room(slots)
        fitting = [hole for hole in self.holes() if hole[1] >= room]
        if not fitting:
            return None
        if self.fit in ("best", "buddy"):
            return min(fitting, key=lambda hole: (hole[1], hole[0]))[0]
        if self.fit == "worst":
            return min(fitting, key=lambda hole: (-hole[1], hole[0]))[0]
        if self.fit == "next":
            return next((hole for hole in fitting if hole[0] + hole[1] > self.rover), fitting[0])[0]
        return fitting[0][0]

    def take(self, name, slots):
        start = self.place(slots)
        if start is None:
            return False
        self.places[name] = (start, self.room(slots), slots)
        self.rover = start + self.room(slots)
        return True

    def owned(self, name):
        return self.places[name][2] if name in self.places else 0

    # What can be done.

    def grow(self, name, tokens, admit=False, reach=0, **_):
        """`reach`: all tokens known or declared at admission."""
        if tokens <= self.owned(name):
            return None
        slots = self.sizes(reach if admit else tokens)
        short = self.try_to(name, slots)
        if short and self.compaction and short[0] <= short[1]:
            self.compact(name)
            self.compacted.append((name, short))
            short = self.try_to(name, slots)
        self.table(sum(isinstance(name, int) for name in self.places))
        return short

    def try_to(self, name, slots):
        mine = self.places.get(name)
        if mine is None:
            if not self.take(name, slots):
                return self.room(slots), self.free(), self.largest()
            self.work["allocations"] += 1
            return None
        if self.parts > 1:
            return self.concatenate(name, slots, self.written[name])
        start, room, _ = mine
        if self.in_place and self.could_be(name, start, self.room(slots), room):
            self.places[name] = (start, self.room(slots), slots)
            return None
        if not self.take("new", slots):
            return (self.room(slots), self.free(), self.largest())
        self.copies += 1
        self.places[f"copy {self.copies}"] = mine
        self.copying[f"copy {self.copies}"] = self.written[name]
        self.places[name] = self.places.pop("new")
        self.copied += self.written[name]
        self.work.update(allocations=1, frees=1, copies=1)
        return None

    def could_be(self, name, start, larger, room):
        """Whether a region may reach from its start over `larger` slots."""
        if larger == room:
            return True
        behind = self.cells()[start + room : start + larger]
        if len(behind) < larger - room or set(behind) != {None}:
            return False
        if self.fit != "buddy":
            return True
        # Aligned, and all in one of the blocks that make up the pool: the bits of its size say which there are.
        roots, at = [], 0
        while at < self.slots:
            length = max(power for power in POWERS if at + power <= self.slots)
            roots.append((at, at + length))
            at += length
        return start % larger == 0 and any(low <= start and start + larger <= high for low, high in roots)

    def concatenate(self, name, slots, written):
        part = -(-written // self.parts)
        larger = part > max(self.copying.values(), default=0)
        before = dict(self.places), self.rover
        del self.places[name]
        if larger:
            self.places.pop("copy", None)
        need = self.room(slots) + (self.room(part) if larger else 0)
        there = need, self.free(), self.largest()
        if self.take(name, slots) and (not larger or self.take("copy", part)):
            self.copied += written
            self.work.update(allocations=1, frees=1, copies=1)
            if larger:
                self.copying = {"copy": part}
            return None
        self.places, self.rover = before
        return there

    def compact(self, name):
        """Requests in the order of their addresses, then what is being copied away, then the one that must grow."""
        requests = [n for n in self.places if isinstance(n, int) and n != name]
        order = sorted(requests, key=self.places.get)
        order += sorted((n for n in self.places if isinstance(n, str)), key=self.places.get)
        order += [name] if name in self.places else []
        end = 0
        for one in order:
            start, room, slots = self.places[one]
            if isinstance(one, int) and start != end:
                written = self.written.get(one, 0)
                self.copied += written
                self.work["copies"] += written > 0
            self.places[one] = (end, room, slots)
            end += room
        self.rover = end

    def settle(self):
        for name in self.copying:
            del self.places[name]
        self.copying = {}

    def release(self, name):
        super().release(name)
        del self.places[name]
        self.work["frees"] += 1
