"""The links on the front page. The link to the demo shop exists only on a developer's machine."""

import pytest
from django.test import Client
from pytest_django.fixtures import Settings


@pytest.mark.rule("docs.front")
class TestFront:
    def test_links_to_portal_and_documentation(self) -> None:
        answer = Client().get("/")
        page = answer.content.decode()
        assert answer.status_code == 200
        assert 'href="/portal"' in page and 'href="/api/docs"' in page
        assert "Open the link your shop gave you" in page

    def test_links_to_the_shop_if_there_is_one(self, settings: Settings) -> None:
        assert "Demo shop" not in Client().get("/").content.decode()
        settings.SHOP_PORT = 8001
        assert 'href="http://127.0.0.1:8001/"' in Client().get("/").content.decode()

    def test_says_how_a_shop_gets_an_account_and_no_operators_login(self, settings: Settings) -> None:
        settings.OPERATORS, settings.SUPPORT_EMAIL = ["olga@pay.example"], "support@pay.example"
        assert 'href="mailto:support@pay.example"' in Client().get("/").content.decode()
        settings.SUPPORT_EMAIL = "olga@pay.example"
        page = Client().get("/").content.decode()
        assert "no account yet" not in page and "olga" not in page

    def test_refuses_a_post(self) -> None:
        assert Client().post("/").status_code == 405
