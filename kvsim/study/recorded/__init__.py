"""A recorded run of a real server beside its simulation: `kvsim compare-run`."""
