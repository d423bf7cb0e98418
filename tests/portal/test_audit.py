"""The audit log: what is recorded, mailed and shown."""

import pytest
from django.core import mail
from django.db import IntegrityError, transaction
from django.test import Client

from payments.models import Merchant
from portal.mail import outbox
from portal.models import AuditEntry, OutboundEmail, Role
from tests.conftest import Api
from tests.portal import stage
from tests.portal.stage import save

pytestmark = pytest.mark.django_db
PATH = "webhooks/subscription"
ENDPOINT = {"url": "http://127.0.0.1:9/hooks", "event_types": ["*"]}


@pytest.fixture
def calls(api: Api) -> Api:
    stage.person(api.merchant, Role.OWNER, "lea@acme.example")
    return api


def written() -> list[tuple[str, str]]:
    return [(entry.action, entry.actor_name) for entry in AuditEntry.objects.order_by("pk")]


def mailed() -> list[str]:
    mail.outbox.clear()
    outbox.send_due()
    return [sent.subject.partition(": ")[2] for sent in mail.outbox]


class TestChange:
    @pytest.mark.rule("portal.audit")
    def test_of_endpoint_and_secret_is_recorded_and_mailed(self, calls: Api) -> None:
        assert calls.post(PATH, ENDPOINT, x_request_id="r-1").status_code == 201
        calls.post(PATH, ENDPOINT | {"url": "http://127.0.0.1:9/others"})
        calls.post("webhooks/secret/rotate")
        calls.post("webhooks/secret/rotate", {"revoke_previous": True})
        assert calls.delete(PATH).status_code == 204
        actions = ["subscription_saved"] * 2 + ["secret_rotated"] * 2 + ["subscription_ended"]
        assert written() == [(action, "Key “Key”") for action in actions]
        first = AuditEntry.objects.earliest("pk")
        assert (first.client, first.user, first.request_id) == (calls.key.client, None, "r-1")
        assert first.facts == ENDPOINT | {"is_approved": False} and first.address == "127.0.0.1"
        assert mail.outbox == [], "no answer waits for a mail"
        assert sorted(mailed()) == sorted(
            ["webhook endpoint changed"] * 2 + ["signing secret rotated"] * 2 + ["webhook endpoint removed"]
        )
        assert f"Key “Key” changed the webhook endpoint: {ENDPOINT['url']}, " in mail.outbox[0].body
        assert "revoke that key" in mail.outbox[0].body

    def test_shows_no_secret(self, calls: Api) -> None:
        secrets = [
            calls.post(path, body).json()["data"]["signing_secret"]
            for path, body in ((PATH, ENDPOINT), ("webhooks/secret/rotate", None))
        ]
        mailed()
        seen = str(
            [*AuditEntry.objects.values(), *OutboundEmail.objects.values(), *(it.body for it in mail.outbox)]
        )
        assert not [secret for secret in secrets if secret in seen]

    def test_without_an_effect_is_not_recorded(self, calls: Api) -> None:
        calls.post(PATH, ENDPOINT)
        before = written()
        assert calls.post(PATH, ENDPOINT).status_code == 200
        assert calls.get(PATH).status_code == 200
        assert written() == before

    def test_that_is_refused_is_not_recorded(self, calls: Api, rival_api: Api) -> None:
        assert calls.post("webhooks/secret/rotate").status_code == 404
        assert calls.delete(PATH).status_code == 404
        assert calls.post(PATH, ENDPOINT | {"url": "ftp://x"}).status_code == 422
        calls.post(PATH, ENDPOINT)
        for _ in range(3):
            last = calls.post("webhooks/secret/rotate")
        assert last.status_code == 409
        assert [action for action, _ in written()] == [
            "subscription_saved",
            "secret_rotated",
            "secret_rotated",
        ]

    def test_is_in_the_portals_log_and_found_by_the_keys_name(self, calls: Api, acme: Merchant) -> None:
        calls.post(PATH, ENDPOINT)
        browser = stage.browser(stage.person(acme, Role.ADMIN))
        for query, is_there in (("", True), ("?person=key", True), ("?person=lea", False)):
            page = browser.get(f"/portal/audit{query}").content.decode()
            assert ("Key “Key”" in page) == is_there, query


client = stage.client_of(Role.ADMIN)


class TestAuditLog:
    def test_shows_who_did_what_and_filters(self, client: Client, acme: Merchant) -> None:
        save(client, name="Acme Shows")
        owner = stage.browser(stage.person(acme, Role.OWNER, "lea@acme.example"))
        owner.post("/portal/keys/new", {"name": "Till", "scopes": "checkouts:read"})
        page = owner.get("/portal/audit").content.decode().split("<tbody>")[1]
        assert page.index("Made an API key") < page.index("Changed the settings")
        assert "lea@acme.example" in page and "req_" in page and "127.0.0.1" in page
        entry = AuditEntry.objects.get(action="key_created")
        for typed in ({"action": "key_created"}, {"person": "LEA"}, {"q": entry.request_id}):
            found = owner.get("/portal/audit", typed).content.decode().split("<tbody>")[1]
            assert "Made an API key" in found and "Changed the settings" not in found, typed
        assert "No entries match" in owner.get("/portal/audit?person=nobody").content.decode()

    def test_shortens_the_id_of_an_event(self, client: Client, acme: Merchant) -> None:
        stage.saved(acme)
        client.post("/portal/webhooks/test")
        event = AuditEntry.objects.get(action="test_event_sent").facts["event"]
        page = client.get("/portal/audit").content.decode()
        assert f"<bdi>Event {event[:4]}…{event[-4:]}</bdi>" in page and f'title="Event {event}"' in page

    def test_merges_consecutive_log_ins_unless_they_are_filtered(
        self, client: Client, acme: Merchant
    ) -> None:
        who = {"user": stage.person(acme, Role.VIEWER).user, "address": "192.0.2.1"}
        for browser in ("Firefox on Linux", *["Chrome on Linux"] * 3):
            AuditEntry.objects.create(merchant=acme, action="logged_in", facts={"browser": browser}, **who)
        page = client.get("/portal/audit").content.decode().split("<tbody>")[1]
        assert "Logged in, 3 times since " in page and page.count("Firefox on Linux") == 1
        assert "?action=logged_in" in page
        each = client.get("/portal/audit?action=logged_in").content.decode().split("<tbody>")[1]
        assert each.count("Chrome on Linux") == 3 and "3 times" not in each

    @pytest.mark.rule("portal.audit")
    def test_is_append_only(self, acme: Merchant) -> None:
        AuditEntry.objects.create(merchant=acme, action="test")
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            AuditEntry.objects.all().delete()
