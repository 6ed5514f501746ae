"""Weights as an engine loads them: bytes on each rank of each stage, quantised or not."""
