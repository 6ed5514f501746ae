"""Counts everything that a tree keeps account of again, from its nodes."""


def audit(tree):
    nodes = list(tree.nodes())
    size = tree.pool.page_size
    for node in [tree.root, *nodes]:
        for page, child in node.children.items():
            assert child.parent is node
            assert page == child.content.part(0, size)
            assert node.on_device or not child.on_device
            assert node is tree.root or node.locks >= child.locks
        assert node.resident == sum(child.on_device for child in node.children.values())
    assert all(node.tokens and node.tokens % size == 0 and (node.on_device or node.on_host) for node in nodes)
    assert tree.evictable_tokens == sum(node.tokens for node in nodes if node.on_device and not node.locks)
    assert tree.protected_tokens == sum(node.tokens for node in nodes if node.on_device and node.locks)
    assert tree.leaves == {node for node in nodes if node.on_device and not node.locks and not node.resident}
    assert len({node.stamp for node in nodes}) == len(nodes)


def audit_host(tree):
    nodes = list(tree.nodes())
    assert tree.host.slots - tree.host.free == sum(node.tokens for node in nodes if node.on_host)
    alone = {node for node in nodes if node.on_host and not node.on_device}
    assert tree.host_leaves == {node for node in alone if not node.locks and not node.children}
