import json
from collections.abc import Callable
from uuid import uuid4

import pytest
from playwright.sync_api import Page

from config.lib.web import origins
from tests.browser.accounts.owner import Owner
from tests.browser.test_gallery import SHOTS
from tests.journeys.service import Service


@pytest.fixture(
    params=[
        pytest.param(((375, "light"),), id="on a phone"),
        pytest.param(SHOTS, id="at every size", marks=pytest.mark.long),
    ]
)
def owner(service: Service, open_page: Callable[..., Page], request: pytest.FixtureRequest) -> Owner:
    email = f"owner-{uuid4().hex}@acme.example"
    made = json.loads(service.command("create_merchant", "Acme Tickets", "--email", email, "--json"))
    return Owner(
        open_page(), origins.with_localhost(service.base_url), email, made["portal_password"], request.param
    )
