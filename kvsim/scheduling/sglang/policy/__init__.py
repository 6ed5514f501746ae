"""Whom a pass takes: the order in which the waiting are tried, who of them is admitted, and who is retracted."""
