"""A pool of blocks as plain lists: the rules of vLLM's free queue and map, said as shortly as they can be."""


class NaivePool:
    """`queue` lists the free blocks, next one first; `map` keeps the order of storing."""

    def __init__(self, blocks, unknown_first):
        self.references = dict.fromkeys(range(1, blocks + 1), 0)
        self.keys = {}
        self.map = []
        self.queue = list(self.references)
        self.unknown_first = unknown_first
        self.evicted = 0

    def take(self, count):
        taken, self.queue = self.queue[:count], self.queue[count:]
        for block in taken:
            self.references[block] = 1
            if block in self.keys:
                self.map.remove((self.keys.pop(block), block))
                self.evicted += 1
        return taken

    def find(self, key):
        return next((block for stored, block in self.map if stored == key), None)

    def hit(self, block):
        if block in self.queue:
            self.queue.remove(block)
        self.references[block] += 1

    def store(self, block, key):
        self.keys[block] = key
        self.map.append((key, block))

    def free(self, blocks):
        gone = []
        for block in blocks:
            self.references[block] -= 1
            if not self.references[block]:
                gone.append(block)
        if self.unknown_first:
            unknown = [block for block in gone if block not in self.keys]
            self.queue = unknown + self.queue + [block for block in gone if block in self.keys]
        else:
            self.queue += gone
