"""For all tests: hypothesis without deadlines (machines differ), and a count of the oracle and browser tests
at the end.

The examples of a test are the same in every run, so that a change passes or fails for what it changes. With
KVSIM_EXPLORE set (`make test-all` sets it) they are others each time.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "kvsim",
    deadline=None,
    database=None,
    derandomize="KVSIM_EXPLORE" not in os.environ,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("kvsim")


TOLD = {"oracle": "oracle tests", "browser": "browser tests"}
"""Markers of tests that skip where something is missing, and so are counted at the end."""


def pytest_terminal_summary(terminalreporter):
    """Say how many tests compared kvsim with a truth that nobody here wrote, and how many opened a page."""
    stats = terminalreporter.stats
    for marker, name in TOLD.items():
        ran = sum(_marked(stats.get(outcome, ()), marker) for outcome in ("passed", "failed", "xfailed", "xpassed"))
        skipped = _marked(stats.get("skipped", ()), marker)
        if ran or skipped:
            terminalreporter.write_line(f"{name}: {ran} ran, {skipped} skipped")


def _marked(reports, marker):
    return sum(marker in report.keywords for report in reports)
