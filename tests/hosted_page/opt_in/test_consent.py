import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.utils import translation

from checkout import captures
from checkout.models import Checkout, Customer, MerchantCustomer
from hosted_page.models import OptIn, OptInText
from hosted_page.opt_in import consent
from hosted_page.opt_in import link as opt_in_link
from payments.models import Merchant
from tests.conftest import Api
from tests.factories import CAUSE
from tests.hosted_page.browsers import FINN, Mate, Payer, words
from tests.hosted_page.status.reading import plain
from webhooks.models import Event, decrypt_if_personal

pytestmark = pytest.mark.django_db
TICKED = {"opt_in": "yes", "email": "lea@example.com", "version": "1"}


@pytest.fixture
def shop(acme: Merchant) -> Merchant:
    acme.opt_in_enabled = True
    acme.save()
    return acme


@pytest.fixture
def lea(shop: Merchant, unpaid: Checkout) -> Payer:
    """Return the browser of Lea, who has split the order with Finn (£20.00) and paid.

    The merchant has captured the order.
    """
    payer = Payer(Checkout.objects.get(pk=unpaid.pk))
    payer.sign_in()
    fields = {"split": "own", "name": ["Finn"], "amount": ["20"], "your_name": "Lea"}
    payer.client.post(f"/pay/split?id={unpaid.pk}", fields)
    bank = payer.get("/card")["Location"]
    back = payer.client.post(bank, {"number": "4242424242424242", "expiry": "08/49", "code": "123"})
    payer.client.get(back["Location"])
    captures.capture(shop, unpaid.pk, cause=CAUSE)
    return payer


@pytest.fixture
def finn(lea: Payer) -> Mate:
    return Mate(lea.checkout.payment_requests.get())


def event_data() -> list[dict[str, Any]]:
    """Return the data of each opt-in event, oldest first."""
    events = Event.objects.filter(type="marketing.opted_in").order_by("pk")
    return [json.loads(decrypt_if_personal(event.type, bytes(event.body)))["data"] for event in events]


