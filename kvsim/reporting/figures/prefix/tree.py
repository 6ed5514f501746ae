"""The tree of the prefixes that prompts share: every node a stretch of tokens that the same requests have."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Place = tuple[int, int]
"""A token: its stream, and where it stands in it."""


@dataclass
class Node:
    """So many tokens, one behind the other, with which the prompts of so many requests go on."""

    tokens: int
    requests: int
    children: "dict[Place, Node]" = field(default_factory=dict)
    """What comes next, by its first token."""


def tree_of(prompts: Mapping[str, Sequence[Any]]) -> Node:
    """The tree of a table of prompts; its root has no tokens, and all requests.

    Two prompts go together exactly as far as their runs agree. O(runs) but for the cutting of nodes.
    """
    root, node, last = Node(0, 0), Node(0, 0), None
    rows = (prompts[name] for name in ("request", "stream", "offset", "tokens"))
    for request, stream, offset, tokens in zip(*rows, strict=True):
        if request != last:
            last, node = request, root
            root.requests += 1
        while tokens:
            child = node.children.get((stream, offset))
            if child is None:
                child = node.children[stream, offset] = Node(int(tokens), 0)
                taken = int(tokens)
            else:
                taken = min(int(tokens), child.tokens)
                if taken < child.tokens:
                    # Those who came before go on behind the cut.
                    rest = Node(child.tokens - taken, child.requests, child.children)
                    child.tokens, child.children = taken, {(stream, offset + taken): rest}
            child.requests += 1
            node, offset, tokens = child, offset + taken, tokens - taken
    return root


def walk(root: Node) -> Iterator[tuple[Node, int, int]]:
    """Every node below the root, with the requests left of it and the tokens above it.

    The children of a node stand side by side from its left edge on, those of most requests first, then those of most
    tokens; requests that end with a node stand at its right.
    """
    waiting = [(root, 0, 0)]
    while waiting:
        node, left, above = waiting.pop()
        if node is not root:
            yield node, left, above
        order = sorted(node.children.items(), key=lambda item: (-item[1].requests, -item[1].tokens, item[0]))
        for _, child in order:
            waiting.append((child, left, above + node.tokens))
            left += child.requests


def joined(root: Node) -> Node:
    """The same tree with stretches that the same requests have as one node. Mutates."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        while node is not root and len(node.children) == 1:
            [only] = node.children.values()
            if only.requests < node.requests:
                break
            node.tokens, node.children = node.tokens + only.tokens, only.children
        waiting += node.children.values()
    return root
