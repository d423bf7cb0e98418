"""Log lines in the human-readable format."""

import logging
from enum import Enum, StrEnum

import pytest
import structlog

from config import logs


class Answer(StrEnum):
    YES = "succeeded"


class Kind(Enum):
    A = 1


@pytest.mark.parametrize("in_words", [True, False])
def test_a_log_line_contains_the_value_of_an_enumeration(in_words: bool) -> None:
    given = logs._formatter_settings(in_words)
    formatter = structlog.stdlib.ProcessorFormatter(processors=given["processors"])
    record = logging.LogRecord("provider", logging.INFO, "", 0, "", None, None)
    # structlog passes a log line to the formatter in this form.
    record.msg = {"event": "provider", "verdict": Answer.YES, "kind": Kind.A}
    record._logger, record._name = logging.getLogger(), "info"
    words = formatter.format(record)
    assert "succeeded" in words and "Answer" not in words and "Kind" not in words
