"""Naive `radix`: pages by number, a list of them for each request, and a dictionary that says where each prefix lies.

What is locked is what some list goes through; what may go is what `NaivePrefixes` says.
"""

from tests.memory.naive import NaiveCache
from tests.memory.radix.naive_tree import NaivePrefixes


class NaiveRadix(NaiveCache):
    def __init__(self, slots, size):
        self.size = size
        self.unowned = list(range(slots // size))
        self.rows = {}
        """Pages of each request, in order."""
        self.guarded = {}
        """The prefix, in the tree, that each protects."""
        self.asked_for = {}
        """Tokens that each has asked slots for."""
        self.known = {}
        """(runs, known tokens, prompt tokens, tokens that it brings along) of each."""
        self.decoding = set()
        self.tree = NaivePrefixes(size)
        self.where = {}
        """The page that holds the last page of each prefix in the tree."""
        super().__init__(slots // size * size)

    def held(self):
        return {page for row in self.rows.values() for page in row}

    def free(self):
        return len(self.unowned) * self.size

    def cached(self):
        return self.size * len(set(self.where.values()) - self.held())

    def kept(self):
        return self.size * len(self.where)

    def slots_written(self, names):
        return {(self.rows[n][i // self.size], i % self.size) for n in names for i in range(self.written[n])}

    def used(self):
        return len(self.slots_written(self.written.keys() - self.retired))

    def dead(self):
        return len(self.slots_written(self.written)) - self.used()

    def owned(self, name):
        return self.size * len(self.rows.get(name, []))

    def shared(self):
        return self.size * (sum(map(len, self.rows.values())) - len(self.held()))

    def meet(self, sequence):
        # A request of no content is made of tokens that only it has.
        runs = sequence.content.runs if sequence.content else [(-1 - 2 * sequence.id, 0, 10**9)]
        self.known[sequence.id] = [*map(tuple, runs)], sequence.tokens, sequence.prompt_tokens, sequence.written

    def whole_pages(self, name, count):
        """The whole pages of its first `count` tokens."""
        tokens = []
        for stream, offset, length in self.known[name][0]:
            tokens += [(stream, offset + number) for number in range(min(length, count - len(tokens)))]
        return tuple(tuple(tokens[i : i + self.size]) for i in range(0, count - self.size + 1, self.size))

    def findable(self, name):
        _, tokens, _, brought = self.known[name]
        key = self.whole_pages(name, tokens - 1)
        return () if brought else key[: self.tree.found(key)]

    def lookup(self, name):
        return self.size * len(self.findable(name))

    def begin(self):
        super().begin()
        self.before, self.to_take, self.wanted, self.evicted = len(self.held()), [], 0, 0

    def grow(self, name, tokens, admit=False, gate=0, **_):
        found = self.findable(name) if admit else ()
        has = len(found) if admit else len(self.rows[name])
        more = max(0, -(-tokens // self.size) - has)
        taken_over = sum(not self.tree.locks[found[:length]] for length in range(1, len(found) + 1))
        least = taken_over + max(more, -(-gate // self.size) - has)
        there = self.free() + self.size * sum(not holders for holders in self.tree.locks.values())
        if self.size * (least + sum(count for _, count in self.to_take)) > there:
            return self.size * least, there, there
        if admit:
            self.tree.match(self.whole_pages(name, self.known[name][1] - 1) if found else ())
            self.tree.hold(found, 1)
            self.guarded[name] = found
            self.rows[name] = [self.where[found[: number + 1]] for number in range(len(found))]
        start = self.size * len(found) if admit else self.asked_for[name]
        if name in self.decoding:
            self.wanted += self.size
        else:
            self.wanted += max(0, tokens - start) + (self.size if self.size > 1 else 0)
            self.asked_for[name] = max(start, tokens)
        self.to_take.append((name, more))
        return None

    def granted(self):
        while self.free() < self.wanted and (pages := self.tree.evict_one()):
            self.evicted += pages
            self.unowned += [self.where.pop(gone) for gone in self.where.keys() - self.tree.locks.keys()]
        for name, count in self.to_take:
            self.rows[name] += [self.unowned.pop() for _ in range(count)]
        self.work["evictions"] += self.evicted
        self.work["allocations"] += len(self.held()) - self.before
        self.table(self.size * sum(map(len, self.rows.values())))

    def begin_decode(self, name):
        self.decoding.add(name)

    def computed(self, name):
        """A chunk of it is written: its whole pages are the tree's."""
        before = len(self.held())
        self.hand_over(name)
        self.work["frees"] += before - len(self.held())

    def hand_over(self, name):
        key, row, prompt = self.whole_pages(name, self.written[name]), self.rows[name], self.known[name][2] // self.size
        found = self.tree.insert(key)
        for number in range(len(key)):
            prefix = key[: number + 1]
            if number >= found:
                self.where[prefix] = row[number]
            elif row[number] != self.where[prefix]:
                self.unowned.append(row[number])
                row[number] = self.where[prefix]
        if 0 < prompt < len(key):
            self.tree.insert(key[:prompt])
        self.tree.hold(self.guarded[name], -1)
        self.tree.hold(key, 1)
        self.guarded[name] = key

    def release(self, name, keep=True):
        before = len(self.held())
        if keep:
            self.hand_over(name)
        super().release(name)
        guarded = self.guarded.pop(name)
        self.unowned += self.rows.pop(name)[len(guarded) :]
        self.tree.hold(guarded, -1)
        self.decoding.discard(name)
        self.work["frees"] += before - len(self.held())

    def preempt(self, name):
        self.release(name, keep=False)
