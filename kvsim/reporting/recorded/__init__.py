"""What `kvsim compare-run` shows and writes: a table, a figure, and both sides request by request."""
