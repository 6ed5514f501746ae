"""What `kvsim capacity` draws and writes: a plan's two figures, and the report of a checked table."""

from kvsim.reporting.capacity.check import summary_lines, write_check
from kvsim.reporting.capacity.figures import write_plan

__all__ = ["summary_lines", "write_check", "write_plan"]
