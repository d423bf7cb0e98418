"""What a key changes by API that its owners should know: in the audit log under its name, and mailed."""

import pytest
from django.core import mail

from payments.models import Merchant
from portal.mail import outbox
from portal.models import AuditEntry, OutboundEmail, Role
from tests.conftest import Api
from tests.portal import stage

pytestmark = pytest.mark.django_db
PATH = "webhooks/subscription"
ENDPOINT = {"url": "http://127.0.0.1:9/hooks", "event_types": ["*"]}


@pytest.fixture
def calls(api: Api) -> Api:
    stage.person(api.merchant, Role.OWNER, "lea@acme.example")
    return api


def written() -> list[tuple[str, str]]:
    return [(entry.action, entry.who) for entry in AuditEntry.objects.order_by("pk")]


def mailed() -> list[str]:
    mail.outbox.clear()
    outbox.send_due()
    return [sent.subject.partition(": ")[2] for sent in mail.outbox]


class TestChange:
    @pytest.mark.rule("portal.audit")
    def test_of_endpoint_and_secret_is_written_and_mailed(self, calls: Api) -> None:
        assert calls.post(PATH, ENDPOINT, x_request_id="r-1").status_code == 201
        calls.post(PATH, ENDPOINT | {"url": "http://127.0.0.1:9/others"})
        calls.post("webhooks/secret/rotate")
        calls.post("webhooks/secret/rotate", {"revoke_previous": True})
        assert calls.delete(PATH).status_code == 204
        actions = ["subscription_saved"] * 2 + ["secret_rotated"] * 2 + ["subscription_ended"]
        assert written() == [(action, "Key “Key”") for action in actions]
        first = AuditEntry.objects.earliest("pk")
        assert (first.client, first.user, first.request_id) == (calls.key.client, None, "r-1")
        assert first.facts == ENDPOINT and first.address == "127.0.0.1"
        assert mail.outbox == [], "no answer waits for a mail"
        assert sorted(mailed()) == sorted(
            ["changed the webhook endpoint"] * 2
            + ["rotated the signing secret"] * 2
            + ["removed the webhook endpoint"]
        )
        assert "Key “Key”: " in mail.outbox[0].body and "revoke that key" in mail.outbox[0].body

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

    def test_that_changes_nothing_is_not_written(self, calls: Api) -> None:
        calls.post(PATH, ENDPOINT)
        before = written()
        assert calls.post(PATH, ENDPOINT).status_code == 200
        assert calls.get(PATH).status_code == 200
        assert written() == before

    def test_that_is_refused_is_not_written(self, calls: Api, rival_api: Api) -> None:
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

    def test_stands_in_the_portals_log_found_by_the_keys_name(self, calls: Api, acme: Merchant) -> None:
        calls.post(PATH, ENDPOINT)
        browser = stage.browser(stage.person(acme, Role.ADMIN))
        for query, is_there in (("", True), ("?person=key", True), ("?person=lea", False)):
            page = browser.get(f"/portal/audit{query}").content.decode()
            assert ("Key “Key”" in page) == is_there, query
