import os
import subprocess
import sys

import pytest

from tests.config.starting import PRODUCTION

pytestmark = pytest.mark.django_db


@pytest.mark.rule("sandbox.absent")
def test_the_helpers_do_not_exist_in_production() -> None:
    script = (
        "import django; django.setup()\n"
        "from django.test import Client\n"
        "client = Client(headers={'host': 'checkout.example'})\n"
        "helpers = ['/api/sandbox/v1/checkouts/x/' + verb for verb in ('pay', 'decide-dispute')]\n"
        "paths = [*helpers, '/bank/card/019f8b6e-0000-7000-8000-000000000000']\n"
        "print([client.post(path, secure=True).status_code for path in paths])\n"
    )
    environment = {**os.environ, **PRODUCTION, "DJANGO_SETTINGS_MODULE": "config.settings"}
    ended = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == "[404, 404, 404]"
