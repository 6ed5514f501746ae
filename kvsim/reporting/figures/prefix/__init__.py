"""Figures of prefixes: what a cache of which size finds, what prompts share."""
