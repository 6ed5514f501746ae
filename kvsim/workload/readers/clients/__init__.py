"""Formats that describe the clients behind a workload, not its requests."""
