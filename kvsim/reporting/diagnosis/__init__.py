"""A diagnosis for people: its verdict in sentences, its tables, its figure, and the folder that keeps them."""

from kvsim.reporting.diagnosis.folder import write_diagnosis
from kvsim.reporting.diagnosis.table import COLUMNS, cure_rows, pressure_rows
from kvsim.reporting.diagnosis.verdict import static_lines, verdict

__all__ = ["COLUMNS", "cure_rows", "pressure_rows", "static_lines", "verdict", "write_diagnosis"]
