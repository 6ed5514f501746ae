"""Verbs that make many runs, and what they share: where these go, and how far they are."""
