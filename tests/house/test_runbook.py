"""The runbook has a topic for each anchor that a discrepancy kind names, and shows the texts of each kind."""

import pytest

from payments.discrepancies import kinds
from tests.house import runbook

TEXT = runbook.PAGE.read_text()


@pytest.mark.rule("money.discrepancy_kinds")
def test_the_tables_are_those_of_the_kinds() -> None:
    assert runbook.written(TEXT) == TEXT, "run `make runbook`"


@pytest.mark.rule("money.discrepancy_kinds")
def test_each_kind_has_a_topic_and_each_topic_a_kind() -> None:
    assert set(runbook.topics(TEXT)) == {kind.runbook for kind in kinds.TABLE.values()} | {kinds.EARLIER}


def test_each_anchor_is_of_one_heading() -> None:
    anchors = [runbook.anchor(line.lstrip("#")) for line in TEXT.splitlines() if line.startswith("#")]
    assert [name for name in runbook.topics(TEXT) if anchors.count(name) != 1] == []


def test_writes_the_table_of_a_topic_that_has_none_yet() -> None:
    bare = f"{runbook.CHAPTER}\n### Budgets of texts\n\nWords.\n\n## Remedies\n"
    text = runbook.written(bare)
    assert runbook.written(text) == text
    for kind in (kinds.SMS_BUDGET_OF_MERCHANT, kinds.SMS_BUDGET_OF_ALL):
        assert f"| `{kind.name}` | {kind.sentence} | {kind.what_to_do} | {kind.remedy} |\n" in text
