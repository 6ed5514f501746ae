"""What a sweep shows: a table, figures chosen by the shape of its points, JSON, a folder."""

from kvsim.reporting.sweep.folder import write_sweep
from kvsim.reporting.sweep.measures import check_measures
from kvsim.reporting.sweep.summary import sweep_summary

__all__ = ["check_measures", "sweep_summary", "write_sweep"]
