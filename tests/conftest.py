"""For all tests: hypothesis without deadlines (machines differ), and a count of the oracle tests at the end."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "kvsim",
    deadline=None,
    database=None,
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
