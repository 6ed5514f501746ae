"""How much is tried: in full where examples are others each time, on a third of it where they are always the same.

Laws overlap: what a case breaks, several of them tell. `make test-all` (KVSIM_EXPLORE) tries all of them in full.
"""

import os


def examples(most):
    """Examples of a law that is tried on `most` in full."""
    return most if "KVSIM_EXPLORE" in os.environ else max(1, most // 3)
