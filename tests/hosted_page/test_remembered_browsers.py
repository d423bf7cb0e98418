"""Remembered browsers: if the payer agrees, the service remembers the number that was used in a browser."""

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F

from checkout import captures
from checkout.models import Checkout
from config.lib import crypto
from hosted_page import remembered_browsers, tasks
from hosted_page.models import KnownBrowser, SignInCode, SmsMessage
from hosted_page.privacy import data_export, data_subjects, erasure
from payments.models import Merchant
from tests import factories
from tests.factories import CAUSE
from tests.hosted_page.browsers import PHONE, Mate, Payer, words
from webhooks.models import Event, decrypt_if_personal

pytestmark = pytest.mark.django_db
CARD = {"number": "4242424242424242", "expiry": "08/49", "code": "123"}
STILL = "Is this still you?"


def remembered(payer: Payer, phone: str = PHONE) -> Payer:
    """Sign in with the checkbox "remember" ticked, and return the payer's browser."""
    payer.post("/phone", phone=phone)
    payer.post("/code", code=payer.code(), remember="yes")
    return payer


def elsewhere(payer: Payer) -> Payer:
    """Return the payer's browser on the page of a different, new order of the same merchant."""
    other = Payer(factories.checkout(payer.checkout.merchant))
    other.client = payer.client
    return other


@pytest.fixture
def lea(unpaid: Checkout) -> Payer:
    return remembered(Payer(unpaid))


def grow_older(**by: int) -> None:
    KnownBrowser.objects.update(proven_at=F("proven_at") - timedelta(**by))


@pytest.mark.rule("known.tick")
class TestTheRememberBox:
    def test_is_never_ticked_in_advance(self, unpaid: Checkout) -> None:
        payer = Payer(unpaid)
        assert 'id="remember"' not in words(payer.get()), "the button of the first step needs the room"
        payer.post("/phone", phone=PHONE)
        page = words(payer.get())
        assert "Remember me here for 30 days" in page and 'id="remember"' in page
        assert "checked" not in page.partition('id="remember"')[2].partition(">")[0]

    def test_stays_when_the_code_is_refused(self, unpaid: Checkout) -> None:
        payer = Payer(unpaid)
        payer.post("/phone", phone=PHONE)
        page = words(payer.post("/code", code="1", remember="yes"))
        assert "checked" in page.partition('id="remember"')[2].partition(">")[0]

    def test_must_be_ticked_to_be_remembered(self, unpaid: Checkout) -> None:
        payer = Payer(unpaid)
        payer.sign_in()
        assert not KnownBrowser.objects.exists() and STILL not in words(elsewhere(payer).get())


