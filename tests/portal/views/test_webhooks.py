import html
import re
from pathlib import Path
from typing import Any

import pytest
from django.http import HttpRequest
from django.test import Client
from pytest_django.fixtures import Settings

from config import settings as written
from config.lib import clock
from payments.models import Merchant
from portal.models import AuditEntry, Membership, OutboundEmail, Role
from portal.views import webhooks
from tests import factories
from tests.portal import stage
from tests.portal.stage import saved
from webhooks import delivery, endpoint_tests, outbox, subscriptions
from webhooks.models import Event, EventType, SigningSecret, Subscription

pytestmark = pytest.mark.django_db
SAVED = {"url": stage.URL, "event_types": ["checkout.authorized", "checkout.voided", "marketing.opted_in"]}


client = stage.client_of(Role.OWNER)


class TestEndpoint:
    def test_shows_its_secret_once(self, client: Client) -> None:
        page = client.post("/portal/webhooks/endpoint", SAVED, follow=True)
        (secret,) = re.findall(r"whsec_[A-Za-z0-9+/=]+", page.content.decode())
        assert SigningSecret.objects.get().secret == secret
        assert "whsec_" not in client.get("/portal/webhooks").content.decode()
        again = client.post("/portal/webhooks/endpoint", SAVED, follow=True).content.decode()
        assert "whsec_" not in again, "no new secret"
        assert Subscription.objects.get().event_types == ["*"]

    def test_keeps_the_events_that_were_chosen(self, client: Client) -> None:
        client.post("/portal/webhooks/endpoint", SAVED | {"event_types": ["checkout.voided"]})
        assert Subscription.objects.get().event_types == ["checkout.voided"]

    def test_address_breaks_only_before_a_part_of_its_path(self, client: Client, acme: Merchant) -> None:
        client.post("/portal/webhooks/endpoint", SAVED)
        viewer = stage.browser(stage.person(acme, Role.VIEWER))
        address = stage.URL.replace("/hooks", "/<wbr>hooks")
        assert f"<code>{address}</code>" in viewer.get("/portal/webhooks").content.decode()

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"url": ""}, "Write the address"),
            ({"url": "https://10.0.0.1/hooks"}, "field-error"),
            ({"url": "ftp://shop.example/hooks"}, "field-error"),
            ({"url": "https://" + "x" * 3000}, "Write the address"),
            ({"event_types": []}, "Choose at least one event"),
            ({"event_types": ["everything"]}, "Choose at least one event"),
        ],
    )
    def test_refuses_and_keeps_what_was_typed(
        self, client: Client, changes: dict[str, Any], words: str
    ) -> None:
        page = client.post("/portal/webhooks/endpoint", SAVED | changes)
        assert page.status_code == 422 and words in page.content.decode()
        assert not Subscription.objects.exists() and not AuditEntry.objects.exists()

    def test_change_is_audited_and_mailed(self, client: Client) -> None:
        client.post("/portal/webhooks/endpoint", SAVED)
        assert AuditEntry.objects.get().action == "subscription_saved"
        assert OutboundEmail.objects.get().kind == "sensitive_change"

    def test_is_removed(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        client.post("/portal/webhooks/end")
        assert Subscription.objects.get().ended_at


@pytest.mark.parametrize("role", [Role.SUPPORT, Role.VIEWER])
def test_says_who_can_rotate_the_secret_and_send_a_test_event(acme: Merchant, role: Role) -> None:
    saved(acme)
    page = stage.browser(stage.person(acme, role)).get("/portal/webhooks").content.decode()
    assert "Owners, admins and developers can rotate it." in page
    assert "Owners, admins and developers can send one." in page


class TestReceivers:
    @pytest.mark.parametrize("language", ["python", "node", "typescript", "php", "go", "ruby"])
    def test_show_the_signature_check_and_link_to_the_whole_file(self, client: Client, language: str) -> None:
        page = client.get(f"/portal/webhooks?code={language}").content.decode()
        shown = page.split('class="code code-alone"', 1)[1].split("</pre>")[0]
        assert "verify(" in shown and "capture" not in shown and 10 < shown.count("\n") < 30
        end = {"python": 'raise Refused("invalid_json")', "ruby": "end"}.get(language, "}")
        assert html.unescape(shown).rstrip().splitlines()[-1].strip() == end
        assert "download it" in page and "The whole file" not in page


class TestHealth:
    def test_is_shown_next_to_the_endpoint(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        for http_status, error in ((200, None), (503, "HTTP 503")):
            outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
            (claimed,) = delivery.claim(slots=1, general_slots=1)
            lease = (claimed.delivery_id, claimed.lease_token)
            delivery.record_results([delivery.Result(*lease, http_status, error, 340)])
        page = client.get("/portal/webhooks").content.decode()
        for words in (
            "50.0%",
            "1 of 2",
            "340\N{NO-BREAK SPACE}ms",
            "Last answered 2xx",
            "HTTP 503",
            "Failing since",
        ):
            assert words in page, words


class TestSecret:
    def test_is_rotated_with_a_countdown_and_stopped(self, client: Client, acme: Merchant) -> None:
        subscription = saved(acme)
        page = client.post("/portal/webhooks/rotate", follow=True).content.decode()
        assert page.index("secret-title") < page.index("health-title")
        assert "Both secrets sign for another" in page and "shown once" in page and "data-countdown" in page
        assert len(subscriptions.previous_secret_expiries(subscription)) == 1
        client.post("/portal/webhooks/revoke")
        assert subscriptions.previous_secret_expiries(subscription) == []
        outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
        (claimed,) = delivery.claim(slots=1, general_slots=1)
        assert len(claimed.sealed_secrets) == 1
        after = client.get("/portal/webhooks").content.decode()
        assert "Both secrets sign" not in after and after.index("secret-title") < after.index("health-title")
        actions = AuditEntry.objects.values_list("action", flat=True)
        assert set(actions) == {"secret_rotated", "secret_revoked"}

    def test_is_rotated_again_until_three_sign(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        client.post("/portal/webhooks/rotate")
        client.get("/portal/webhooks")
        assert "Rotate the secret again" in client.get("/portal/webhooks").content.decode()
        page = client.post("/portal/webhooks/rotate", follow=True).content.decode()
        assert "Three secrets sign for" in page and "shown once" in page
        before = list(SigningSecret.objects.values("pk", "expires_at"))
        page = client.get("/portal/webhooks").content.decode()
        assert "Rotate the secret" not in page and "Stop the old secrets now" in page
        page = client.post("/portal/webhooks/rotate", follow=True).content.decode()
        assert "Three secrets sign already" in page
        assert list(SigningSecret.objects.values("pk", "expires_at")) == before
        client.post("/portal/webhooks/revoke")
        assert "secrets sign for" not in client.get("/portal/webhooks").content.decode()

    def test_is_not_in_the_audit_log_or_in_a_mail(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        page = client.post("/portal/webhooks/rotate", follow=True).content.decode()
        (secret,) = re.findall(r"whsec_[A-Za-z0-9+/=]{10,}", page)
        rows = [*AuditEntry.objects.values(), *OutboundEmail.objects.values()]
        assert rows and secret not in str(rows)


class TestTestEvent:
    def test_shows_request_and_answer(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        sent = client.post("/portal/webhooks/test")
        address = sent["Location"].split("#")[0]
        waiting = client.get(address).content.decode()
        assert "Waiting for the answer" in waiting and "every 500ms" in waiting
        stage.deliver(acme, 500, "HTTP 500", "upstream unavailable")
        page = client.get(address).content.decode()
        assert "upstream unavailable" in page and "webhook.test" in page and "every 500ms" not in page
        assert "Failed</span>" in page, "it goes out once: nobody is to send it again"
        part = client.get(address, headers={"HX-Request": "true", "HX-Target": "answer"}).content.decode()
        assert "upstream unavailable" in part and "<html" not in part

    def test_counts_in_the_figures_that_are_sent_with_its_response(
        self, client: Client, acme: Merchant
    ) -> None:
        saved(acme)
        address = client.post("/portal/webhooks/test")["Location"].split("#")[0]
        of_answer = {"HX-Request": "true", "HX-Target": "answer"}
        assert "hx-swap-oob" not in client.get(address, headers=of_answer).content.decode()
        stage.deliver(acme, 200)
        part = client.get(address, headers=of_answer).content.decode()
        assert part.count("hx-swap-oob") == 2 and "1 of 1" in part and "Working" in part
        page = client.get(address).content.decode()
        assert (
            "The answer counts in Health." in page
            and "95% within" in page
            and "1 of 1" in page
            and "hx-swap-oob" not in page
        )

    @pytest.mark.rule("subscription.new_url")
    def test_of_a_new_address_says_that_it_works_once_it_has_answered(
        self, client: Client, acme: Merchant
    ) -> None:
        saved(acme)
        client.post("/portal/webhooks/test")
        stage.deliver(acme, 500, "HTTP 500")
        assert "Failing since" in client.get("/portal/webhooks").content.decode()
        factories.subscribe(acme, url=f"{stage.URL}/new", event_types=["*"])
        page = client.get("/portal/webhooks").content.decode()
        assert "0 of 1" in page and "Failing since" not in page and "Working" not in page
        client.post("/portal/webhooks/test")
        stage.deliver(acme, 200)
        assert "Working" in client.get("/portal/webhooks").content.decode()

    def test_counts_in_the_figures_of_a_page_that_shows_it(
        self, client: Client, acme: Merchant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The page counts the response to a test event, even if it arrives while the page is rendered."""
        saved(acme)
        address = client.post("/portal/webhooks/test")["Location"].split("#")[0]
        found = webhooks._test_context

        def answered_now(request: HttpRequest, membership: Membership) -> dict[str, Any]:
            stage.deliver(acme, 200)
            return found(request, membership)

        monkeypatch.setattr(webhooks, "_test_context", answered_now)
        page = client.get(address).content.decode()
        assert "Delivered</span>" in page and "1 of 1" in page

    @pytest.mark.rule("limit.test_events")
    def test_is_sent_sixty_times_an_hour_a_merchant(
        self, client: Client, acme: Merchant, rival: Merchant, settings: Settings
    ) -> None:
        settings.LIMITS = written.LIMITS
        for merchant in (acme, rival):
            saved(merchant)
        for _ in range(60):
            endpoint_tests.send_test_event(acme)
        page = client.post("/portal/webhooks/test", follow=True).content.decode()
        assert "Too many test events in an hour. Try again in an hour." in page
        assert not AuditEntry.objects.filter(action="test_event_sent").exists()
        endpoint_tests.send_test_event(rival)
        assert Event.objects.count() == 61

    def test_needs_an_endpoint(self, client: Client) -> None:
        assert "Save an endpoint first" in client.post("/portal/webhooks/test", follow=True).content.decode()
        assert not Event.objects.exists()


def test_the_receivers_shown_are_the_downloadable_files(client: Client) -> None:
    """The page shows the code of the receivers that merchants can download.

    tests/webhooks/receivers/test_receiver.py tests these files with the vectors.
    """
    for language, (name, _) in webhooks.RECEIVERS.items():
        code = (Path("webhooks/receivers") / name).read_text()
        page = client.get(f"/portal/webhooks?code={language}").content.decode()
        shown = page.split('class="code code-alone"', 1)[1].partition(">")[2].split("</pre>")[0]
        assert html.unescape(shown).strip() in code and "<?php" not in page
        assert f'href="/api/docs/{name}"' in page
        assert client.get(f"/api/docs/{name}").getvalue().decode() == code
