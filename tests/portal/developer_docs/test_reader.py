"""The examples in the documentation show signed-in readers only their own client id."""

import pytest
from django.conf import settings
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from payments.models import Merchant
from portal import keys
from portal.models import Role, User
from tests.portal import stage


def page(client: Client) -> str:
    return client.get("/api/docs").content.decode()


def signed_in(merchant: Merchant, role: Role = Role.OWNER) -> Client:
    return stage.browser(stage.person(merchant, role))


@pytest.mark.django_db
class TestReader:
    @pytest.mark.rule("docs.own_key")
    def test_sees_the_newest_live_key_of_their_merchant(self, acme: Merchant, rival: Merchant) -> None:
        first, newest = (keys.create_client(acme, name).client for name in ("Old", "Till <1>"))
        others = keys.create_client(rival, "Other").client
        client = signed_in(acme)
        shown = page(client)
        assert shown.count(newest.client_id) >= 3 and "Till &lt;1&gt;" in shown and "Acme Tickets" in shown
        assert (
            first.client_id not in shown
            and others.client_id not in shown
            and "&lt;CLIENT_ID&gt;" not in shown
        )
        keys.revoke(stage.person(acme, Role.ADMIN), newest.pk)
        assert first.client_id in page(client)

    @pytest.mark.rule("docs.own_key")
    def test_sees_a_link_to_the_keys_instead_of_the_secret(self, acme: Merchant) -> None:
        made = keys.create_client(acme, "Till")
        shown = page(signed_in(acme, Role.VIEWER))
        assert made.client_secret not in shown
        assert '<a href="/portal/keys">&lt;CLIENT_SECRET&gt;</a>' in shown

    @pytest.mark.rule("docs.own_key")
    def test_gets_a_page_that_is_not_cached(self, acme: Merchant) -> None:
        client = signed_in(acme)
        # The merchant has no key yet, so the page is the same as for all other readers.
        assert client.get("/api/docs")["Cache-Control"] == "public, max-age=300"
        keys.create_client(acme, "Till")
        own = client.get("/api/docs")
        assert own["Cache-Control"] == "private, no-store" and "Cookie" in own["Vary"]

    def test_costs_few_statements_and_none_without_a_login(
        self, acme: Merchant, django_assert_max_num_queries: DjangoAssertNumQueries
    ) -> None:
        keys.create_client(acme, "Till")
        client = signed_in(acme)
        client.get("/api/docs")
        with django_assert_max_num_queries(5):
            assert client.get("/api/docs").status_code == 200
        with django_assert_max_num_queries(0):
            assert Client().get("/api/docs").status_code == 200

    def test_without_a_login_or_a_merchant_sees_no_key(self, acme: Merchant) -> None:
        known = keys.create_client(acme, "Till").client
        outsider = Client()
        outsider.force_login(
            User.objects.create_user("nobody@example.com"), backend=settings.AUTHENTICATION_BACKENDS[0]
        )
        forged = Client()
        forged.cookies["sessionid"] = "x" * 32
        for client in (Client(), outsider, forged):
            answer = client.get("/api/docs")
            assert (
                known.client_id not in answer.content.decode()
                and "&lt;CLIENT_ID&gt;" in answer.content.decode()
            )
            assert answer["Cache-Control"] == "public, max-age=300" and "Cookie" in answer["Vary"]