class TestAKnownBrowser:
    @pytest.mark.rule("known.opens")
    def test_pays_without_a_code(self, lea: Payer) -> None:
        other = elsewhere(lea)
        page = words(other.get())
        assert STILL in page and "Continue as •••• 0123" in page and "+447700" not in page
        assert "Not you?" in page and "Forget this number here" in page
        assert other.post("/known")["Location"] == f"/pay/split?id={other.checkout.pk}"
        other.checkout.refresh_from_db()
        assert other.checkout.lead and other.checkout.lead.phone == "+447700900123"
        assert SignInCode.objects.count() == 1

    @pytest.mark.rule("known.opens")
    def test_pays_a_share(self, finn: Mate) -> None:
        finn.client = remembered(elsewhere_alone(finn.share.checkout), "07700 900456").client
        assert STILL in words(finn.get()) and "is asking you for" in words(finn.get())
        assert "you can only see and pay this share." in words(finn.get())
        finn.post("/known")
        assert finn.get()["Location"].endswith("/card")

    @pytest.mark.rule("known.opens")
    def test_does_not_open_paid_orders(self, order: Checkout) -> None:
        """Even in a remembered browser, a payer needs a code to see the links and the receipt of a paid order.

        `order` is the payer's own order, which is split and paid.
        """
        # Otherwise the number must wait for its next code.
        SmsMessage.objects.all().delete()
        there = Payer(order)
        there.client = remembered(elsewhere_alone(order)).client
        assert "Your mobile number" in words(there.get(sign_in="1"))
        assert "remember" not in words(there.get(sign_in="1"))
        assert there.post("/known")["Location"] == f"/pay?id={order.pk}"
        assert f"payer_{order.pk.hex}" not in there.client.cookies

    @pytest.mark.rule("known.tick")
    def test_is_not_remembered_at_a_paid_order(self, order: Checkout) -> None:
        """At a paid order, a number that did not pay gets no code. A guessed code must not prove the number."""
        stranger = Payer(order)
        stranger.post("/phone", phone="07700 900999")
        digest = crypto.keyed_digest("sign-in", f"{order.pk}:123456")
        SignInCode.objects.filter(phone="+447700900999").update(code_digest=digest)
        stranger.post("/code", code="123456", remember="yes")
        assert SignInCode.objects.filter(phone="+447700900999", used_at__isnull=False).exists()
        assert "payer_known" not in stranger.client.cookies and not KnownBrowser.objects.exists()

    @pytest.mark.rule("known.ends")
    def test_needs_a_code_after_thirty_days_even_if_it_was_used(self, lea: Payer) -> None:
        grow_older(days=29, hours=23)
        other = elsewhere(lea)
        other.post("/known")
        assert other.get("/split").status_code == 200 and STILL in words(elsewhere(lea).get())
        grow_older(hours=2)
        third = elsewhere(lea)
        assert "Your mobile number" in words(third.get())
        third.post("/known")
        assert third.get("/split").status_code == 303

    @pytest.mark.rule("known.ends")
    def test_is_limited_to_five_of_a_number(self, unpaid: Checkout) -> None:
        browsers = []
        for _ in range(remembered_browsers.MAX_BROWSERS + 1):
            # Otherwise the number must wait for its next code.
            SmsMessage.objects.all().delete()
            browsers.append(remembered(elsewhere_alone(unpaid)))
        assert KnownBrowser.objects.count() == remembered_browsers.MAX_BROWSERS
        first, second = elsewhere(browsers[0]), elsewhere(browsers[1])
        assert STILL not in words(first.get()) and STILL in words(second.get())

    @pytest.mark.rule("known.ends")
    def test_can_be_forgotten_and_can_use_another_number(self, lea: Payer) -> None:
        other = elsewhere(lea)
        assert "Your mobile number" in words(other.get(change="1"))
        token = lea.client.cookies["payer_known"].value
        assert other.post("/known/end")["Location"] == f"/pay?id={other.checkout.pk}"
        assert "Your mobile number" in words(other.get()) and not KnownBrowser.objects.exists()
        lea.client.cookies["payer_known"] = token
        assert "Your mobile number" in words(other.get())

    @pytest.mark.rule("known.ends", "privacy.erase")
    def test_is_erased_with_its_person(self, lea: Payer) -> None:
        person = data_subjects.find_person(phone="+447700900123")
        assert len(data_export.export_data(person)["remembered_since"]) == 1
        Checkout.objects.update(lead=None)
        erasure.erase(person)
        assert not KnownBrowser.objects.exists()
        assert "Your mobile number" in words(elsewhere(lea).get())

    @pytest.mark.rule("known.ends")
    def test_is_deleted_after_its_time(self, lea: Payer, monkeypatch: pytest.MonkeyPatch) -> None:
        tasks.delete_old_browsers()
        assert KnownBrowser.objects.exists()
        monkeypatch.setattr(remembered_browsers, "LIFE", timedelta(days=-2))
        tasks.delete_old_browsers()
        assert not KnownBrowser.objects.exists()

    @pytest.mark.rule("known.sealed")
    def test_is_stored_as_a_hash_with_an_encrypted_number(self, lea: Payer) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT t::text FROM hosted_page_knownbrowser t")
            (row,) = cursor.fetchone()
        cookie = lea.client.cookies["payer_known"]
        assert "7700900123" not in row and cookie.value not in row
        assert cookie["httponly"] and cookie["samesite"] == "Lax" and cookie["path"] == "/"
        assert cookie["max-age"] == remembered_browsers.LIFE.total_seconds()

    @pytest.mark.rule("opt_in.phone")
    def test_tells_the_merchant_no_number(self, acme: Merchant, lea: Payer) -> None:
        Merchant.objects.update(opt_in_enabled=True)
        other = elsewhere(lea)
        other.post("/known")
        other.post("/split", split="all")
        back = lea.client.post(other.get("/card")["Location"], CARD)
        lea.client.get(back["Location"])
        captures.capture(acme, other.checkout.pk, cause=CAUSE)
        other.post("/opt-in", opt_in="yes", email="lea@example.com", name="Lea")
        event = Event.objects.get(type="marketing.opted_in")
        data = json.loads(decrypt_if_personal(event.type, bytes(event.body)))["data"]
        assert data["customer"]["phone"] is None and data["opt_in"]["sms_marketing"] is None


def elsewhere_alone(checkout: Checkout) -> Payer:
    """Return a new browser on the page of a new order of the same merchant."""
    return Payer(factories.checkout(checkout.merchant))
