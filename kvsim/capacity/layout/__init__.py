"""How an engine lays KV out in blocks: groups of layers, block sizes, what a request takes."""
