"""In the admin, operators add, change and stop merchants."""

import html
import re
from datetime import UTC, datetime
from threading import Thread
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from checkout.models import Checkout
from hosted_page.logo import storage
from hosted_page.logo.drawing import Drawn
from payments import operator_stops
from payments.merchants.admin import MerchantAdmin
from payments.models import Merchant, Posting, Switch
from portal.models import User
from tests import factories
from tests.conftest import Api
from tests.operator_actions import Act, acting, log_of, looker
from tests.portal import stage
from tests.refusals import refused
from tests.waiting import wait_for, waiting_for_locks

pytestmark = pytest.mark.django_db
MERCHANTS = "/admin/payments/merchant/"


@pytest.fixture
def post_action(client: Client) -> Act:
    return acting(client)


class TestSuspending:
    def test_stops_a_merchant_and_says_why_in_the_log(
        self, post_action: Act, acme: Merchant, api: Api
    ) -> None:
        assert "Acme Tickets is stopped." in post_action(MERCHANTS, "suspend", acme, words="Fraud")
        switch = Switch.objects.get()
        assert (switch.merchant, switch.is_stopped, switch.reason) == (acme, True, "Fraud")
        refused(api.post("checkouts", factories.order()), 403, "merchant_suspended")
        assert log_of(acme) == log_of(switch) == ["Stopped: Fraud"]

    def test_asks_first(self, post_action: Act, acme: Merchant) -> None:
        page = post_action(MERCHANTS, "suspend", acme)
        assert "<h1>Stop Acme Tickets?</h1>" in page and "Open</span>" in page
        assert "Acme Tickets can no longer create orders" in page and "Yes, stop it" in page
        assert not Switch.objects.exists() and log_of(acme) == []

    @pytest.mark.parametrize("words", ["", "  ", "x" * 201])
    def test_requires_a_reason(self, post_action: Act, acme: Merchant, words: str) -> None:
        assert "field-error" in post_action(MERCHANTS, "suspend", acme, words=words)
        assert not Switch.objects.exists() and log_of(acme) == []

    def test_twice_changes_nothing_the_second_time(
        self, post_action: Act, acme: Merchant, rival: Merchant
    ) -> None:
        operator_stops.suspend(acme, reason="Fraud")
        page = post_action(MERCHANTS, "suspend", acme, rival, words="Again")
        assert "Acme Tickets was stopped already." in page and "Rival is stopped." in page
        page = post_action(MERCHANTS, "resume", acme, rival)
        assert "Resume merchants?" in page and "they can create orders" in page and "Yes, resume<" in page
        assert Switch.objects.get(merchant=acme).reason == "Fraud" and log_of(acme) == []

    def test_can_be_undone(self, post_action: Act, acme: Merchant, api: Api) -> None:
        operator_stops.suspend(acme, reason="Fraud")
        assert "Acme Tickets is open again." in post_action(MERCHANTS, "resume", acme, words="Clear")
        assert api.post("checkouts", factories.order()).status_code == 201
        assert "was not stopped" in post_action(MERCHANTS, "resume", acme, words="Clear")
        assert log_of(acme) == ["Resumed: Clear"] and Switch.objects.get().reason == "Clear"

    def test_ends_for_one_merchant_without_ending_the_stop_of_all(
        self, post_action: Act, acme: Merchant
    ) -> None:
        factories.stop(None)
        post_action(MERCHANTS, "resume", acme, words="Clear")
        assert Switch.objects.get().is_stopped

    def test_from_the_merchants_page_returns_to_it(self, post_action: Act, acme: Merchant) -> None:
        page = post_action(MERCHANTS, "suspend", acme, words="Fraud", from_page="1")
        assert "<h1>Acme Tickets</h1>" in page and ">Resume</button>" in page and ">Stop</button>" not in page

    def test_is_shown_on_the_merchants_page(self, post_action: Act, acme: Merchant) -> None:
        page = post_action(MERCHANTS, "suspend", acme, words="Fraud", from_page="1")
        since = Switch.objects.get().changed_at
        assert f"Stopped since {since.day} {since:%b %Y %H:%M:%S} by operator@example.com: Fraud." in page
        page = post_action(MERCHANTS, "resume", acme, words="Clear", from_page="1")
        assert "Stopped since" not in page
        operator_stops.suspend(None, reason="Outage")
        page = post_action(f"{MERCHANTS}{acme.pk}/change/", "")
        assert "All merchants have been stopped since" in page and ": Outage." in page

    def test_is_refused_without_the_permission_to_set_switches(self, acme: Merchant) -> None:
        client = looker("view_merchant", "change_merchant")
        form = {"action": "suspend", "_selected_action": str(acme.pk), "confirmed": "1", "words": "Mischief"}
        client.post(MERCHANTS, form)
        assert not Switch.objects.exists() and log_of(acme) == []
        assert ">Stop</button>" not in client.get(f"{MERCHANTS}{acme.pk}/change/").content.decode()


