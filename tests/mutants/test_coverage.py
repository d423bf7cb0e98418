import ast
import textwrap
from pathlib import Path

import pytest

from tests.mutants.coverage import Coverage, executed_lines, statement_at

CODE = """\
    LIMIT = 1
    def f(number):
        if (number and
                LIMIT):
            return [
                number]
        else:
            try:
                return 1
            except ValueError:
                return 2
    """


@pytest.mark.parametrize(
    ("line", "statement"),
    [(1, []), (2, []), (3, [3, 4]), (4, [3, 4]), (6, [5, 6]), (9, [9]), (11, [11])],
)
def test_statement_has_its_own_lines_without_the_statements_in_it(line: int, statement: list[int]) -> None:
    assert list(statement_at(ast.parse(textwrap.dedent(CODE)), line)) == statement


def test_tests_of_a_statement_are_those_that_execute_it_most_kills_first(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(textwrap.dedent(CODE))
    coverage = Coverage(module, [])
    coverage.runs = {"slow": (2.0, [3, 6]), "other": (0.0, [3, 9]), "fast": (1.0, [5]), "killer": (3.0, [5])}
    assert coverage.tests_of(6, {"killer": 1}) == ["killer", "fast", "slow"]


def test_stored_runs_are_loaded_until_a_file_changes(tmp_path: Path) -> None:
    module, test = tmp_path / "module.py", tmp_path / "test_module.py"
    module.write_text("LIMIT = 1")
    test.write_text("")
    first = Coverage(module, [test])
    first.runs = {"a": (1.0, [1])}
    first.store(tmp_path)
    assert Coverage(module, [test]).load(tmp_path)
    test.write_text("changed")
    assert not Coverage(module, [test]).load(tmp_path)


def test_lines_are_recorded_only_within_the_context() -> None:
    with executed_lines({statement_at.__code__.co_filename}) as lines:
        statement_at(ast.parse("1"), 1)
    recorded = set(lines)
    statement_at(ast.parse(textwrap.dedent(CODE)), 3)
    assert recorded
    assert lines == recorded
