"""Schemathesis generates calls from the API's document. The service must answer each call as the document says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.journeys.merchant import Merchant

pytestmark = [pytest.mark.journey, pytest.mark.long]
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "missing_required_header",
    "unsupported_method",
)


@pytest.mark.rule("api.document", "api.error")
def test_service_answers_generated_calls_as_documented(subscribed: Merchant, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("schemathesis")), "run", f"{subscribed.base_url}/api/schema",
            "--header", f"Authorization: {subscribed.headers['Authorization']}",
            "--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing", "--max-examples", "10",
            "--generation-deterministic", "--continue-on-failure",
            "--rate-limit", "40/s", "--no-color",
        ],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-30000:]}\n{done.stderr[-2000:]}"
    generated = re.search(r"(\d+) generated", done.stdout)
    assert generated and int(generated[1]) > 1000
