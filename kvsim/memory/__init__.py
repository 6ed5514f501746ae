"""The KV cache itself, without a clock: one file per allocator, one seam (`interface.py`)."""
