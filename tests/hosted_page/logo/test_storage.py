"""A merchant's logo is stored, shown on payers' pages, served as a file, and deleted."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from checkout import captures
from checkout.models import Checkout
from hosted_page.logo import storage
from hosted_page.payment_target import PaymentTarget
from hosted_page.steps import card_page
from payments.models import Logo, Merchant
from payments.providers.sandbox import bank
from tests import factories
from tests.factories import CAUSE
from tests.hosted_page.browsers import Payer
from tests.hosted_page.group.test_group_page import Guest
from tests.hosted_page.logo import files

# Values that the session of a card page does not have if the page was opened before an upgrade.
NEW = ("logo", "shop_url")
pytestmark = pytest.mark.django_db


def show_logo(merchant: Merchant, content: bytes = b"") -> storage.LogoOnPage:
    storage.save_logo(merchant.pk, storage.read_upload(content or files.logo()))
    merchant.refresh_from_db()
    shown = storage.logo_of(merchant)
    assert shown is not None
    return shown


@pytest.mark.rule("brand.logo")
class TestPages:
    def test_have_the_logo_in_the_place_of_the_initial(self, acme: Merchant) -> None:
        checkout = factories.checkout(acme)
        before = Payer(checkout).get().content.decode()
        assert "band-initial" in before and "band-logo" not in before
        shown = show_logo(acme)
        page = Payer(checkout).get().content.decode()
        mark = f'<img class="band-logo" src="{shown.mark}" width="36" height="36" alt="">'
        assert mark in page and "band-initial" not in page

    def test_need_no_extra_query_for_it(self, acme: Merchant) -> None:
        payer = Payer(factories.checkout(acme))
        payer.get()
        with CaptureQueriesContext(connection) as without:
            payer.get()
        show_logo(acme)
        with CaptureQueriesContext(connection) as with_one:
            payer.get()
        assert len(with_one) == len(without)

    def test_have_it_on_the_receipt(self, acme: Merchant) -> None:
        payer = Payer(factories.checkout(acme))
        payer.pay()
        captures.capture(acme, payer.checkout.pk, cause=CAUSE)
        assert "receipt-logo" not in payer.get().content.decode()
        shown = show_logo(acme)
        page = payer.get().content.decode()
        assert f'class="receipt-logo" src="{shown.mark}" width="36" height="36"' in page

    def test_of_a_card_session_from_before_an_upgrade_have_the_initial(self, acme: Merchant) -> None:
        checkout = factories.checkout(acme)
        show_logo(acme)
        around = card_page.page_context(PaymentTarget(checkout))
        for is_old in (False, True):
            if is_old:
                around["order"] = {name: fact for name, fact in around["order"].items() if name not in NEW}
            session = bank.open_session(subject=checkout.pk, return_url="/pay", page=around)
            page = Client().get(f"/bank/card/{session}").content.decode()
            assert ("band-initial" in page, "band-logo" in page) == (is_old, not is_old)

    def test_of_a_group_show_it_in_chats_with_its_size_and_name(
        self, acme: Merchant, order: Checkout, settings: Settings
    ) -> None:
        guest = Guest(order)
        assert "og:image" not in guest.get().content.decode()
        shown = show_logo(acme)
        page = guest.get().content.decode()
        assert shown.card == f"{settings.BASE_URL}/brand/{acme.pk}-{acme.logo_version}-card.png"
        for name, value in {
            "": shown.card,
            ":type": "image/png",
            ":width": "1200",
            ":height": "630",
            ":alt": "TEST · Acme Tickets",
        }.items():
            assert f'<meta property="og:image{name}" content="{value}">' in page
        card = Client().get(shown.card)
        assert files.pixel(card.content, (2, 2)) != (255, 255, 255), "striped in test mode"


@pytest.mark.rule("brand.logo_address")
class TestAddress:
    def test_can_be_cached_forever(self, acme: Merchant) -> None:
        shown = show_logo(acme)
        for address, size in ((shown.mark, (144, 144)), (shown.card, (1200, 630))):
            served = Client().get(address)
            assert served["Content-Type"] == "image/png" and files.size(served.content) == size
            assert served["Cache-Control"] == "public, max-age=31536000, immutable"
            assert served["X-Content-Type-Options"] == "nosniff"
            assert "default-src 'none'" in served["Content-Security-Policy"] and "Vary" not in served
            assert Client().post(address).status_code == 405
            assert Client().head(address).content == b""

    def test_changes_with_each_logo_and_the_old_one_is_a_404(self, acme: Merchant, rival: Merchant) -> None:
        first = show_logo(acme)
        storage.remove(acme.pk)
        assert Client().get(first.mark).status_code == 404
        second = show_logo(acme, files.logo("black"))
        assert second.mark != first.mark
        gone = [first.mark, first.card, second.mark.replace(str(acme.pk), str(rival.pk))]
        gone += [f"/brand/{acme.pk}-{'9' * 30}.png", f"/brand/{acme.pk}-0-card.png", f"/brand/{acme.pk}-.png"]
        for address in gone:
            assert Client().get(address).status_code == 404, address

    def test_still_works_after_a_change_of_the_colour(self, acme: Merchant) -> None:
        shown = show_logo(acme)
        acme.brand_version += 1
        acme.save()
        assert Client().get(shown.card).status_code == 200
        assert show_logo(acme).card != shown.card


class TestRemoved:
    def test_leaves_the_initial_and_no_row(self, acme: Merchant) -> None:
        show_logo(acme)
        assert storage.remove(acme.pk) and not storage.remove(acme.pk)
        acme.refresh_from_db()
        assert storage.logo_of(acme) is None and not Logo.objects.exists()
