"""`.env.example` and the settings table in docs/operate.md are generated from the table of variables."""

import re

import pytest

from config.variables.table import OTHERS, TABLE
from tests.house import variables_page

pytestmark = pytest.mark.rule("environment.variables")
PAGE = variables_page.PAGE.read_text()


def test_the_files_are_those_of_the_table() -> None:
    assert variables_page.written(PAGE) == PAGE, "run `make variables`"
    assert variables_page.example_file() == variables_page.EXAMPLE.read_text(), "run `make variables`"


def test_the_example_names_only_known_variables() -> None:
    names = re.findall(r"^([A-Z_]+)=", variables_page.EXAMPLE.read_text(), re.MULTILINE)
    assert len(names) == len(set(names)) and set(names) <= set(TABLE) | OTHERS


def test_no_example_holds_a_secret() -> None:
    for name, described in TABLE.items():
        if described.is_secret and described.example:
            assert ".example" in described.example, name
