"""The only room with a clock (SimPy)."""
