"""In what order the waiting are tried: SGLang's schedule policies, and what they do to the tree by looking."""

from collections.abc import Callable
from random import Random

from kvsim.memory.radix.interface import PrefixTree
from kvsim.memory.radix.node import Node
from kvsim.memory.radix.pool import SlotPool
from kvsim.memory.radix.tree import RadixTree
from kvsim.scheduling.sglang.request import Request
from kvsim.scheduling.sglang.rows import Rows
from kvsim.scheduling.sglang.settings import Rules

AWARE = ("lpm", "dfs-weight", "hrrn", "shortest-prefill-first")
"""Policies that look every waiting request up in the tree; without a tree they are `fcfs`."""

AGNOSTIC = ("fcfs", "lof", "random", "routing-key")
"""Policies that do not. `routing-key` goes by keys that requests do not carry here, and so changes nothing."""

_FALLS_BACK = ("lpm", "hrrn")
"""Policies too costly for a long queue."""


class Order:
    """Sorts the waiting by one policy."""

    def __init__(self, policy: str, rows: Rows, rules: Rules, *, touches: bool, seed: int = 0) -> None:
        """`touches`: leaves go by when they were last touched, so that touching those waited for protects them."""
        if policy not in AWARE + AGNOSTIC:
            raise ValueError(f"no schedule policy {policy!r}; there are {', '.join(AGNOSTIC + AWARE)}")
        self.policy = policy if rows.tree.shares or policy in AGNOSTIC else "fcfs"
        self._rows, self._rules = rows, rules
        self._touches = touches and rows.tree.shares
        self._passes = 0
        self._random = Random(seed)

    def sort(self, waiting: list[Request], processed: int) -> None:
        """Bring `waiting` into order; `processed`: prompt tokens run so far. Mutates it, and the tree by looking."""
        policy = self.policy
        if policy in _FALLS_BACK and len(waiting) > self._rules.matched_requests:
            policy = "fcfs"
        if policy in AWARE:
            last = self._look_up(waiting)
            if policy == "lpm":
                waiting.sort(key=lambda one: (one in last, 0 if one in last else -one.matched))
            elif policy == "dfs-weight":
                waiting[:] = _by_weight(waiting, self._rows.tree)
            elif policy == "hrrn":
                waiting.sort(key=lambda one: _response(one, processed, put_off=one in last))
            else:
                waiting.sort(key=lambda one: (one in last, _work(one), one.arrived))
            return
        if policy == "lof":
            waiting.sort(key=lambda one: -one.max_new)
        elif policy == "random":
            self._random.shuffle(waiting)
        if self._touches and waiting:
            self._touch(waiting)

    def chunk_limit(self, cut: Request, waiting: list[Request], budget: int) -> int | None:
        """Tokens that a prompt begun earlier may compute so that shorter ones fit beside it; None: any number."""
        pool = self._rows.pool
        if self.policy != "shortest-prefill-first" or budget < 2 * pool.page_size:
            return None
        reserved = 0
        for one in waiting:
            charge = pool.ceil(_work(one))
            if _work(one) >= cut.tokens - cut.prefix or reserved + charge > budget - pool.page_size:
                break
            reserved += charge
        return pool.floor(budget - reserved) if reserved else None

    def _touch(self, waiting: list[Request]) -> None:
        """Every so many passes, touch what those first in the queue would find: the very first last."""
        if self._passes % self._rules.touch_passes == 0:
            for one in reversed(waiting[: self._rules.matched_requests]):
                self._rows.tree.match(one.content)
        self._passes += 1

    def _look_up(self, waiting: list[Request]) -> set[Request]:
        """Match everybody; those who find little, but share a beginning with somebody before them, better wait."""
        queue = RadixTree(SlotPool(max(1, sum(one.tokens for one in waiting))))
        put_off = set()
        for one in waiting:
            self._rows.find(one)
            if one.prefix > self._rules.short_match_tokens:
                continue
            if queue.match(one.content).tokens >= self._rules.shared_wait_tokens:
                put_off.add(one)
            else:
                queue.pool.take(one.tokens)
                queue.insert(one.content)
        return put_off


def _work(one: Request) -> int:
    return max(1, one.tokens - one.matched)


def _response(one: Request, processed: int, *, put_off: bool) -> tuple[float, str]:
    """Highest response ratio next, aged by the tokens run since it came; of equals the name decides."""
    missing = max(0, one.prompt_tokens - one.matched)
    if put_off:
        return float("inf"), one.name
    if not missing:
        return -float("inf"), one.name
    return -max(0, processed - one.arrived_processed) / missing, one.name


def _by_weight(waiting: list[Request], tree: PrefixTree) -> list[Request]:
    """Depth first, where most of them wait below first; those that end at a node come after all below it."""
    ending: dict[Node, list[Request]] = {}
    for one in waiting:
        assert one.found is not None
        ending.setdefault(one.found, []).append(one)
    weights: dict[Node, int] = {}

    def weigh(node: Node) -> None:
        weights[node] = len(ending.get(node, ())) + sum(weights[child] for child in node.children.values())

    _visit(tree.root, weigh, lambda node: list(node.children.values()))
    ordered: list[Request] = []
    _visit(
        tree.root,
        lambda node: ordered.extend(ending.get(node, ())),
        lambda node: sorted(node.children.values(), key=lambda child: -weights[child]),
    )
    return ordered


def _visit(root: Node, visit: Callable[[Node], None], children: Callable[[Node], list[Node]]) -> None:
    """Call `visit` on every node, after all below it, in the order that `children` gives."""
    stack = [(root, False)]
    while stack:
        node, below_done = stack.pop()
        if below_done:
            visit(node)
        else:
            stack.append((node, True))
            stack += [(child, False) for child in reversed(children(node))]
