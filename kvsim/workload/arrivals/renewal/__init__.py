"""Arrivals with independent gaps of one law: one file a law, by its mean rate and its coefficient of variation."""
