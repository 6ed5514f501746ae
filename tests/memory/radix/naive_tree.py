"""What a prefix cache holds, as a dictionary of prefixes: no tree, no runs, one entry a page, rules in their own words.

A prefix is a tuple of pages, a page a tuple of tokens. `ends` are the prefixes at which something once ended: what lies
between two of them goes, and is touched, together.
"""

from kvsim.content import Content, Run


def tokens_of(runs):
    return [(run.stream, run.offset + number) for run in runs for number in range(run.tokens)]


def content_of(runs):
    return Content(Run(*run) for run in runs)


class NaivePrefixes:
    def __init__(self, page_size):
        self.page_size = page_size
        self.locks = {}  # prefix -> how many hold it
        self.ends = {}  # prefix -> when it was touched
        self.now = 0

    def pages(self, runs):
        tokens = tokens_of(runs)
        whole = len(tokens) // self.page_size
        return tuple(tuple(tokens[i * self.page_size : (i + 1) * self.page_size]) for i in range(whole))

    def found(self, key):
        return max((n for n in range(len(key) + 1) if n == 0 or key[:n] in self.locks), default=0)

    def touch(self, prefix):
        self.now += 1
        self.ends[prefix] = self.now

    def end_beyond(self, prefix):
        """The end of the piece that `prefix` lies inside of."""
        return min((end for end in self.ends if len(end) > len(prefix) and end[: len(prefix)] == prefix), key=len)

    def cut(self, prefix):
        if prefix and prefix not in self.ends:
            beyond = self.end_beyond(prefix)
            self.touch(prefix)
            self.touch(beyond)

    def match(self, key):
        n = self.found(key)
        self.cut(key[:n])
        for end in sorted((end for end in self.ends if key[:n][: len(end)] == end), key=len):
            self.touch(end)
        return n

    def insert(self, key):
        n = self.found(key)
        for end in sorted((end for end in self.ends if key[:n][: len(end)] == end), key=len):
            self.touch(end)
        self.cut(key[:n])
        for length in range(n + 1, len(key) + 1):
            self.locks[key[:length]] = 0
        if n < len(key):
            self.touch(key)
        return n

    def hold(self, prefix, by):
        for length in range(1, len(prefix) + 1):
            self.locks[prefix[:length]] += by

    def evict_one(self):
        """Drop the piece, nothing beyond it, nobody holding it, that was not touched for longest; its pages."""
        free = [
            end
            for end in self.ends
            if not self.locks[end] and not any(other != end and other[: len(end)] == end for other in self.locks)
        ]
        if not free:
            return 0
        end = min(free, key=self.ends.__getitem__)
        start = max(
            (len(other) for other in self.ends if len(other) < len(end) and end[: len(other)] == other), default=0
        )
        for length in range(start + 1, len(end) + 1):
            del self.locks[end[:length]]
        del self.ends[end]
        return len(end) - start

    @property
    def evictable(self):
        return self.page_size * sum(not holders for holders in self.locks.values())

    @property
    def protected(self):
        return self.page_size * sum(holders > 0 for holders in self.locks.values())
