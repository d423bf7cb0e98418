"""Random walks through the life of an order. Their failures are explained like those of a test."""

import pytest

pytest.register_assert_rewrite(
    *(f"tests.checkout.lifecycle.{name}" for name in ("machine", "observed", "money"))
)
