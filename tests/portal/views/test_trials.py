"""The checklist with the cases that the sandbox runs: who may start a case, and what the page shows."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.test import Client
from pytest_django.fixtures import Settings

from checkout.models import Checkout
from payments import operator_stops
from payments.models import Merchant
from portal.models import AuditEntry, Role, Trial
from portal.trials import made_orders, verdicts
from tests import factories
from tests.conftest import Api
from tests.portal import stage
from tests.portal.trials import backend
from tests.portal.trials.backend import Backend
from webhooks import subscriptions

PAGE, RUN, ORDER = "/portal/checklist", "/portal/checklist/run", "/portal/checklist/order"


@pytest.fixture(autouse=True)
def _calm_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "QUIET_PERIOD", verdicts.QUIET_PERIOD * 0)


client = stage.client_of(Role.DEVELOPER)


def page(client: Client) -> str:
    return str(client.get(PAGE).content.decode())


@pytest.mark.django_db
class TestPage:
    @pytest.mark.rule("trial.bounds")
    def test_shows_what_a_case_waits_for_and_can_stop_it(self, client: Client, acme: Merchant) -> None:
        stage.saved(acme)
        client.post(RUN, {"case": "retry"})
        assert "waits for your capture, and your 2xx to the retry, until" in " ".join(page(client).split())
        for _ in range(2):
            answer = client.post(RUN, {"case": "retry", "stop": "1"})
            assert answer.headers["Location"] == f"{PAGE}#case-retry"
        trial = Trial.objects.get()
        assert (trial.has_passed, trial.next_look_at) == (False, None)
        assert (
            trial.reason
            == "The case was stopped while it waited for your capture, and your 2xx to the retry."
        )
        assert AuditEntry.objects.filter(action="trial_stopped").count() == 1
        assert trial.reason in page(client)

    @pytest.mark.rule("trial.evidence")
    def test_follows_a_case_until_it_has_passed(self, client: Client, acme: Merchant, api: Api) -> None:
        stage.saved(acme)
        assert "Run it" in page(client) and "hx-trigger" not in page(client)
        answer = client.post(RUN, {"case": "twice"})
        assert answer.headers["Location"] == f"{PAGE}#case-twice"
        entry = AuditEntry.objects.get(action="trial_begun")
        assert entry.facts == {"case": "twice", "trial": str(Trial.objects.get().pk)}
        running = page(client)
        assert "Running</span>" in running and 'hx-trigger="every 1s"' in running
        trial = backend.walk(acme, "twice", Backend(api))
        assert trial.has_passed
        ended = page(client)
        assert "hx-trigger" not in ended and ">Passed</span>" in ended
        assert f"/portal/checkouts/{trial.checkout_uuid}" in ended and "?attempt=2" in ended

    def test_sends_htmx_only_the_cases(self, client: Client) -> None:
        part = client.get(PAGE, headers={"HX-Request": "true", "HX-Target": "cases"}).content.decode()
        assert "case-twice" in part and "<html" not in part

    @pytest.mark.rule("trial.evidence")
    def test_shows_why_a_case_failed_and_offers_it_again(
        self, client: Client, acme: Merchant, api: Api
    ) -> None:
        trial = backend.begin(acme, "twice")
        reason = "Your server captured twice."
        Trial.objects.filter(pk=trial.pk).update(
            ended_at=trial.created_at, has_passed=False, next_look_at=None, reason=reason
        )
        words = page(client)
        assert reason in words and "Run again" in words and ">Passed<" not in words
        assert 'class="notice-title">Not passed, <time datetime="' in words, (
            "when it ended stands with its end"
        )

    @pytest.mark.rule("trial.evidence")
    def test_shows_a_passed_case_after_its_rows_are_deleted(
        self, client: Client, acme: Merchant, api: Api
    ) -> None:
        trial = backend.walk(acme, "twice", Backend(api))
        with connection.cursor() as cursor:
            for table in ("webhooks_attempt", "webhooks_delivery", "checkout_apicall"):
                cursor.execute(f"DELETE FROM {table}")
        words = page(client)
        assert ">Passed</span>" in words and trial.evidence[0]["words"] in words

    @pytest.mark.rule("trial.absent")
    def test_has_no_cases_in_production(self, client: Client, acme: Merchant, settings: Settings) -> None:
        stage.saved(acme)
        settings.SANDBOX = False
        words = page(client)
        assert "Handle an event twice" in words and "case-" not in words and RUN not in words
        assert client.post(RUN, {"case": "twice"}).status_code == 404
        assert not Trial.objects.exists()

    def test_refuses_an_unknown_case(self, client: Client, acme: Merchant) -> None:
        stage.saved(acme)
        for odd in ("", "nothing", "twice\0", "x" * 10_000):
            assert client.post(RUN, {"case": odd}).status_code == 404

    def test_links_to_the_endpoint_settings_if_there_is_none(self, client: Client) -> None:
        answer = client.post(RUN, {"case": "twice"}, follow=True)
        assert answer.redirect_chain[-1][0] == "/portal/webhooks"
        assert "Save an endpoint first" in answer.content.decode()

    @pytest.mark.rule("trial.bounds")
    def test_requires_the_right_to_send_test_events(self, acme: Merchant, rival: Merchant, api: Api) -> None:
        stage.saved(acme)
        viewer = stage.browser(stage.person(acme, Role.VIEWER))
        assert RUN not in page(viewer)
        assert "Owners, admins and developers can run these cases." in page(viewer)
        assert viewer.post(RUN, {"case": "twice"}).status_code == 403
        trial = backend.walk(acme, "twice", Backend(api))
        assert str(trial.checkout_uuid) in page(viewer)
        assert str(trial.checkout_uuid) not in page(stage.browser(stage.person(rival, Role.OWNER)))


@pytest.mark.django_db
@pytest.mark.rule("trial.own_order")
class TestOwnOrder:
    def test_is_offered_and_can_be_used(self, client: Client, acme: Merchant) -> None:
        stage.saved(acme)
        assert "You can then choose it here" in page(client)
        own = factories.checkout(acme)
        assert ">choose your order A-20417</a>" in page(client)
        chosen = client.get(f"{PAGE}?order=own").content.decode()
        assert (
            "pays your own order" in chosen
            and ">A-20417</bdi>" in chosen
            and f'name="order" value="{own.pk}"' in chosen
        )
        answer = client.post(RUN, {"case": "twice", "order": str(own.pk)})
        assert answer.headers["Location"] == f"{PAGE}?order=own#case-twice"
        assert Trial.objects.get().checkout_uuid == own.pk

    def test_can_be_used_for_a_rotation(self, client: Client, acme: Merchant) -> None:
        stage.saved(acme)
        own = factories.checkout(acme)
        asked = client.post(RUN, {"case": "rotate", "order": str(own.pk)}).headers["Location"]
        assert f'action="{asked}"' in client.get(asked).content.decode()
        client.post(asked)
        assert Trial.objects.get().checkout_uuid == own.pk

    def test_must_belong_to_the_merchant(self, client: Client, acme: Merchant, rival: Merchant) -> None:
        stage.saved(acme)
        other = factories.checkout(rival)
        assert str(other.pk) not in client.get(f"{PAGE}?order=own").content.decode()
        for odd in (str(other.pk), "nothing", "a\0", "x" * 10_000):
            assert client.post(RUN, {"case": "twice", "order": odd}).status_code == 302
            assert client.post(f"{ROTATE}?order={other.pk}").headers["Location"] == PAGE
        assert not Trial.objects.exists()


ROTATE = "/portal/checklist/rotate"


@pytest.mark.django_db
class TestRotation:
    def test_asks_first_and_shows_the_new_secret_once(self, client: Client, acme: Merchant) -> None:
        subscription = stage.saved(acme)
        assert client.post(RUN, {"case": "rotate"}).headers["Location"] == ROTATE
        assert "Rotate the signing secret?" in client.get(ROTATE).content.decode()
        assert subscription.secrets.count() == 1 and not Trial.objects.exists()
        assert client.post(ROTATE).headers["Location"] == f"{PAGE}#secret"
        secret = subscription.secrets.get(expires_at=None).secret
        assert secret in page(client) and secret not in page(client)
        assert {entry.action for entry in AuditEntry.objects.all()} == {"trial_begun", "secret_rotated"}

    def test_question_says_that_no_new_secret_is_made_while_two_sign(
        self, client: Client, acme: Merchant
    ) -> None:
        stage.saved(acme)
        assert "Rotate the signing secret?" in client.get(ROTATE).content.decode()
        subscriptions.rotate(acme)
        asked = client.get(ROTATE).content.decode()
        assert "two secrets already sign, so you get no new secret" in asked and "shown once" not in asked

    def test_does_not_rotate_again_while_two_secrets_sign(self, client: Client, acme: Merchant) -> None:
        subscription = stage.saved(acme)
        for _ in range(2):
            client.post(ROTATE)
        Trial.objects.update(ended_at=Trial.objects.get().created_at, has_passed=True, next_look_at=None)
        assert client.post(ROTATE).headers["Location"] == f"{PAGE}#case-rotate"
        assert subscription.secrets.count() == 2 and Trial.objects.count() == 2

    def test_requires_a_fresh_proof(self, acme: Merchant) -> None:
        subscription = stage.saved(acme)
        stale = stage.browser(stage.person(acme, Role.DEVELOPER), is_fresh=False)
        assert "/accounts/reauthenticate/" in stale.post(ROTATE).headers["Location"]
        assert subscription.secrets.count() == 1

    def test_links_to_the_endpoint_settings_if_there_is_none(self, client: Client) -> None:
        assert client.post(ROTATE).headers["Location"] == "/portal/webhooks"

    @pytest.mark.rule("trial.absent")
    def test_does_not_exist_in_production(self, client: Client, acme: Merchant, settings: Settings) -> None:
        subscription = stage.saved(acme)
        settings.SANDBOX = False
        assert [client.get(ROTATE).status_code, client.post(ROTATE).status_code] == [404, 404]
        assert subscription.secrets.count() == 1


@pytest.mark.django_db
@pytest.mark.rule("trial.by_hand")
class TestMakeOrder:
    def test_leads_to_the_payment_page_and_is_recorded(self, client: Client, acme: Merchant) -> None:
        home = client.get("/portal")
        assert "Make a test order" in home.content.decode()
        assert "http://127.0.0.1:8000" in home["Content-Security-Policy"], "browsers let the form lead there"
        answer = client.post(ORDER)
        made = Checkout.objects.get(merchant=acme)
        assert answer.headers["Location"] == made.url
        assert AuditEntry.objects.get(action="test_order_made").facts == {"order": made.merchant_order_id}

    def test_is_not_offered_to_a_person_who_may_not_run_cases(self, acme: Merchant) -> None:
        support = stage.browser(stage.person(acme, Role.SUPPORT))
        assert "Make a test order" not in support.get("/portal").content.decode()

    def test_says_why_no_order_is_made(
        self, client: Client, acme: Merchant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(made_orders, "LIMIT", made_orders.LIMIT._replace(maximum=1))
        client.post(ORDER)
        words = client.post(ORDER, follow=True).content.decode()
        assert "limit of 1 test orders an hour" in words

    def test_offers_no_case_while_payments_are_stopped(self, client: Client, acme: Merchant) -> None:
        run, later = "Run it<span", "You can run these cases when payments work again."
        words = client.get(PAGE).content.decode()
        assert run in words and later not in words
        factories.stop(acme)
        words = client.get(PAGE).content.decode()
        assert run not in words and later in words

    def test_makes_no_order_while_payments_are_stopped(self, client: Client, acme: Merchant) -> None:
        operator_stops.suspend(acme, reason="Fraud")
        assert "payments are stopped" in client.post(ORDER, follow=True).content.decode()
        assert not Checkout.objects.exists() and not AuditEntry.objects.exists()

    @pytest.mark.rule("trial.absent")
    def test_does_not_exist_in_production(self, client: Client, settings: Settings) -> None:
        settings.SANDBOX = False
        assert client.post(ORDER).status_code == 404
        assert "Make a test order" not in client.get("/portal").content.decode()


@pytest.mark.django_db(transaction=True)
@pytest.mark.rule("trial.one")
def test_two_simultaneous_requests_start_one_trial(acme: Merchant) -> None:
    stage.saved(acme)
    clients = [stage.browser(stage.person(acme, role)) for role in (Role.DEVELOPER, Role.OWNER)]

    def press(client: Client) -> int:
        try:
            return client.post(RUN, {"case": "twice"}).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(press, clients * 2)) == [302] * 4
    assert Trial.objects.count() == 1 and AuditEntry.objects.filter(action="trial_begun").count() == 1
