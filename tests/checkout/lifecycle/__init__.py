"""Failures of the machine are explained as those of a test."""

import pytest

pytest.register_assert_rewrite(
    *(f"tests.checkout.lifecycle.{name}" for name in ("machine", "observed", "money"))
)
