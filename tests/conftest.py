"""For all tests: hypothesis without deadlines (machines differ), and a count of the oracle tests at the end.

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


def pytest_terminal_summary(terminalreporter):
    """Say how many tests compared kvsim with a truth that nobody here wrote."""
    stats = terminalreporter.stats
    ran = sum(_oracles(stats.get(outcome, ())) for outcome in ("passed", "failed", "xfailed", "xpassed"))
    skipped = _oracles(stats.get("skipped", ()))
    if ran or skipped:
        terminalreporter.write_line(f"oracle tests: {ran} ran, {skipped} skipped")


def _oracles(reports):
    return sum("oracle" in report.keywords for report in reports)
