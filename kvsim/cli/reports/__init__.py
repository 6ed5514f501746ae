"""Verbs that show: reports and pages, one request explained, a run diagnosed, exports for other tools."""