class TestALink:
    """The link to the marketing checkbox, which the merchant uses in emails or in an app."""

    def link(self, api: Api, lea: Payer, query: str = "?placement=email_link") -> Any:
        return api.get(f"checkouts/{lea.checkout.pk}/opt-in-link{query}").json()

    @pytest.fixture
    def path(self, api: Api, lea: Payer) -> str:
        url: str = self.link(api, lea)["data"]["url"]
        return urlsplit(url).path

    @pytest.mark.rule("opt_in.free", "opt_in.link")
    def test_shows_the_box_unticked_and_takes_a_tick(self, path: str, lea: Payer) -> None:
        page = Client().get(path)
        assert "Hear from" in words(page) and 'name="opt_in" value="yes"' in words(page)
        assert " checked" not in words(page)
        assert "This is optional." not in words(page)
        assert "novalidate" in words(page), "the page reports a mistyped address, not the browser"
        assert words(page).index("Tick the box to get offers") < words(page).index('type="checkbox"')
        saved = Client().post(path, TICKED)
        assert (saved.status_code, saved["Location"]) == (303, f"{path}?saved=1")
        thanks = plain(words(Client().get(saved["Location"])))
        assert (
            "You will hear from Acme Tickets Saved. You can ask Acme Tickets to stop at any time." in thanks
        )
        [data] = event_data()
        assert data["opt_in"]["placement"] == "email_link" and data["subject"] == "lead"
        assert data["order"]["checkout_uuid"] == str(lea.checkout.pk)
        assert data["customer"] == {"name": None, "email": "lea@example.com", "phone": None}
        assert data["opt_in"]["sms_marketing"] is None

    def test_does_not_send_the_leads_number_even_if_the_lead_is_signed_in(
        self, path: str, lea: Payer
    ) -> None:
        lea.client.post(path, TICKED)
        assert event_data()[-1]["customer"]["phone"] is None

    def test_says_what_is_wrong_with_an_address(self, path: str) -> None:
        refused = Client().post(path, TICKED | {"email": "lea@"})
        assert 'value="yes" checked' in words(refused), "what was typed stands, the tick too"
        assert refused.status_code == 422 and "Enter an e\N{NON-BREAKING HYPHEN}mail address" in words(
            refused
        )
        assert event_data() == []

    @pytest.mark.rule("opt_in.link")
    @pytest.mark.parametrize("placement", ["app", "other"])
    def test_reports_its_placement_with_the_consent(self, api: Api, lea: Payer, placement: str) -> None:
        url = self.link(api, lea, f"?placement={placement}")["data"]["url"]
        Client().post(urlsplit(url).path, TICKED)
        assert event_data()[-1]["opt_in"]["placement"] == placement

    @pytest.mark.parametrize("placement", ["success_page", "pay_link", "mail", ""])
    def test_with_an_unknown_placement_is_refused(self, api: Api, lea: Payer, placement: str) -> None:
        refused = api.get(f"checkouts/{lea.checkout.pk}/opt-in-link?placement={placement}")
        assert refused.status_code == 422 and refused.json()["error"]["param"] == "placement"

    def test_is_a_404_for_another_merchant(self, rival_api: Api, lea: Payer) -> None:
        assert rival_api.get(f"checkouts/{lea.checkout.pk}/opt-in-link").status_code == 404

    @pytest.mark.parametrize("change", [lambda path: path[:-1], lambda path: path.replace(":", ".", 1)])
    def test_that_was_changed_is_a_404(self, path: str, change: Callable[[str], str]) -> None:
        assert Client().get(change(path)).status_code == 404
        assert Client().post(change(path), TICKED).status_code == 404

    @pytest.mark.rule("opt_in.link")
    def test_that_has_expired_is_a_404(self, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(opt_in_link, "LIFE", timedelta(0))
        assert Client().get(path).status_code == 404

    @pytest.mark.rule("opt_in.free")
    def test_of_a_merchant_without_the_opt_in_has_no_address(
        self, api: Api, path: str, lea: Payer, shop: Merchant
    ) -> None:
        shop.opt_in_enabled = False
        shop.save()
        assert self.link(api, lea)["data"] == {"url": None, "placement": "email_link"}
        assert "No offers to sign up for" in words(Client().get(path))
        Client().post(path, TICKED)
        assert event_data() == []


class TestTheLead:
    @pytest.mark.rule("opt_in.every_tick", "opt_in.phone")
    def test_ticks_the_box_and_the_merchant_is_notified(self, lea: Payer) -> None:
        page = words(lea.get())
        assert "Acme Tickets may send me offers by e\N{NON-BREAKING HYPHEN}mail and text." in page
        assert 'name="opt_in" value="yes"' in page and " checked" not in page, "never ticked beforehand"
        saved = lea.post("/opt-in", **TICKED)
        assert saved.status_code == 303 and "Saved." in words(lea.client.get(saved["Location"]))
        (data,) = event_data()
        kept = OptIn.objects.get()
        person = MerchantCustomer.objects.get(customer=lea.checkout.lead or Checkout.objects.get().lead)
        assert data == {
            "customer_id": str(person.pk),
            "subject": "lead",
            "order": {
                "merchant_order_id": "A-20417",
                "checkout_uuid": str(lea.checkout.pk),
                "payment_request_uuid": None,
            },
            "customer": {"name": "Lea", "email": "lea@example.com", "phone": "+447700900123"},
            "opt_in": {
                "email_marketing": True,
                "sms_marketing": True,
                "opted_in_at": data["opt_in"]["opted_in_at"],
                "placement": "success_page",
                "text_version": 1,
            },
        }
        assert (kept.email, kept.text.version) == ("lea@example.com", 1)

    @pytest.mark.rule("opt_in.every_tick")
    def test_ticks_twice_and_the_merchant_is_notified_twice(self, lea: Payer) -> None:
        for email in ("lea@example.com", "lea@work.example"):
            lea.post("/opt-in", **{**TICKED, "email": email})
        one, other = event_data()
        assert one["customer_id"] == other["customer_id"]
        assert [data["customer"]["email"] for data in (one, other)] == ["lea@example.com", "lea@work.example"]

    @pytest.mark.parametrize(
        "email", ["", "lea", "lea@", "@example.com", "a b@example.com", "x" * 300 + "@e.example"]
    )
    def test_with_an_invalid_email_address_is_asked_again(self, lea: Payer, email: str) -> None:
        answer = lea.post("/opt-in", **{**TICKED, "email": email})
        assert answer.status_code == 422 and "Enter an e\N{NON-BREAKING HYPHEN}mail address" in words(answer)
        assert "Confirmed and paid" in words(answer) and event_data() == []

    @pytest.mark.rule("opt_in.free")
    def test_who_has_not_ticked_the_box_gives_no_consent(self, lea: Payer) -> None:
        answer = lea.post("/opt-in", email="lea@example.com", version="1")
        assert answer.status_code == 422 and "Offers are optional." in words(answer) and event_data() == []
        assert 'value="lea@example.com"' in words(answer)

    def test_is_not_a_stranger_who_has_the_link(self, lea: Payer) -> None:
        stranger = Payer(lea.checkout)
        assert "Hear from" not in words(stranger.get())
        answer = stranger.post("/opt-in", **TICKED)
        assert (
            answer.status_code == 403
            and "This was not saved, and you were not charged." in words(answer)
            and event_data() == []
        )

    def test_is_not_asked_if_the_shop_has_disabled_the_opt_in(self, lea: Payer, shop: Merchant) -> None:
        shop.opt_in_enabled = False
        shop.save()
        assert "Hear from" not in words(lea.get())
        assert lea.post("/opt-in", **TICKED).status_code == 303 and event_data() == []

    @pytest.mark.rule("opt_in.link")
    def test_can_tick_only_a_limited_number_of_times(self, lea: Payer) -> None:
        for _ in range(consent.MAX_TICKS):
            assert lea.post("/opt-in", **TICKED).status_code == 303
        assert lea.post("/opt-in", **TICKED).status_code == 422 and len(event_data()) == consent.MAX_TICKS

    def test_with_an_unknown_version_consents_to_the_current_wording(self, lea: Payer) -> None:
        for version in ("", "x", "7", "9" * 5000, "²"):
            assert lea.post("/opt-in", **{**TICKED, "version": version}).status_code == 303
        assert {data["opt_in"]["text_version"] for data in event_data()} == {1}


class TestTheName:
    def test_is_asked_of_a_payer_without_a_name_and_stored(self, lea: Payer) -> None:
        Customer.objects.update(name="")
        assert 'name="name"' in words(lea.get())
        lea.post("/opt-in", **TICKED, name="  Lea\tBrown ")
        assert event_data()[0]["customer"]["name"] == Customer.objects.get().name == "Lea Brown"
        assert 'name="name"' not in words(lea.get())

    def test_that_is_known_is_not_changed(self, lea: Payer) -> None:
        assert 'name="name"' not in words(lea.get())
        lea.post("/opt-in", **TICKED, name="Somebody")
        assert event_data()[0]["customer"]["name"] == Customer.objects.get().name == "Lea"

    def test_of_a_payer_who_is_not_signed_in_is_sent_but_not_stored(self, finn: Mate) -> None:
        finn.post("/opt-in", **TICKED, name="Finn")
        assert event_data()[0]["customer"]["name"] == "Finn"
        assert not Customer.objects.filter(name="Finn").exists()

    def test_is_kept_in_the_form_if_the_email_address_is_invalid(self, finn: Mate) -> None:
        assert 'value="Finn"' in words(finn.post("/opt-in", opt_in="yes", name="Finn", email="x"))


class TestAFriend:
    @pytest.mark.rule("opt_in.phone")
    def test_can_tick_at_the_pay_link_without_signing_in(self, finn: Mate) -> None:
        assert "Hear from" in words(finn.get())
        saved = finn.post("/opt-in", **{**TICKED, "email": "finn@example.com"})
        assert "Saved." in words(finn.client.get(saved["Location"]))
        (data,) = event_data()
        assert (data["subject"], data["order"]["payment_request_uuid"]) == ("friend", str(finn.share.pk))
        assert data["customer"] == {"name": None, "email": "finn@example.com", "phone": None}
        assert (data["opt_in"]["sms_marketing"], data["opt_in"]["placement"]) == (None, "pay_link")

    def test_who_is_not_signed_in_is_recognised_by_the_email_address(self, finn: Mate) -> None:
        for email in ("finn@example.com", "FINN@example.com", "amy@example.com"):
            finn.post("/opt-in", **{**TICKED, "email": email})
        one, again, other = (data["customer_id"] for data in event_data())
        assert one == again != other

    def test_who_is_not_signed_in_is_never_matched_to_a_signed_in_person(
        self, lea: Payer, finn: Mate
    ) -> None:
        lea.post("/opt-in", **TICKED)
        finn.post("/opt-in", **TICKED)
        leads, somebodys = event_data()
        assert leads["customer_id"] != somebodys["customer_id"] and somebodys["customer"]["phone"] is None

    def test_who_is_signed_in_is_sent_with_a_number(self, finn: Mate) -> None:
        finn.pay()
        finn.post("/opt-in", **TICKED)
        (data,) = event_data()
        assert data["customer"]["phone"] == "+447700900456" and data["opt_in"]["sms_marketing"] is True

    def test_can_continue_without_ticking(self, finn: Mate) -> None:
        finn.post("/opt-in", email="x")
        assert finn.post("/phone", phone=FINN).status_code == 303 and event_data() == []

    def test_with_an_invalid_email_address_stays_on_the_share_page(self, finn: Mate) -> None:
        answer = finn.post("/opt-in", **{**TICKED, "email": "x"})
        assert answer.status_code == 422 and "is asking you for" in words(answer)


class TestTheWording:
    @pytest.mark.rule("opt_in.words")
    def test_is_stored_as_it_was_shown(self, lea: Payer, shop: Merchant) -> None:
        lea.get()
        OptInText.objects.create(merchant=shop, version=2, text="Acme may write to me.")
        assert "Acme may write to me." in words(lea.get())
        lea.post("/opt-in", **TICKED)
        lea.post("/opt-in", **{**TICKED, "version": "2"})
        lea.post("/opt-in", **{**TICKED, "version": "x"})
        assert [data["opt_in"]["text_version"] for data in event_data()] == [1, 2, 2]

    @pytest.mark.rule("opt_in.words")
    @pytest.mark.parametrize("language", [code for code, _ in settings.LANGUAGES])
    def test_by_default_has_the_current_name_of_the_shop(self, shop: Merchant, language: str) -> None:
        with translation.override(language):
            first = consent.wording(shop)
            shop.name = "Acme"
            shop.save()
            second = consent.wording(shop)
            assert "Acme Tickets" in first.text and second.text == first.text.replace("Acme Tickets", "Acme")
            assert (second.version, second.language) == (first.version + 1, language)
            assert consent.wording(shop) == second and consent.text_of_version(shop, "1") == first
            assert OptInText.objects.get(version=1).text == first.text, "what was shown before stays"

    def test_by_default_is_reused_if_the_shop_takes_its_former_name_again(self, shop: Merchant) -> None:
        first = consent.wording(shop)
        for name in ("Acme", "Acme Tickets"):
            shop.name = name
            shown = consent.wording(shop)
        assert shown == first and OptInText.objects.count() == 2

    @pytest.mark.rule("opt_in.words")
    def test_of_the_shop_does_not_change_with_its_name(self, shop: Merchant) -> None:
        own = consent.save_text(shop, text="Acme Tickets may write to me.", language="en-gb")
        shop.name = "Acme"
        assert consent.wording(shop) == own and OptInText.objects.count() == 1

    def test_costs_one_statement(self, shop: Merchant, django_assert_num_queries: Callable[..., Any]) -> None:
        consent.wording(shop)
        with django_assert_num_queries(1):
            consent.wording(shop)

    @pytest.mark.rule("opt_in.words")
    def test_and_the_consents_are_append_only(self, lea: Payer) -> None:
        lea.post("/opt-in", **TICKED)
        for model in (OptInText, OptIn):
            with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
                model.objects.update(id=uuid4())
            with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
                model.objects.all()._raw_delete("default")
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            OptIn.objects.update(email="other@example.com", placement="app")

    def test_allows_to_encrypt_a_consent_again(self, lea: Payer) -> None:
        lea.post("/opt-in", **TICKED)
        assert OptIn.objects.update(email="lea@example.com") == 1

    def test_is_stored_with_an_encrypted_email_address(self, lea: Payer) -> None:
        lea.post("/opt-in", **TICKED)
        with connection.cursor() as cursor:
            cursor.execute("SELECT email || email_digest FROM hosted_page_optin")
            assert "lea@" not in str(cursor.fetchone())


class TestTheHelper:
    def post(self, api: Api, checkout: Checkout, **fields: Any) -> Any:
        path = f"/api/sandbox/v1/checkouts/{checkout.pk}/opt-in"
        return api.client.post(path, fields, content_type="application/json", headers=api.headers({}))

    def test_can_tick_for_the_lead_and_for_a_friend(self, lea: Payer, finn: Mate, api: Api) -> None:
        shown = self.post(api, lea.checkout, email="lea@example.com").json()["data"]
        assert shown == {"event_id": str(Event.objects.get(type="marketing.opted_in").pk)}
        self.post(api, lea.checkout, email="finn@example.com", subject="friend", placement="email_link")
        leads, friends = event_data()
        assert (leads["subject"], leads["opt_in"]["placement"]) == ("lead", "success_page")
        assert (friends["subject"], friends["opt_in"]["placement"]) == ("friend", "email_link")

    @pytest.mark.rule("opt_in.link")
    def test_has_a_limit_for_each_link(self, lea: Payer, finn: Mate, api: Api) -> None:
        for _ in range(consent.MAX_TICKS):
            assert self.post(api, lea.checkout, email="lea@example.com").status_code == 200
        refused = self.post(api, lea.checkout, email="lea@example.com")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "too_many_ticks")
        assert refused.json()["error"]["details"][0]["status"] == "captured"
        assert "the saved ticks remain" in refused.json()["error"]["message"]
        assert "Retry-After" not in refused, "waiting never helps"
        answer = self.post(api, lea.checkout, email="finn@example.com", subject="friend")
        assert answer.status_code == 200, "Finn's link has its own"

    def test_returns_null_if_the_opt_in_is_disabled(self, api: Api, unpaid: Checkout) -> None:
        assert self.post(api, unpaid, email="lea@example.com").json() == {"data": {"event_id": None}}

    @pytest.mark.parametrize(
        ("fields", "param"),
        [
            ({}, "email"),
            ({"email": "x"}, "email"),
            ({"email": "l@e.example", "placement": "sky"}, "placement"),
            ({"email": "l@e.example", "subject": "x"}, "subject"),
            ({"email": "l@e.example", "subject": "friend"}, "payment_request_uuid"),
            ({"email": "l@e.example", "payment_request_uuid": "5"}, "payment_request_uuid"),
        ],
        ids=str,
    )
    def test_names_what_is_wrong(
        self, api: Api, unpaid: Checkout, fields: dict[str, str], param: str
    ) -> None:
        answer = self.post(api, unpaid, **fields)
        assert (answer.status_code, answer.json()["error"]["param"]) == (422, param)
