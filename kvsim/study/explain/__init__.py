"""One request's KV life cycle, worked out on a model small enough to check by hand, and its size on a real one."""