class TestMerchant:
    def test_shows_times_of_the_24_hour_clock(self, post_action: Act, client: Client, acme: Merchant) -> None:
        post_action(MERCHANTS, "suspend", acme, words="Fraud")
        Merchant.objects.update(created_at=datetime(2026, 11, 29, 20, 50, 3, tzinfo=UTC))
        assert "29 Nov 2026 20:50:03" in client.get(f"{MERCHANTS}{acme.pk}/change/").content.decode()
        at = LogEntry.objects.latest("pk").action_time
        history = client.get(f"{MERCHANTS}{acme.pk}/history/").content.decode()
        assert f"{at.day} {at:%b %Y %H:%M:%S}" in history

    def test_is_changed_but_never_deleted(self, post_action: Act, client: Client, acme: Merchant) -> None:
        form = {"name": "Acme", "country": "FR", "brand_colour": "#A61C59", "time_zone": "Europe/Paris"}
        assert client.post(f"{MERCHANTS}{acme.pk}/change/", form).status_code == 302
        acme.refresh_from_db()
        assert (acme.name, acme.country, acme.brand_colour, acme.brand_version) == (
            "Acme",
            "FR",
            "#A61C59",
            2,
        )
        assert len(log_of(acme)) == 1
        assert client.post(f"{MERCHANTS}{acme.pk}/delete/", {"post": "yes"}).status_code == 403
        assert "delete_selected" not in post_action(MERCHANTS, "", acme)

    @pytest.mark.rule("operator.settings", "page.shop")
    @pytest.mark.parametrize(
        ("field", "text"),
        [
            ("country", "UK"),
            ("brand_colour", "red;}"),
            ("time_zone", "Europe/Nowhere"),
            ("shop_url", "http://shop.example"),
            ("shop_url", "https://10.0.0.1/"),
            ("terms_url", "ftp://shop.example"),
            ("return_hosts", "https://shop.example"),
            ("unpaid_minutes", "5"),
        ],
    )
    def test_is_not_changed_to_what_the_portal_refuses(
        self, post_action: Act, client: Client, acme: Merchant, field: str, text: str
    ) -> None:
        form = {
            "name": "Acme",
            "country": "GB",
            "brand_colour": "#A61C59",
            "time_zone": "Europe/Paris",
            field: text,
        }
        assert client.post(f"{MERCHANTS}{acme.pk}/change/", form).status_code == 200
        acme.refresh_from_db()
        assert (acme.name, acme.brand_version) == ("Acme Tickets", 1)

    def test_with_a_wrong_colour_has_the_error_at_the_field(self, operator: Client) -> None:
        form = {"name": "Kite", "country": "GB", "brand_colour": "teal", "time_zone": "Europe/London"}
        page = operator.post(f"{MERCHANTS}add/", form).content.decode()
        row = page[page.index("errors field-brand_colour") :].partition('<div class="form-row')[0]
        assert 'value="teal"' in row and 'aria-invalid="true"' in row
        assert row.count("such as #A61C59.") == 2, "the error and the hint name the same example"


def typed(page: Any) -> dict[str, Any]:
    """Return the fields that a browser posts from a row's page if the operator changes no field."""
    form = page.context["adminform"].form
    found = {field.html_name: field.value() for field in form if field.value() not in (None, False)}
    drawn = re.findall(r'name="(initial-[^"]+)"(?: value="([^"]*)")?', page.content.decode())
    return found | {name: html.unescape(value) for name, value in drawn}


