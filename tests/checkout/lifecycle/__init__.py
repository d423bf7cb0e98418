"""Random tests: sequences of actions on an order, with checks of the order's money after each action."""

import pytest

pytest.register_assert_rewrite(
    *(f"tests.checkout.lifecycle.{name}" for name in ("machine", "observed", "money", "unit_rules"))
)
