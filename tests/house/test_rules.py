"""`make rules` finds unknown rules, and rules without a test."""

from pathlib import Path

import pytest

from tests.house import rules

CONTRACT = "# Rules\n\n- `pay.once`: A card is held once.\n- `pay.told`: The payer is told.\n"
CODE = '"""Paying.\n\nRULES pay.once,\npay.told.\n"""\n'
TESTS = """
import pytest

pytestmark = [pytest.mark.rule("pay.told")]

@pytest.mark.rule("pay.once", "pay.told")
class TestPay:
    @pytest.mark.rule("pay.once")
    def test_once(self): ...
"""


def write(root: Path, path: str, text: str) -> None:
    """Write a file. RULE and OUTSIDE in `text` are replaced by the words that they represent.

    The tests do not contain these words, because `make rules` would take them for references.
    """
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(
        text.replace("RULE", "Rule").replace("RuleS", "Rules").replace("OUTSIDE", "SP" + "EC")
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, "docs/contract.md", CONTRACT)
    write(tmp_path, "checkout/paying.py", CODE)
    write(tmp_path, "tests/test_pay.py", TESTS)
    return tmp_path


def test_each_rule_has_its_places(project: Path) -> None:
    found = rules.read(project)
    assert found.problems == []
    once, told = found.rules["pay.once"], found.rules["pay.told"]
    assert once.code == told.code == ["checkout/paying.py"]
    assert once.tests == ["tests/test_pay.py::TestPay", "tests/test_pay.py::TestPay::test_once"]
    assert told.tests == ["tests/test_pay.py", "tests/test_pay.py::TestPay"]


def test_docs_and_shared_test_modules_do_not_count_as_code(project: Path) -> None:
    write(project, "docs/pay.md", "RULES pay.*, and RULE `pay.once` again")
    write(project, "tests/model.py", '"""The states (RULE pay.once)."""\n')
    once = rules.read(project).rules["pay.once"]
    assert (once.code, once.beside) == (["checkout/paying.py"], ["tests/model.py", "docs/pay.md"])


def test_a_topic_with_a_star_names_all_its_rules(project: Path) -> None:
    write(project, "templates/pay.html", "{# RULES pay.* #}")
    assert [rule.code[-1] for rule in rules.read(project).rules.values()] == ["templates/pay.html"] * 2


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        ("docs/contract.md", f"{CONTRACT}- `pay.once`: Again.\n", "has the RULE pay.once twice"),
        ("docs/contract.md", f"{CONTRACT}- `pay.late`: It ends.\n", "No test shows the RULE pay.late."),
        ("docs/contract.md", f"{CONTRACT}- pay.late: It ends.\n", "says no rule in “- pay.late: It ends.”"),
        ("payments/bank.py", "# RULE pay.twice\n", "payments/bank.py names pay.twice"),
        ("payments/bank.py", "# OUTSIDE 5.5", "refers to SP" + "EC 5"),
        ("static/pay.css", "/* RULES pay.once and pay.twice */", "static/pay.css names pay.twice"),
        (
            "tests/test_more.py",
            '@pytest.mark.rule("pay.twice")\ndef test_it(): ...',
            "test_it names pay.twice",
        ),
        ("tests/test_more.py", '@pytest.mark.rule("pay.*")\ndef test_it(): ...', "test_it names pay.*"),
    ],
)
def test_each_inconsistency_is_reported(project: Path, path: str, text: str, problem: str) -> None:
    write(project, path, text)
    told = rules.read(project).problems
    assert len(told) == 1 and problem.replace("RULE", "rule") in told[0], told
