"""The tables of a run: kept in memory, dropped, or written to files piece by piece while it goes on."""

from kvsim.metrics.tables.fleet import FleetTables
from kvsim.metrics.tables.interface import Dropped, NoTables, Pieces
from kvsim.metrics.tables.kept import Tables
from kvsim.metrics.tables.parquet import FileTables, ParquetPieces, left_over, slices

__all__ = [
    "Dropped",
    "FileTables",
    "FleetTables",
    "NoTables",
    "ParquetPieces",
    "Pieces",
    "Tables",
    "left_over",
    "slices",
]
