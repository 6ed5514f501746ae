"""Naive `paged`: blocks by number, a list of them for each request, and how many lists each block stands in."""

from tests.memory.naive import Naive


class NaiveBlocks(Naive):
    shares = True
    grows_in_leaps = True
    entry_bytes = 4

    def __init__(self, slots, size, watermark=0.0):
        super().__init__(slots // size * size)
        self.size = size
        self.spare = int(watermark * (slots // size + 1))  # of all blocks, the null block beside the pool included
        self.unowned = list(range(slots // size))
        self.tables = {}
        self.references = {}
        self.filled = {}
        """Written tokens in each block."""
        self.arriving = {}
        """Those that are being copied into it."""

    def blocks(self, tokens):
        return len(range(0, tokens, self.size))

    def free(self):
        return len(self.unowned) * self.size

    def used(self):
        return sum(self.filled.values()) - self.dead()

    def moving(self):
        return sum(self.arriving.values())

    def owned(self, name):
        return len(self.tables.get(name, [])) * self.size

    def shared(self):
        return sum(count - 1 for count in self.references.values()) * self.size

    def alone(self, name):
        return all(self.references[block] == 1 for block in self.tables[name])

    def grow(self, name, tokens, admit=False, gate=0, alone=False, **_):
        table = self.tables.get(name, [])
        more = max(0, self.blocks(tokens) - len(table))
        at = self.written.get(name, 0) // self.size
        copy = at < len(table) and self.references[table[at]] > 1
        need = more + copy
        least = max(need, self.blocks(gate)) + (0 if alone else self.spare) if admit else need
        if least > len(self.unowned):
            return least * self.size, self.free(), self.free()
        self.tables[name] = table = table + [self.take() for _ in range(more)]
        if copy:
            source, table[at] = table[at], self.take()
            self.references[source] -= 1
            self.arriving[table[at]] = self.filled[source]
            self.copied += self.filled[source]
            self.work["copies"] += 1
        self.table(sum(map(len, self.tables.values())))
        return None

    def take(self):
        block = self.unowned.pop()
        self.references[block], self.filled[block] = 1, 0
        self.work["allocations"] += 1
        return block

    def settle(self):
        self.filled |= self.arriving
        self.arriving = {}

    def write(self, name, tokens):
        for _ in range(tokens):
            block = self.tables[name][self.written[name] // self.size]
            self.filled[block] += 1
            self.written[name] += 1

    def enter(self, name, written=0):
        super().enter(name)
        self.write(name, written)

    def fork(self, parent, child):
        self.written[child] = self.written[parent]
        self.tables[child] = self.tables[parent].copy()
        for block in self.tables[child]:
            self.references[block] += 1
        self.table(sum(map(len, self.tables.values())))
        return self.written[child] // self.size * self.size

    def release(self, name):
        super().release(name)
        for block in self.tables.pop(name):
            self.references[block] -= 1
            if not self.references[block]:
                del self.references[block], self.filled[block]
                self.arriving.pop(block, None)
                self.unowned.append(block)
                self.work["frees"] += 1
