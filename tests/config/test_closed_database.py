"""What merchants, payers and workers experience with a restored database until it is repaired."""

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.utils import translation
from django.utils.module_loading import import_string
from pytest_django.fixtures import Settings

from checkout import cancellations, captures, creation, refunds, tasks
from checkout.models import Checkout
from config import schedule, startup_checks
from payments import restore_guard
from payments.models import DatabaseMark, Merchant, Operation
from payments.restore_guard import ServiceClosed
from portal.backoffice import figures
from tests import factories
from tests.conftest import Api
from tests.factories import CAUSE
from tests.portal import people
from tests.refusals import nothing_moves, refused
from webhooks import delivery
from webhooks.models import Delivery

DO_NOT_PAY = (
    "This is our fault. Don’t pay again. Open the same link in a minute: it always shows the latest status."
)
pytestmark = [pytest.mark.django_db, pytest.mark.rule("restore.closed")]


def close() -> None:
    """Set the database's mark to a different server, as in a restored database."""
    DatabaseMark.objects.update(server="another")
    restore_guard._is_open.invalidate()


class TestTheDatabaseMark:
    def test_a_migrated_database_is_open(self) -> None:
        restore_guard._is_open.invalidate()
        assert not restore_guard.is_closed()

    @pytest.mark.parametrize("position", [0, 1, 2], ids=["cluster", "timeline", "tables"])
    def test_another_server_closes_it(self, position: int) -> None:
        parts = DatabaseMark.objects.get().server.split("/")
        parts[position] = f"{parts[position]}0"
        DatabaseMark.objects.update(server="/".join(parts))
        restore_guard._is_open.invalidate()
        assert restore_guard.is_closed()

    def test_recreated_tables_close_it(self) -> None:
        """A database is closed after its tables are created again, as happens when a dump is restored."""
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE payments_databasemark RENAME TO before")
            cursor.execute("CREATE TABLE payments_databasemark AS SELECT * FROM before")
        restore_guard._is_open.invalidate()
        assert restore_guard.is_closed()

    def test_a_missing_mark_closes_it(self) -> None:
        DatabaseMark.objects.all().delete()
        restore_guard._is_open.invalidate()
        assert restore_guard.is_closed()
        restore_guard.reopen_service()
        assert not restore_guard.is_closed()

    def test_a_setting_of_the_operators_closes_it(self, settings: Settings) -> None:
        settings.DATABASE_RESTORED = "2026-11-23"
        restore_guard._is_open.invalidate()
        assert restore_guard.is_closed()
        restore_guard.reopen_service()
        assert not restore_guard.is_closed()

    def test_is_checked_again_within_seconds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        restore_guard._is_open.invalidate()
        assert not restore_guard.is_closed()
        DatabaseMark.objects.update(server="another")
        monkeypatch.setattr(
            restore_guard._is_open, "_read_at", restore_guard._is_open._read_at - restore_guard.CACHE_SECONDS
        )
        assert restore_guard.is_closed()