class TestChanging:
    """An operator opens a row's page and saves it. In the meantime, someone else has changed the row."""

    @pytest.mark.rule("operator.changes")
    def test_keeps_changes_that_the_merchant_made_since_the_page_was_opened(
        self, post_action: Act, client: Client, acme: Merchant
    ) -> None:
        page = f"{MERCHANTS}{acme.pk}/change/"
        shown = typed(client.get(page))
        settings = {"support_url": "https://acme.example/help", "opt_in_enabled": True, "unpaid_minutes": 30}
        Merchant.objects.filter(pk=acme.pk).update(**settings, return_hosts=["acme.example"])
        storage.save_logo(acme.pk, Drawn(mark=b"", card=b"", width=36))
        assert client.post(page, shown | {"name": "Acme"}).status_code == 302
        kept = Merchant.objects.get(pk=acme.pk)
        assert {name: getattr(kept, name) for name in settings} == settings
        assert (kept.name, kept.return_hosts) == ("Acme", ["acme.example"])
        assert (kept.brand_version, kept.logo_version) == (2, 2)
        assert log_of(acme) == ['[{"changed": {"fields": ["Name"]}}]']

    @pytest.mark.rule("operator.changes")
    def test_clears_values_that_the_operator_cleared(
        self, post_action: Act, client: Client, acme: Merchant
    ) -> None:
        Merchant.objects.update(opt_in_enabled=True, unpaid_minutes=30, return_hosts=["acme.example"])
        page = f"{MERCHANTS}{acme.pk}/change/"
        shown = typed(client.get(page))
        shown.pop("opt_in_enabled")
        assert client.post(page, shown | {"unpaid_minutes": "", "return_hosts": ""}).status_code == 302
        kept = Merchant.objects.get(pk=acme.pk)
        assert (kept.opt_in_enabled, kept.unpaid_minutes, kept.return_hosts) == (False, None, [])

    @pytest.mark.rule("operator.changes")
    def test_does_not_restore_a_right_that_was_removed_since(self, post_action: Act, client: Client) -> None:
        group = Group.objects.create(name="Helpers")
        person = User.objects.create_user("ada@operators.example", is_staff=True)
        person.groups.add(group)
        page = f"/admin/portal/user/{person.pk}/change/"
        shown = typed(client.get(page)) | {"groups": [str(group.pk)]}
        person.groups.clear()
        assert client.post(page, shown | {"email": "bea@operators.example"}).status_code == 302
        person.refresh_from_db()
        assert person.email == "bea@operators.example" and not person.groups.exists()

    @pytest.mark.rule("operator.changes")
    def test_does_not_remove_a_right_that_was_added_since(self, post_action: Act, client: Client) -> None:
        person = User.objects.create_user("ada@operators.example", is_staff=True)
        page = f"/admin/portal/user/{person.pk}/change/"
        shown = typed(client.get(page)) | {"groups": []}
        person.groups.add(Group.objects.create(name="Helpers"))
        assert client.post(page, shown | {"email": "bea@operators.example"}).status_code == 302
        person.refresh_from_db()
        assert person.email == "bea@operators.example" and person.groups.exists()

    @pytest.mark.parametrize("page", ["change", "delete"])
    def test_of_append_only_rows_locks_no_row(
        self, post_action: Act, client: Client, captured: Checkout, page: str
    ) -> None:
        """A refused change or deletion of a posting locks no row.

        The database would refuse the lock: the service's role is not allowed to lock rows of append-only
        tables.
        """
        posting = Posting.objects.earliest("pk")
        with CaptureQueriesContext(connection) as done:
            answer = client.post(f"/admin/payments/posting/{posting.pk}/{page}/", {"post": "yes"})
        assert answer.status_code == 403
        assert not [
            row for row in done.captured_queries if 'FOR NO KEY UPDATE OF "payments_posting"' in row["sql"]
        ]

    @pytest.mark.rule("operator.changes")
    @pytest.mark.django_db(transaction=True)
    def test_delays_a_logo_upload_at_the_same_time(
        self, post_action: Act, client: Client, acme: Merchant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A logo upload waits until the operator's change is saved. Otherwise, a logo address could be used twice."""
        page = f"{MERCHANTS}{acme.pk}/change/"
        shown = typed(client.get(page)) | {"brand_colour": "#A61C59"}

        def keep() -> None:
            storage.save_logo(acme.pk, Drawn(mark=b"", card=b"", width=36))
            connection.close()

        uploading = Thread(target=keep)
        saved = MerchantAdmin.save_model

        def save(*arguments: Any) -> None:
            uploading.start()
            wait_for(lambda: waiting_for_locks() == 1 or not uploading.is_alive())
            saved(*arguments)

        monkeypatch.setattr(MerchantAdmin, "save_model", save)
        assert client.post(page, shown).status_code == 302
        uploading.join()
        kept = Merchant.objects.get(pk=acme.pk)
        assert (kept.brand_colour, kept.brand_version, kept.logo_version) == ("#A61C59", 3, 3)

    def test_a_post_to_the_history_page_takes_no_lock(
        self, post_action: Act, client: Client, acme: Merchant
    ) -> None:
        assert client.post(f"{MERCHANTS}{acme.pk}/history/").status_code == 200


class TestSites:
    @pytest.mark.rule("operator.settings", "create.return_hosts")
    def test_are_shown_and_kept_as_the_portal_keeps_them(
        self, post_action: Act, client: Client, acme: Merchant, api: Api
    ) -> None:
        page = f"{MERCHANTS}{acme.pk}/change/"
        shown = typed(client.get(page))
        client.post(page, shown | {"return_hosts": "Shop.example\r\n merchant.example", "country": "fr"})
        kept = Merchant.objects.get(pk=acme.pk)
        assert (kept.return_hosts, kept.country) == (["shop.example", "merchant.example"], "FR")
        assert log_of(acme) == ['[{"changed": {"fields": ["Country", "Return hosts"]}}]']
        assert typed(client.get(page))["return_hosts"] == "shop.example\nmerchant.example"
        there = dict.fromkeys(("return_url", "cancel_url"), "https://shop.example/back")
        assert api.post("checkouts", factories.order(**there)).status_code == 201


class TestAdding:
    ADD = f"{MERCHANTS}add/"

    def test_fills_in_the_defaults_and_explains_the_fields(self, operator: Client) -> None:
        page = operator.get(self.ADD).content.decode()
        for value in ("GB", "#1F4596", "Europe/London"):
            assert f'value="{value}"' in page
        assert "Help page" in page and "Two letters, such as GB." in page and "Null" not in page
        assert "field-id" not in page and "field-state" not in page, "a merchant that is not saved has none"

    def test_has_its_buttons_below_its_fields(self, operator: Client, acme: Merchant) -> None:
        page = operator.get(f"{MERCHANTS}{acme.pk}/change/").content.decode()
        assert (
            page.index('name="_save"') < page.index("<h2>Elsewhere</h2>") < page.index("All times are UTC.")
        )
        assert "Change merchant" not in page
        assert "All times are UTC." not in operator.get(f"{MERCHANTS}add/").content.decode(), "it has no time"

    def test_of_all_are_stopped_without_an_empty_heading(self, operator: Client) -> None:
        page = operator.get("/admin/payments/switch/add/").content.decode()
        assert "Stop all merchants?" in page and ">About<" not in page and "about-title" not in page

    def test_has_one_button_and_folds_other_links(self, operator: Client, acme: Merchant) -> None:
        page = operator.get(f"{MERCHANTS}{acme.pk}/change/").content.decode()
        assert (
            page.count('<input type="submit"') == 1 and "_addanother" not in page and "_continue" not in page
        )
        assert '<details><summary class="link link-small">Other records</summary>' in page
        assert '<h3 class="hint">Other</h3>' not in page

    def test_says_what_to_do_next(self, operator: Client) -> None:
        form = stage.FORM | {"name": "Harbour Kitchen"}
        page = operator.post(self.ADD, form, follow=True).content.decode()
        assert "Harbour Kitchen is added. Next: invite its owner." in page
        assert ">Invite an owner</button>" in page
