"""The settings of hypothesis for all tests: no time limits, and no examples kept between runs.

On a busy machine, the time limit of an example, or that of finding one, would fail a test that is right.
"""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "untimed", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("untimed")
