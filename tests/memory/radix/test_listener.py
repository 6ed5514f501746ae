"""Whoever hears what a tree tells knows which pages it has on the device, whatever is done to it."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.memory.radix.host import WRITE_POLICIES, TieredRadixTree
from kvsim.memory.radix.pool import SlotPool
from kvsim.memory.radix.tree import RadixTree
from kvsim.metrics.prefix import KvEventLog, Residency
from tests.memory.radix.naive_tree import content_of
from tests.memory.radix.test_tree import runs
from tests.naive_residency import heard, spelled

SLOTS = 60


class Ears:
    """Hands everything to both records, at times that go up by one with each call."""

    def __init__(self, page_size):
        self.now_ps = 0
        self.residency, self.events = Residency(), KvEventLog(page_size)

    def tick(self):
        self.now_ps += 1
        return self.now_ps

    def stored(self, pieces, before, content, start, tokens):
        now = self.tick()
        self.residency.stored(now, pieces, tokens)
        self.events.stored(now, pieces, before, content, start, tokens)

    def removed(self, pieces, tokens, *, for_good=False):
        now = self.tick()
        self.residency.removed(now, pieces, tokens, for_good=for_good)
        self.events.removed(now, pieces)

    def cut(self, piece, upper, tokens):
        self.residency.cut(piece, upper)
        self.events.cut(piece, upper, tokens)


def pages_on_device(tree):
    """Each page with all before it."""
    found = Counter()
    for node in tree.nodes():
        if node.on_device:
            tokens = sum((spelled(above.content.runs) for above in reversed(node.path())), ())
            size = tree.pool.page_size
            found.update(tokens[:end] for end in range(len(tokens) - node.tokens + size, len(tokens) + 1, size))
    return found


@settings(max_examples=150)
@given(st.integers(1, 3), st.sampled_from([None, *WRITE_POLICIES]), st.lists(st.tuples(st.sampled_from("iimle"), runs)))
def test_a_router_knows_the_pages_on_the_device(page_size, policy, actions):
    pool, host = SlotPool(SLOTS, page_size=page_size), SlotPool(30, page_size=page_size)
    tree = TieredRadixTree(pool, host, write_policy=policy, load_back_tokens=1) if policy else RadixTree(pool)
    tree.listener = ears = Ears(page_size)
    for action, key in actions:
        content = content_of(key)
        slots = pool.floor(content.tokens)
        if action == "m":
            tree.match(content)
        elif action == "l" and policy:
            tree.load_back(tree.match(content))
        elif action in "el":
            tree.evict(slots)
        else:
            tree.make_room(slots)
            pool.take(slots)
            tree.insert(content)
        assert heard(ears.events).contents == pages_on_device(tree)
    tree.evict(SLOTS)
    assert heard(ears.events).contents == Counter()
    # Every token that ever came has gone, and all of them within the time that passed.
    stored = sum(len(e["block_hashes"]) for b in ears.events for e in b["events"] if e["type"] == "BlockStored")
    assert ears.residency.lifetime.count == stored * page_size
    assert 0 <= ears.residency.idle.max_ps <= ears.residency.lifetime.max_ps <= ears.now_ps