class TestClosedToCallers:
    def test_no_call_of_the_api_is_answered(self, api: Api, held: Checkout) -> None:
        close()
        with nothing_moves():
            for answer in (
                api.get(f"checkouts/{held.pk}"),
                api.get("checkouts"),
                api.post("checkouts", factories.order()),
                api.post(f"checkouts/{held.pk}/capture"),
                api.post(f"checkouts/{held.pk}/cancel"),
            ):
                refused(answer, 503, "service_unavailable")
                assert answer["Retry-After"] == "30"

    @pytest.mark.parametrize("path", ["/pay?id={}", "/pay/held?id={}"])
    def test_payers_pages_are_a_503(self, held: Checkout, path: str) -> None:
        close()
        answer = Client().get(path.format(held.pk))
        assert answer.status_code == 503 and answer["Retry-After"] == "30"
        assert "Don’t pay again" in answer.content.decode()

    @pytest.mark.rule("page.language")
    @pytest.mark.parametrize("method", ["get", "post"])
    @pytest.mark.parametrize("language", [code for code, _ in settings.LANGUAGES])
    def test_a_payer_sees_the_message_in_their_language(
        self, held: Checkout, language: str, method: str
    ) -> None:
        close()
        client = Client(enforce_csrf_checks=True, headers={"accept-language": language})
        answer = getattr(client, method)(f"/pay/phone?id={held.pk}")
        page = answer.content.decode()
        with translation.override(language):
            assert translation.gettext(DO_NOT_PAY) in page and f'<html lang="{language}">' in page
        assert (DO_NOT_PAY in page) is (language == "en-gb") and answer["Content-Language"] == language

    @pytest.mark.rule("secret.csp")
    def test_the_page_has_the_headers_of_every_page(self, held: Checkout) -> None:
        before = Client().get(f"/pay?id={held.pk}")
        close()
        answer = Client().get(f"/pay?id={held.pk}")
        assert answer.status_code == 503 and "form-action" in answer["Content-Security-Policy"]
        for name in ("X-Frame-Options", "X-Content-Type-Options", "Referrer-Policy", "Cache-Control"):
            assert answer[name] == before[name], name

    def test_a_provider_notification_is_a_503(self) -> None:
        close()
        assert (
            Client().post("/provider/notifications", b"{}", content_type="application/json").status_code
            == 503
        )

    def test_the_portal_can_still_be_read(self, acme: Merchant, held: Checkout) -> None:
        browser = Client()
        browser.force_login(people.join(acme))
        factories.make_late(held)
        close()
        assert browser.get("/portal/checkouts").status_code == 200
        assert browser.get(f"/portal/checkouts/{held.pk}").status_code == 200

    def test_probes_say_why(self, settings: Settings) -> None:
        close()
        answer = Client().get("/readyz")
        assert (answer.status_code, answer.content.decode()) == (503, f"{startup_checks.CLOSED}\n")
        assert Client().get("/livez").status_code == 200
        assert ("checkout_closed", "", 1.0) in figures.read_figures()


class TestClosedToChanges:
    def test_no_action_is_carried_out(self, acme: Merchant, held: Checkout, captured: Checkout) -> None:
        other = factories.checkout(acme)
        close()
        with nothing_moves():
            with pytest.raises(ServiceClosed):
                captures.capture(acme, other.pk, cause=CAUSE)
            with pytest.raises(ServiceClosed):
                cancellations.cancel(acme, other.pk, cause=CAUSE)
            with pytest.raises(ServiceClosed):
                refunds.accept(acme, captured.pk, ref="r-1", cause=CAUSE)
            with pytest.raises(ServiceClosed):
                creation.create(acme, creation.Order(**factories.order()), cause=CAUSE)

    def test_no_pump_does_anything(self, held: Checkout) -> None:
        factories.make_late(held)
        close()
        with nothing_moves():
            for name in schedule.PUMPS | schedule.HOURLY | schedule.CALENDAR:
                import_string(name)()
            tasks.expire_due()
        held.refresh_from_db()
        assert held.status == "authorized"
        restore_guard.reopen_service()
        tasks.expire_due()
        held.refresh_from_db()
        assert held.status == "voided"

    def test_no_webhook_is_sent(self, acme: Merchant, monkeypatch: pytest.MonkeyPatch) -> None:
        close()
        before = list(Delivery.objects.values_list("pk", "status", "attempt_count"))
        assert delivery.claim(slots=10, general_slots=10) == [] and delivery.end_obsolete_deliveries() == 0
        assert list(Delivery.objects.values_list("pk", "status", "attempt_count")) == before

    def test_only_a_repair_can_change_orders(self, held: Checkout) -> None:
        close()
        with restore_guard.repair_mode():
            assert captures.capture(held.merchant, held.pk, cause=CAUSE).status == "captured"
        assert (
            restore_guard.is_closed() and Operation.objects.filter(kind="capture", state="succeeded").exists()
        )
