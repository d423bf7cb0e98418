"""Hypothesis settings for all tests: no time limits, and no examples that are kept between runs.

On a busy machine, Hypothesis's time limits would make correct tests fail.
"""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "untimed", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("untimed")
