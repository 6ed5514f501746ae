"""Naive `virtual`: physical pages by number; each request's page tables are lists of them, one a tensor."""

from tests.memory.naive import Naive

TENSORS = 6
"""Three layers, K and V."""


class NaivePages(Naive):
    entry_bytes = 4  # an entry a row, as one tensor's table has it

    def __init__(self, slots, page_tokens, ahead):
        super().__init__(slots // page_tokens * page_tokens)
        self.page_tokens, self.ahead = page_tokens, ahead
        self.grows_in_leaps = ahead
        self.unmapped = list(range(slots // page_tokens * TENSORS))
        self.tables = {}

    def rows(self, tokens):
        return len(range(0, tokens, self.page_tokens))

    def mapped(self, name):
        lengths = {len(pages) for pages in self.tables.get(name, [[]])}
        assert len(lengths) == 1  # every tensor of a request reaches as far as the others
        return lengths.pop()

    def free(self):
        return len(self.unmapped) // TENSORS * self.page_tokens

    def owned(self, name):
        return self.mapped(name) * self.page_tokens

    def grow(self, name, tokens, admit=False, gate=0, **_):
        rows = max(0, self.rows(tokens) - self.mapped(name))
        least = max(rows, self.rows(gate)) if admit else rows
        if least * TENSORS > len(self.unmapped):
            return least * self.page_tokens, self.free(), self.free()
        for table in self.tables.setdefault(name, [[] for _ in range(TENSORS)]):
            for _ in range(rows):
                table.append(self.unmapped.pop())
        self.work["allocations"] += rows
        self.work["mapped_pages"] += rows * TENSORS
        self.pages += 0 if self.ahead else rows * TENSORS
        self.table(sum(map(self.mapped, self.tables)))
        return None

    def release(self, name):
        super().release(name)
        self.work["frees"] += self.mapped(name)
        for table in self.tables.pop(name):
            self.unmapped += table
