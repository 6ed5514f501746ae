"""`kvsim trace`: what a trace holds, what it is like, and what to make of it."""
