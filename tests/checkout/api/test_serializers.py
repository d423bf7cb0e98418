"""Invalid fields of a new order are refused and named. Unusual valid values are accepted."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from checkout.models import ApiCall, Checkout
from config.lib import clock
from payments.models import Merchant
from payments.provider import AmountRule
from payments.providers.sandbox.adapter import SandboxProvider
from payments.providers.stripe import amounts
from tests.checkout.orders import accept, refuse, refuse_item
from tests.conftest import Api
from tests.factories import item, order
from tests.refusals import MISSING, nothing_moves, refused, without

REQUIRED = ("merchant_order_id", "total_amount", "currency", "return_url", "cancel_url", "items")
REQUIRED_OF_AN_ITEM = ("item_ref", "name", "quantity", "unit_price", "currency")
BLANKS = [MISSING, None, "", "   "]
REFUSED_URLS = [
    "http://shop.example/",
    "ftp://shop.example/",
    "javascript:alert(1)",
    "data:text/html,x",
    "//evil.example",
    "/relative",
    "shop.example",
    "https:shop.example",
    "https:///path",
    "https://",
    "https://?id=1",
    "https://good@evil.example",
    "https://good:pass@evil.example",
    "https://good\\@evil.example",
    "https:\\\\evil.example",
    "https://shop.example/a b",
    "https://shop.example/\r\nx: y",
    "https://shop.example/\t",
    "https://shop.example/\x00",
    " https://shop.example/",
    "https://shop.example:99999/",
    "https://shop.example:0/",
    "https://shop.example:abc/",
    "https://shop.example/" + "a" * 5_000,
    "https://a..example/",
    "https://\u200d.example/",
    "https://" + "a" * 64 + ".example/",
    "https://shop.example;sandbox/",
    "https://shop.example,evil.example/",
    "https://*.example/",
    "https://shop.example'/",
    "https://localhos/",
    "https://shop.localhost/",
    "https://shop.local/",
    "https://shop.lan/",
    "https://metadata.goog/",
    "https://metadata.google.internal/",
    "https://169.254.169.254/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f.0.0.1/",
    "https://10.0.0.0x1/",
    "https://203.0.113.9./",
    "https://[::ffff:10.0.0.1]/",
    "https://[2606:4700::1111]/",
    "https://[::1",
    5,
    ["https://shop.example/"],
]
LOOPBACK = ["http://localhost:3000/", "https://localhost/", "http://127.0.0.1/", "http://[::1]:3000/"]
BAD_TEXTS = ["a\x00b", "\x00", "a\x01b", "a\nb", "a\tb", "a\x1fb", "a\x7fb", "a\x85b", "x" * 256,
             "e" + "\u0301" * 1_000, 5, 1.5, True, [], {"a": 1}]  # fmt: skip
ODD_TEXTS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{7*7}}",
    "${7*7}",
    "{% debug %}",
    "';DROP TABLE checkout_checkout;--",
    "=cmd()",
    "%s %(a)s {0}",
    "\u202eevil\u202c",
    "👩‍👩‍👧 🎟️",
    "東京ドーム",
    "x" * 255,
    "null",
    " edge ",
]


class TestRequiredFields:
    @pytest.mark.rule("create.required")
    @pytest.mark.parametrize("value", BLANKS, ids=["missing", "null", "empty", "spaces"])
    @pytest.mark.parametrize("field", REQUIRED)
    def test_are_refused_without_a_value(self, api: Api, field: str, value: Any) -> None:
        refuse(api, field, **{field: value})

    @pytest.mark.rule("create.required")
    @pytest.mark.parametrize("value", BLANKS, ids=["missing", "null", "empty", "spaces"])
    @pytest.mark.parametrize("field", REQUIRED_OF_AN_ITEM)
    def test_of_an_item_are_refused_without_a_value(self, api: Api, field: str, value: Any) -> None:
        refuse_item(api, field, **{field: value})

    @pytest.mark.rule("api.all_fields", "api.error")
    def test_are_all_reported_together(self, api: Api) -> None:
        with nothing_moves():
            error = refused(api.post("checkouts", {}), 422, "validation_failed", *REQUIRED)
        assert len(error["details"]) == len(REQUIRED)
        assert all(row["message"].endswith(".") for row in error["details"])

    def test_are_reported_together_with_errors_that_depend_on_other_fields(self, api: Api) -> None:
        """One response lists the errors of single fields and the errors that depend on other fields."""
        Merchant.objects.filter(pk=api.merchant.pk).update(return_hosts=["shop.example"])
        wrong = [
            item(quantity=0, unit_price=-1),
            item(item_ref="", currency="EUR", custom_data={"event_start": "soon"}),
        ]
        changes = {"merchant_order_id": "", "merchant_expires_at": "2020-01-01T00:00:00Z", "items": wrong}
        with nothing_moves():
            answer = api.post("checkouts", order(cancel_url="https://elsewhere.example/", **changes))
            error = refused(answer, 422, "validation_failed")
        assert sorted(row["param"] for row in error["details"]) == [
            "cancel_url",
            "items[0].quantity",
            "items[0].unit_price",
            "items[1].currency",
            "items[1].custom_data.event_start",
            "items[1].item_ref",
            "merchant_expires_at",
            "merchant_order_id",
        ]

    def test_of_every_item_are_named_by_their_index(self, api: Api) -> None:
        wrong = [item(), item(quantity=0, name=""), item(currency=5)]
        with nothing_moves():
            error = refused(api.post("checkouts", order(items=wrong)), 422, "validation_failed")
        named = [row["param"] for row in error["details"]]
        assert sorted(named) == ["items[1].name", "items[1].quantity", "items[2].currency"]


@pytest.mark.rule("create.return_urls")
class TestAddresses:
    @pytest.mark.parametrize("url", REFUSED_URLS, ids=lambda url: repr(url)[:40])
    def test_that_are_invalid_or_unsafe_are_refused(self, api: Api, url: Any) -> None:
        refuse(api, "return_url", return_url=url)
        refuse(api, "cancel_url", cancel_url=url)

    @pytest.mark.parametrize("url", LOOPBACK)
    def test_of_this_machine_are_accepted_only_in_local_mode(
        self, api: Api, settings: Settings, url: str
    ) -> None:
        accept(api, return_url=url)
        settings.LOCAL = False
        refuse(api, "return_url", return_url=url)

    @pytest.mark.parametrize(
        "url",
        [
            "https://cafe.de/",
            "https://bad.ca:8443/a?b=c#d",
            "HTTPS://Shop.Example/",
            "https://bücher.example/straße?q=ä",
            "https://shop.example./",
            "https://my_shop.example/",
            "https://shop.example?x=https://other.example/@",
            "https://shop.example/" + "a" * 2_000,
        ],
        ids=lambda url: str(url)[:40],
    )
    def test_of_shops_are_accepted_as_they_are(self, api: Api, url: str) -> None:
        read = accept(api, return_url=url, cancel_url=url)
        assert Checkout.objects.get().return_url == url
        page = api.client.get(f"/pay?id={read['checkout_uuid']}")
        assert page.status_code == 200
        assert page["Content-Security-Policy"].isascii() and "=?" not in page["Content-Security-Policy"]


@pytest.mark.rule("create.limits")
class TestATotalThatNoCardCanBeCharged:
    @pytest.fixture(autouse=True)
    def in_steps(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rules = {"GBP": AmountRule(minimum=9001), "HUF": AmountRule(minimum=100, step=100)}
        monkeypatch.setattr(SandboxProvider, "amount_rule", lambda _, currency: rules[currency])

    def test_is_refused_below_the_minimum_and_between_the_steps(self, api: Api) -> None:
        refuse(api, "total_amount")
        lines = [item(quantity=1, unit_price=9050, currency="HUF")]
        refuse(api, "total_amount", total_amount=9050, currency="HUF", items=lines)
        assert not Checkout.objects.exists()

    def test_is_accepted_on_a_step(self, api: Api) -> None:
        lines = [item(quantity=1, unit_price=9100, currency="HUF")]
        assert accept(api, total_amount=9100, currency="HUF", items=lines)["amount"] == 9100


@pytest.mark.rule("create.limits")
class TestATotalAboveTheProvidersMaximum:
    """Totals above the largest amount that Stripe accepts.

    Stripe counts ISK and UGX in hundredths, and KWD in steps of ten minor units.
    """

    @pytest.fixture(autouse=True)
    def of_stripe(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(SandboxProvider, "amount_rule", staticmethod(amounts.amount_rule))

    @pytest.mark.parametrize(("currency", "total"), [("ISK", 1_000_000), ("UGX", 99_999_999)])
    def test_is_refused_with_the_field_and_the_range(self, api: Api, currency: str, total: int) -> None:
        lines = [item(quantity=1, unit_price=total, currency=currency)]
        (detail,) = refuse(api, "total_amount", total_amount=total, currency=currency, items=lines)["details"]
        words = f"Must be 1 to 999999. Cards cannot be charged other amounts in {currency}."
        assert detail["message"] == words

    @pytest.mark.parametrize(
        ("currency", "largest"),
        [("ISK", 999_999), ("UGX", 999_999), ("KWD", 99_999_990), ("GBP", 99_999_999), ("MGA", 99_999_900)],
    )
    def test_begins_after_the_maximum(self, api: Api, currency: str, largest: int) -> None:
        lines = [item(quantity=1, unit_price=largest, currency=currency)]
        accepted = accept(api, total_amount=largest, currency=currency, items=lines)
        assert accepted["amount"] == largest


class TestItems:
    @pytest.mark.rule("create.limits")
    @pytest.mark.parametrize(
        "items", [[], {}, "ticket", 5, True, [item()] * 101], ids=lambda items: repr(items)[:20]
    )
    def test_that_are_not_a_list_of_one_to_a_hundred_are_refused(self, api: Api, items: Any) -> None:
        refuse(api, "items", items=items)

    def test_are_not_validated_one_by_one_if_there_are_too_many(self, api: Api) -> None:
        answer = api.post("checkouts", order(items=[{}] * 101))
        (detail,) = answer.json()["error"]["details"]
        assert (answer.status_code, detail["param"]) == (422, "items")

    @pytest.mark.parametrize("line", [None, 5, "ticket", [], True], ids=repr)
    def test_that_are_not_objects_are_refused(self, api: Api, line: Any) -> None:
        refuse(api, "items[1]", items=[item(), line])

    @pytest.mark.rule("create.category")
    @pytest.mark.parametrize(
        "category",
        [None, "", "Ticket", "9lives", "_x", "a b", "a-b", "tícket", "a" * 65, "a" * 5_000, "x\n", 5],
        ids=lambda category: repr(category)[:20],
    )
    def test_of_no_category_slug_are_refused(self, api: Api, category: Any) -> None:
        refuse_item(api, "category", category=category)

    @pytest.mark.rule("create.category")
    def test_of_an_unknown_category_are_kept(self, api: Api) -> None:
        assert accept(api, items=[item(category="time_travel")])["items"][0]["category"] == "time_travel"
        assert accept(api, items=[without(item(category=MISSING))])["items"][0]["category"] == "other"

    def test_can_be_a_hundred_in_their_order(self, api: Api) -> None:
        lines = [item(item_ref=f"line-{number}", quantity=1, unit_price=90) for number in range(100)]
        assert [line["item_ref"] for line in accept(api, items=lines)["items"]] == [
            line["item_ref"] for line in lines
        ]

    @pytest.mark.rule("api.unknown_fields")
    def test_unknown_fields_are_ignored_here_and_above(self, api: Api) -> None:
        read = accept(api, colour="green", status="captured", items=[item(checkout_uuid="x", id=5)])
        assert read["status"] == "created" and "colour" not in read
        assert set(read["items"][0]) == {
            "item_ref", "name", "quantity", "unit_price", "currency", "category", "custom_data",
        }  # fmt: skip

    @pytest.mark.rule("api.unknown_fields")
    def test_unknown_fields_are_named_in_a_header_and_in_the_portals_log(self, api: Api) -> None:
        body = order(colour="green", items=[item(id=5), item(**{"é,": 1})])
        named = "items[0].id,items[1].%C3%A9%2C,colour"
        assert api.post("checkouts", body)["X-Ignored-Fields"] == named
        assert ApiCall.objects.latest("pk").ignored_fields == named.replace(",", ", ")
        assert "X-Ignored-Fields" not in api.post("checkouts", order())
        many = api.post("checkouts", order(**{f"x{number}": 1 for number in range(30)}, items="?"))
        assert many.status_code == 422 and many["X-Ignored-Fields"].count(",") == 9

    @pytest.mark.rule("api.unknown_fields")
    def test_fields_that_are_probably_meant_are_named_in_a_header(self, api: Api) -> None:
        lines = [item(quanttity=1), without(item(category=MISSING, categry="fee"))]
        answer = api.post("checkouts", order(custmer={}, colour="green", items=lines))
        assert answer["X-Ignored-Fields"] == "items[0].quanttity,items[1].categry,custmer,colour"
        named = "items[1].categry=category,custmer=customer"
        assert answer["X-Suggested-Fields"] == named, "without quantity, which was sent too"
        assert "X-Suggested-Fields" not in api.post("checkouts", order(colour="green"))

    @pytest.mark.rule("api.unknown_fields")
    def test_unknown_fields_are_not_named_in_production(self, api: Api, settings: Settings) -> None:
        settings.SANDBOX = False
        answer = api.post("checkouts", order(custmer={}))
        assert "X-Ignored-Fields" not in answer and "X-Suggested-Fields" not in answer


@pytest.mark.rule("create.texts")
class TestTexts:
    @pytest.mark.parametrize("text", BAD_TEXTS, ids=lambda text: repr(text)[:20])
    def test_that_are_invalid_are_refused(self, api: Api, text: Any) -> None:
        refuse(api, "merchant_order_id", merchant_order_id=text)
        refuse_item(api, "name", name=text)
        refuse_item(api, "item_ref", item_ref=text)

    def test_with_a_lone_surrogate_are_invalid_json(self, api: Api) -> None:
        with nothing_moves():
            refused(api.post("checkouts", order(merchant_order_id="a\ud800b")), 400, "invalid_json")

    @pytest.mark.parametrize("text", ODD_TEXTS, ids=lambda text: repr(text)[:20])
    def test_that_are_unusual_are_stored_and_escaped(self, api: Api, text: str) -> None:
        read = accept(api, merchant_order_id=text, items=[item(name=text, item_ref=text)])
        assert read["merchant_order_id"] == text
        assert (read["items"][0]["name"], read["items"][0]["item_ref"]) == (text, text)
        page = api.client.get(f"/pay?id={read['checkout_uuid']}")
        assert page.status_code == 200
        assert text not in page.content.decode() or not set(text) & set("<>\"'")


def ahead(**amount: float) -> str:
    return (timezone.now() + timedelta(**amount)).isoformat()


@pytest.mark.rule("api.timestamps", "create.expires_at")
class TestMerchantExpiresAt:
    @pytest.mark.parametrize(
        "at",
        [
            "yesterday",
            "",
            0,
            1_780_000_000,
            True,
            [],
            "2026-13-01T00:00:00Z",
            "2026-02-30T00:00:00Z",
            "2026-06-01",
            "2026-06-01T18:30:00",
            "2026-06-01 18:30:00Z",
            "20260601T183000Z",
            "0000-01-01T00:00:00Z",
            "9999-12-31T23:59:59-14:00",
            "0001-01-01T00:00:00+14:00",
            "2026-06-01T18:30:00+25:00",
            "2026-06-01T18:30:00Z\x00",
            "٢٠٢٦-06-01T18:30:00Z",
        ],
        ids=lambda at: repr(at)[:30],
    )
    def test_that_is_not_a_valid_time_is_refused(self, api: Api, at: Any) -> None:
        refuse(api, "merchant_expires_at", merchant_expires_at=at)

    @pytest.mark.parametrize(
        ("seconds", "fits"),
        [(-300, False), (1, False), (50, False), (70, True), (86_390, True), (86_410, False), (10**8, False)],
    )
    def test_must_be_one_minute_to_one_day_ahead(self, api: Api, seconds: int, fits: bool) -> None:
        if fits:
            assert accept(api, merchant_expires_at=ahead(seconds=seconds))["expires_at"]
        else:
            refuse(api, "merchant_expires_at", merchant_expires_at=ahead(seconds=seconds))

    def test_is_read_with_its_offset_and_echoed_in_utc(self, api: Api) -> None:
        at = (timezone.now() + timedelta(hours=2)).replace(microsecond=123_000)
        local = at.astimezone(timezone.get_fixed_timezone(330)).isoformat(timespec="milliseconds")
        assert local.endswith("+05:30")
        read = accept(api, merchant_expires_at=local)
        assert read["expires_at"] == clock.iso(at) and datetime.fromisoformat(read["expires_at"]) == at
        assert Checkout.objects.get().payable_until == at

    def test_can_be_null(self, api: Api) -> None:
        assert accept(api, merchant_expires_at=None)["expires_at"] is None
