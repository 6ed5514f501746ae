"""Settings for all tests: hypothesis without deadlines (machines differ) and without a database in the checkout."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "kvsim",
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("kvsim")
