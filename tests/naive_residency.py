"""A record of a prefix cache by brute force: contents are spelled out token by token, and everything is looked through.

And a reader of KV events, as a router has one, that knows nothing of the cache but the lines.
"""

from collections import Counter


def spelled(runs):
    return tuple((stream, offset + place) for stream, offset, tokens in runs for place in range(tokens))


class NaiveResidency:
    """Listens to a cache beside the product's record; `now` tells the time. A content is all tokens from the start."""

    def __init__(self, now):
        self.now = now
        self.names = {}
        self.copies = Counter()
        self.touches = []
        """(time, content) in order."""
        self.first = {}
        self.reuses = Counter()
        self.gaps = Counter()
        self.idle = Counter()
        self.lifetimes = Counter()
        self.regret = {}
        self.ever = {()}
        self.found_tokens = 0

    def stored(self, pieces, before, content, start, tokens):
        behind = self.names[before] if before is not None else ()
        for piece in pieces:
            behind = self.names[piece] = behind + spelled(content.part(start, start + tokens))
            start += tokens
            if not self.copies[behind]:
                self.first[behind] = self.now()
            self.copies[behind] += 1
            self.ever.add(behind)
            self.touches.append((self.now(), behind, tokens))

    def removed(self, pieces, tokens, *, for_good=False):
        for piece in pieces:
            content = self.names[piece]
            self.copies[content] -= 1
            if not self.copies[content]:
                last = max(time for time, touched, _ in self.touches if touched == content)
                self.idle[self.now() - last] += tokens
                self.lifetimes[self.now() - self.first[content]] += tokens

    def forgotten(self, pieces):
        """It knows for ever."""

    def cut(self, piece, upper, tokens):
        raise AssertionError("blocks are never cut")

    def admitted(self, sequence, content, known, found, beyond):
        now, size = self.now(), found[0][1] if found else None
        for piece, tokens in found:
            name = self.names[piece]
            last = max(time for time, touched, _ in self.touches if touched == name)
            ends = {}
            for time, touched, length in self.touches:
                ends[touched] = time, length
            between = sum(length for time, length in ends.values() if last < time < now)
            self.reuses[between] += tokens
            self.gaps[now - last] += tokens
            self.found_tokens += tokens
        self.touches += [(now, self.names[piece], tokens) for piece, tokens in found]
        # What an endless cache would have found, a block at a time, all but the last token.
        prompt = spelled(content.part(0, known - 1))
        size = size or self.block_tokens
        endless = 0
        while endless + size <= len(prompt) and prompt[: endless + size] in self.ever:
            endless += size
        hit = sum(tokens for _, tokens in found)
        if endless > hit:
            self.regret[sequence] = endless - hit


class Router:
    """What a router knows after some batches of KV events: how many copies of which contents there are."""

    def __init__(self):
        self.tokens = {None: ()}
        self.copies = Counter()
        self.most_copies = 0
        """Of one content at any time."""

    def hear(self, batch):
        for event in batch["events"]:
            if event["type"] == "AllBlocksCleared":
                self.copies.clear()
            elif event["type"] == "BlockRemoved":
                for name in event["block_hashes"]:
                    assert self.copies[name] > 0
                    self.copies[name] -= 1
            else:
                assert event["token_ids"] == []
                size, behind = event["block_size"], self.tokens[event["parent_block_hash"]]
                tokens = spelled(event["runs"])
                assert len(tokens) == size * len(event["block_hashes"]) > 0
                for place, name in enumerate(event["block_hashes"]):
                    behind = behind + tokens[place * size : (place + 1) * size]
                    assert self.tokens.setdefault(name, behind) == behind, "one hash for two contents"
                    self.copies[name] += 1
                    self.most_copies = max(self.most_copies, self.copies[name])

    @property
    def contents(self):
        """Copies by content."""
        return Counter({self.tokens[name]: count for name, count in self.copies.items() if count})


def heard(batches):
    router = Router()
    for batch in batches:
        router.hear(batch)
    return router
