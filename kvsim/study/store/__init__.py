"""The store of a study: a folder to which outcomes are added piece by piece, and that may be gone on with later."""

from kvsim.study.store.folder import PIECES, STUDY, TABLE, Outcome, Store
from kvsim.study.store.identity import Identity, digest, run_key
from kvsim.study.store.table import table_bytes

__all__ = ["PIECES", "STUDY", "TABLE", "Identity", "Outcome", "Store", "digest", "run_key", "table_bytes"]
