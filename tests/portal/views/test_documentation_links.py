"""The portal's links to the documentation all lead to sections that exist."""

import pytest
from django.test import Client

from payments.models import Merchant
from portal.models import Role
from tests.portal import stage
from tests.portal.developer_docs.test_page import Page

pytestmark = pytest.mark.django_db
DOCS = "/api/docs"
PROMISED = {
    "/portal/menu": {DOCS},
    "/portal/keys": {f"{DOCS}#authentication"},
    "/portal/webhooks": {f"{DOCS}#receiving-events", f"{DOCS}#signatures"},
}


client = stage.client_of(Role.OWNER)


@pytest.mark.parametrize("address", PROMISED)
def test_each_page_links_to_its_section_of_the_documentation(
    acme: Merchant, client: Client, address: str
) -> None:
    stage.saved(acme)
    links = {link for link in Page(client.get(address).content.decode()).addresses if link.startswith(DOCS)}
    assert PROMISED[address] <= links
    anchors = set(Page(client.get(DOCS).content.decode()).anchors)
    for link in links:
        _, _, anchor = link.partition("#")
        assert client.get(link.partition("#")[0]).status_code == 200, link
        assert not anchor or anchor in anchors, link
