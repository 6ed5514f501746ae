"""Prompts for tests: ways down from the root of a tree, so that equal blocks stand behind equal prefixes."""

from hypothesis import strategies as st


def way(turns):
    """The blocks of one prompt: a number for each node on a way down a binary tree."""
    node, blocks = 1, []
    for turn in turns:
        node = 2 * node + turn
        blocks.append(node)
    return blocks


def prompts(most=30, longest=6):
    """Lists of prompts that share prefixes, some of them empty."""
    return st.lists(st.lists(st.integers(0, 1), max_size=longest).map(way), max_size=most)
