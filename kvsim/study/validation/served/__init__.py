"""Served runs: measured rows of whole engines, predicted in closed form from kernels and engine overheads."""
