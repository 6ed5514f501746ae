"""Where the rows and the edges of a radix cache lie."""

from kvsim.engine.addresses.tree.layout import TreeLayout, TreeRows

__all__ = ["TreeLayout", "TreeRows"]
