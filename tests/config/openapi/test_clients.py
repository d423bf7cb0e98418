"""Client code generated from the API's document has no numbered names, and is not too long."""

from pathlib import Path

import pytest

from tests.config import described
from tests.journeys.generated import making

MAX_LINES = 630  # lines for each operation of the API, including all models


@pytest.mark.rule("api.clients")
def test_generated_clients_have_no_numbered_names_and_few_lines(tmp_path: Path) -> None:
    package = making.of_document(described.document(), tmp_path)
    assert making.numbered(package) == []
    operations = list(package.glob("api/*/[!_]*.py"))
    assert 20 < making.lines(package) / MAX_LINES <= len(operations)
