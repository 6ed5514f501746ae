"""Naive `prefix`: block tables as lists over the lists of `NaivePool`, each block known by every token up to its end.

What lies in a slot is written down token by token, so that nothing counts as used before somebody has computed it.
"""

from collections import Counter

from tests.memory.naive import NaiveCache
from tests.memory.prefix.naive_pool import NaivePool


class NaivePrefix(NaiveCache):
    stores_early = True

    def __init__(self, slots, size, watermark=0.0, unknown_first=True, ahead=0):
        self.size, self.steps_ahead = size, ahead
        blocks = slots // size
        self.spare = int(watermark * (blocks + 1))  # of all blocks, the null block beside the pool included
        self.pool = NaivePool(blocks, unknown_first)
        self.tables = {}
        self.stored = Counter()
        """Blocks at the start of each table whose content is known."""
        self.filled = set()
        """(block, place in it) of every slot that holds what its block says."""
        self.known = {}
        """(runs, known tokens, tokens that it brings along) of each."""
        self.decoding = set()
        super().__init__(blocks * size)

    # What is there.

    def held(self):
        return {block for table in self.tables.values() for block in table}

    def free(self):
        """Slots of blocks that hold nothing known."""
        return self.size * sum(block not in self.pool.keys for block in self.pool.queue)

    def largest(self):
        return self.free()

    def cached(self):
        return self.size * len(self.pool.queue) - self.free()

    def used(self):
        held = self.held()
        return sum(block in held for block, _ in self.filled)

    def dead(self):
        return 0

    def owned(self, name):
        return self.size * len(self.tables.get(name, []))

    def shared(self):
        return self.size * (sum(map(len, self.tables.values())) - len(self.held()))

    # What can be found.

    def meet(self, sequence):
        # A request of no content is made of tokens that only it has.
        runs = sequence.content.runs if sequence.content else [(-1 - 2 * sequence.id, 0, 10**9)]
        self.known[sequence.id] = [*map(tuple, runs)], sequence.tokens, sequence.written

    def content(self, name, number):
        """All tokens up to the end of block `number`, spelled out."""
        tokens, count = [], (number + 1) * self.size
        for stream, offset, length in self.known[name][0]:
            tokens += [f"{stream}.{offset + place}" for place in range(min(length, count - len(tokens)))]
        return " ".join(tokens)

    def found(self, name):
        _, tokens, brought = self.known[name]
        blocks = []
        for number in range(0 if brought else (tokens - 1) // self.size):
            block = self.pool.find(self.content(name, number))
            if block is None:
                break
            blocks.append(block)
        return blocks

    def lookup(self, name):
        return self.size * len(self.found(name))

    def finds(self, name):
        """What it finds, and what of it nobody holds."""
        return [(block, block in self.pool.queue) for block in self.found(name)]

    # A call: what was there when it began is found by all, and is theirs before anybody takes a block.

    def begin(self):
        super().begin()
        self.plans = []
        self.revived = set()
        """Blocks that nobody holds and somebody has found."""

    def grow(self, name, tokens, admit=False, gate=0, alone=False, **_):
        if admit:
            has = self.found(name)
            known = self.known[name][1]
        else:
            has = self.tables[name]
            known = tokens if name in self.decoding else self.known[name][1]
        scheduled = min(tokens, known)
        tokens += self.steps_ahead if name in self.decoding else 0
        revived = {block for block in has if block in self.pool.queue} - self.revived
        more = max(0, -(-tokens // self.size) - len(has))
        least = more
        if admit:
            least = max(more, -(-gate // self.size) - len(has)) + (0 if alone else self.spare)
        there = len(self.pool.queue) - len(self.revived) - sum(count for _, _, count, _ in self.plans)
        if least + len(revived) > there:
            free = self.size * len(self.pool.queue)
            return self.size * (least + len(revived)), free, free
        self.revived |= revived
        self.plans.append((name, has if admit else [], more, scheduled))
        return None

    def granted(self):
        self.work["allocations"] += len(self.revived) + sum(count for _, _, count, _ in self.plans)
        for name, found, _, _ in self.plans:
            for block in found:
                self.pool.hit(block)
            self.tables[name] = self.tables.get(name, []) + found
            self.stored[name] += len(found)
        for name, _, count, scheduled in self.plans:
            taken = self.pool.take(count)
            self.filled -= {slot for slot in self.filled if slot[0] in taken}
            self.tables[name] += taken
            while self.stored[name] < scheduled // self.size:
                number = self.stored[name]
                self.pool.store(self.tables[name][number], self.content(name, number))
                self.stored[name] += 1
        self.plans, self.revived = [], set()
        self.work["evictions"] = self.pool.evicted
        self.table(sum(map(len, self.tables.values())))

    # What comes after.

    def write(self, name, tokens):
        for place in range(self.written[name], self.written[name] + tokens):
            self.filled.add((self.tables[name][place // self.size], place % self.size))
        super().write(name, tokens)

    def begin_decode(self, name):
        self.decoding.add(name)

    def release(self, name):
        super().release(name)
        before = len(self.pool.queue)
        self.pool.free(self.tables.pop(name)[::-1])
        self.filled -= {slot for slot in self.filled if slot[0] in self.pool.queue and slot[0] not in self.pool.keys}
        self.work["frees"] += len(self.pool.queue) - before
        self.decoding.discard(name)
        del self.stored[name], self.known[name]
