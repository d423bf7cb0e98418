"""Failures of the machine are explained as those of a test."""

import pytest

pytest.register_assert_rewrite("tests.checkout.lifecycle.machine", "tests.checkout.lifecycle.observed")
