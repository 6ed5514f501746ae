"""Figures of the KV memory of runs: whose it is, where it lies, what of it is wasted."""
