import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.code_exchange import exchanges, live_functions

CODE = """
from functools import cached_property

LIMIT = 1

class Numbers:
    @cached_property
    def total(self):
        return sum(number + 5 for number in range(2))

def adder(number):
    def add(other):
        return number + other
    return add

add_five = adder(5)
"""


@pytest.fixture
def module(tmp_path: Path) -> Any:
    path = tmp_path / "numbers_for_test.py"
    path.write_text(CODE)
    specification = importlib.util.spec_from_file_location("numbers_for_test", path)
    assert specification is not None
    assert specification.loader is not None
    loaded = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(loaded)
    return loaded


def change(module: Any, old: str, new: str) -> int:
    """Install the changed code in a module; return how many functions it changes."""
    changes = exchanges(live_functions({module.__file__}), module.__file__, CODE, CODE.replace(old, new))
    for function, code in changes:
        function.__code__ = code
    return len(changes)


def test_function_in_a_decorator_gets_the_changed_code(module: Any) -> None:
    change(module, "number + 5", "number - 5")
    assert module.Numbers().total == -9


def test_function_that_another_function_has_returned_gets_the_changed_code(module: Any) -> None:
    change(module, "number + other", "number - other")
    assert module.add_five(1) == 4
    assert module.adder(6)(1) == 5


def test_changed_constant_of_a_module_changes_no_function(module: Any) -> None:
    assert change(module, "LIMIT = 1", "LIMIT = 2") == 0
