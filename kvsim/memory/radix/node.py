"""One node of the tree: the edge that leads to it, and what the tree remembers about it."""

from kvsim.content import Content, Run

Page = tuple[Run, ...]
"""The first page of an edge: what tells the children of a node apart."""


class Node:
    """An edge of `tokens` tokens below `parent`, with a slot for each on the device, in host memory, or both."""

    __slots__ = (
        "children",
        "content",
        "created",
        "hits",
        "locks",
        "on_device",
        "on_host",
        "parent",
        "priority",
        "resident",
        "stamp",
    )

    parent: "Node"

    def __init__(self, content: Content, *, priority: int, now: int) -> None:
        self.content = content
        self.children: dict[Page, Node] = {}
        self.locks = 0
        """Holders of this node or of one below it; a locked node is not evicted."""
        self.hits = 0
        """Requests that brought its content, each counted once."""
        self.priority = priority
        """The highest that any of them had."""
        self.created = now
        """Reading of the tree's clock when its content came in; a split passes it on."""
        self.stamp = now
        """Reading of the tree's clock when it was last touched: no two nodes share one."""
        self.on_device = True
        self.on_host = False
        self.resident = 0
        """Children that are on the device."""

    @property
    def tokens(self) -> int:
        """Length of the edge."""
        return self.content.tokens

    def path(self) -> list["Node"]:
        """This node and all above it, without the root: deepest first."""
        found, node = [], self
        while hasattr(node, "parent"):
            found.append(node)
            node = node.parent
        return found
