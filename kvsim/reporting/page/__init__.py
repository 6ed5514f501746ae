"""The page of a report: one file that shows runs and studies anywhere, without a network, and its Markdown twin."""

from kvsim.reporting.page.report import Written, write_report

__all__ = ["Written", "write_report"]
