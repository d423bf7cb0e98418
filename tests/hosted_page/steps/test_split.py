import re
from typing import Any

import pytest

from checkout import mate_shares
from checkout.models import Checkout
from checkout.split.share_rows import Share
from hosted_page.steps.split_form import SplitForm
from payments import money
from payments.models import Merchant
from payments.provider import AmountRule
from payments.providers.sandbox.adapter import SandboxProvider
from tests import factories
from tests.hosted_page.browsers import FINN, Payer, words

pytestmark = pytest.mark.django_db


@pytest.fixture
def lea(unpaid: Checkout) -> Payer:
    payer = Payer(unpaid)
    payer.sign_in()
    return payer


def shares(checkout: Checkout) -> list[tuple[str, int]]:
    return list(checkout.payment_requests.order_by("position").values_list("name", "amount"))


def by_amounts(lea: Payer, **fields: list[str]) -> Any:
    return lea.client.post(f"/pay/split?id={lea.checkout.pk}", {"split": "own", "your_name": "Lea", **fields})


def equally(lea: Payer, people: int, **fields: Any) -> Any:
    chosen = {"split": "equal", "people": str(people), "your_name": "Lea", **fields}
    return lea.client.post(f"/pay/split?id={lea.checkout.pk}", chosen)


def _is_chosen(page: str, way: str) -> bool:
    return bool(re.search(rf'id="split-{way}"[^>]* checked', page))


def blamed(page: str) -> list[str]:
    """Return the ids of the fields that the page marks as the cause of the error above the form."""
    fields = re.findall(r"<input[^>]*>", page)
    marked = [field for field in fields if 'aria-invalid="true" aria-describedby="not-saved"' in field]
    return ["".join(re.findall(r' id="([^"]+)"', field)) for field in marked]


class TestTheChoice:
    def test_is_empty_at_first_and_all_mine_is_one_tap(self, lea: Payer) -> None:
        page = words(lea.get("/split"))
        assert not _is_chosen(page, "equal") and not _is_chosen(page, "own")
        assert re.search(
            r'name="split" value="all">\s*<span>All mine</span>\s*<span>Pay <span[^>]*>£90.00', page
        )
        assert lea.post("/split", split="all")["Location"] == f"/pay/card?id={lea.checkout.pk}"

    def test_of_all_mine_overrides_the_other_fields(self, lea: Payer) -> None:
        by_amounts(lea, name=["Finn"], amount=["24"])
        assert by_amounts(lea, split=["all", "own"], name=["Finn"], amount=["24"]).status_code == 303
        assert shares(lea.checkout) == []

    def test_is_not_all_mine_when_enter_is_pressed_in_a_field(self, lea: Payer) -> None:
        """If the lead presses Enter in a field, the form must not send "All mine".

        Enter activates the first button of the form, so this button must be the one that asks the mates to
        pledge first.
        """
        form = words(lea.get("/split")).partition('<form class="split"')[2]
        first = re.findall(r"<button[^>]*>", form)[0]
        assert 'name="when" value="first"' in first and "aria-hidden" in first

    @pytest.mark.rule("split.name")
    def test_to_share_requires_the_leads_name(self, lea: Payer) -> None:
        refused = equally(lea, 3, your_name=" ", name=["Finn", "Amy"])
        page = words(refused)
        assert refused.status_code == 422 and shares(lea.checkout) == []
        assert re.search(r'role="alert" tabindex="-1" autofocus', page) and "Enter your name." in page
        assert re.search(r'id="your-name"[^>]*\saria-invalid="true"', page) and 'value="Finn"' in page


class TestEqualShares:
    def test_can_have_names(self, lea: Payer) -> None:
        assert equally(lea, 4, name=["Finn", "", "Priya", "Zoe"]).status_code == 303
        assert shares(lea.checkout) == [("Finn", 2250), ("", 2250), ("Priya", 2250)]
        page = words(lea.get("/split"))
        assert _is_chosen(page, "equal") and 'value="Priya"' in page and 'value="Lea"' in page

    @pytest.mark.rule("split.shares")
    def test_leave_the_remainder_to_the_lead(self, acme: Merchant) -> None:
        line = factories.item(quantity=1, unit_price=9550)
        lea = Payer(factories.checkout(acme, items=[line], total_amount=9550))
        lea.sign_in()
        page = words(equally(lea, 4, show="1"))
        assert "£23.89" in page and ">2p more<" in page and page.count(">£23.87<") == 4

    def test_of_many_are_one_line_until_names_are_added(self, lea: Payer) -> None:
        many = words(equally(lea, 9, show="1"))
        assert 'class="panel drawn-equal panel-many"' in many and "8 mates" in many and ">each<" in many
        assert "share-bar-many" in many
        assert 'class="panel drawn-equal panel-many panel-names"' in words(equally(lea, 9, names="1"))
        assert not lea.checkout.payment_requests.exists()


class TestOwnAmounts:
    @pytest.mark.rule("split.shares")
    def test_are_saved_with_names_and_the_rest_is_the_leads(self, lea: Payer) -> None:
        answer = by_amounts(lea, name=["Finn", "", "Priya"], amount=["24.00", "", "£8"], your_name=["Lea"])
        assert answer["Location"] == f"/pay/card?id={lea.checkout.pk}"
        assert shares(lea.checkout) == [("Finn", 2400), ("Priya", 800)]
        lea.checkout.refresh_from_db()
        assert lea.checkout.people == 3 and lea.checkout.lead and lea.checkout.lead.name == "Lea"
        page = words(lea.client.get(lea.get("/card")["Location"]))
        assert "If a mate never pays, you cover their share." in page
        assert "Goes back as your 2 mates pay" in page and "£32.00" in page and "£58.00" in page

    @pytest.mark.rule("page.dates")
    @pytest.mark.parametrize("language", ["en-gb", "de", "es", "fr", "it", "nl"])
    @pytest.mark.parametrize("typed", ["10,50", "10.50", "10,5 €"])
    def test_are_typed_with_a_comma_or_a_point(self, lea: Payer, language: str, typed: str) -> None:
        lea.client.post("/pay/language", {"language": language, "next": "/pay"})
        assert by_amounts(lea, name=["Finn"], amount=[typed]).status_code == 303
        assert shares(lea.checkout) == [("Finn", 1050)]

    def test_can_be_the_whole_order(self, lea: Payer) -> None:
        by_amounts(lea, name=[""], amount=["90"])
        assert shares(lea.checkout) == [("", 9000)]

    def test_are_shown_again_as_they_were_typed(self, lea: Payer) -> None:
        page = words(by_amounts(lea, name=["Finn"], amount=["100"]))
        assert "£10.00 more than the order. Reduce a share." in page
        assert 'value="Finn"' in page and 'value="100"' in page

    def test_above_the_total_are_marked_and_linked_to_the_notice(self, lea: Payer) -> None:
        page = words(by_amounts(lea, name=["Finn", "Amy", ""], amount=["70", "30", ""]))
        assert re.search(r'<div class="notice tone-stop" id="not-saved" role="alert"', page)
        assert blamed(page) == ["amount-2", "amount-3"], "what is empty is not to blame"
        page = words(by_amounts(lea, name=["Finn", "Amy"], amount=["70", "x"]))
        assert blamed(page) == [] and 'aria-describedby="amount-3-error"' in page

    def test_that_are_missing_are_asked_for_in_the_first_field(self, lea: Payer) -> None:
        assert blamed(words(by_amounts(lea, name=["", ""], amount=["", ""]))) == ["amount-2"]

    def test_are_shown_when_the_step_is_opened_again(self, lea: Payer) -> None:
        by_amounts(lea, name=["Finn"], amount=["24"])
        page = words(lea.get("/split"))
        assert 'value="24.00"' in page and _is_chosen(page, "own")

    def test_can_be_extended_by_a_mate_without_javascript(self, lea: Payer) -> None:
        page = by_amounts(lea, name=["Finn", "Amy", "Tom"], amount=["1", "2", "x"], add=["1"])
        assert page.status_code == 200 and words(page).count("<li data-row") == 4
        assert "Enter an amount" not in words(page) and not lea.checkout.payment_requests.exists()

    @pytest.mark.rule("split.shares")
    def test_allow_at_most_nineteen_mates(self, lea: Payer) -> None:
        page = words(by_amounts(lea, name=[""] * 30, amount=["1"] * 30, add=["1"]))
        assert page.count("<li data-row") == 19 and "data-add hidden" in page

    @pytest.mark.rule("split.shares")
    def test_of_more_than_nineteen_mates_are_refused_completely(self, lea: Payer) -> None:
        for more in ({"amount": ["1"] * 25, "name": []}, {"amount": ["1"] * 19, "name": [""] * 19 + ["Tom"]}):
            answer = by_amounts(lea, **more)
            page = words(answer)
            assert answer.status_code == 422 and page.count("<li data-row") == 19
            assert "At most 19 mates can share the cost. The others were left out" in page
            assert shares(lea.checkout) == []
        assert by_amounts(lea, name=["Finn", *[""] * 24], amount=["1"] * 19 + [""] * 6).status_code == 303
        assert len(shares(lea.checkout)) == 19

    def test_replace_an_equal_split(self, lea: Payer) -> None:
        equally(lea, 4)
        by_amounts(lea, name=["Finn"], amount=["24"])
        assert shares(lea.checkout) == [("Finn", 2400)]
        lea.post("/split", split="all")
        assert shares(lea.checkout) == []

    def test_keep_a_name_in_one_harmless_line(self, lea: Payer) -> None:
        by_amounts(lea, name=["<b>F\x00inn\n" + "x" * 100], amount=["1"], your_name=["L\x00ea " + "x" * 100])
        ((name, _),) = shares(lea.checkout)
        assert name.startswith("<b>F inn x") and len(name) == 30
        assert "<b>F" not in words(lea.get("/split"))


@pytest.mark.rule("split.minimum")
class TestMinimumCardCharge:
    @pytest.fixture(autouse=True)
    def thirty_pence(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(SandboxProvider, "amount_rule", lambda _, currency: AmountRule(minimum=30))

    def test_is_the_minimum_share_of_a_mate(self, lea: Payer) -> None:
        refused = by_amounts(lea, name=["Finn", "Amy"], amount=["0.29", "0.30"])
        assert refused.status_code == 422 and words(refused).count("Enter at least £0.30.") == 1
        assert by_amounts(lea, name=["Finn"], amount=["0.30"]).status_code == 303
        assert shares(lea.checkout) == [("Finn", 30)]

    @pytest.mark.rule("split.shares")
    def test_limits_how_many_share_equally(self, acme: Merchant) -> None:
        line = factories.item(quantity=1, unit_price=149)
        lea = Payer(factories.checkout(acme, items=[line], total_amount=149))
        lea.sign_in()
        assert 'max="4"' in words(lea.get("/split"))
        refused = words(equally(lea, 5))
        assert "Choose between 2 and 4 people." in refused
        assert re.search(r'id="people"[^>]*aria-invalid="true" aria-describedby="people-error"', refused)
        assert equally(lea, 4).status_code == 303
        assert shares(lea.checkout) == [("", 37)] * 3

    def test_can_prevent_an_equal_split(self, acme: Merchant) -> None:
        line = factories.item(quantity=1, unit_price=59)
        lea = Payer(factories.checkout(acme, items=[line], total_amount=59))
        lea.sign_in()
        refused = equally(lea, 2)
        assert refused.status_code == 422 and "too small to share equally" in words(refused)

    def test_is_also_checked_outside_the_form(self, unpaid: Checkout) -> None:
        with pytest.raises(ValueError, match="30 to 99999999"):
            mate_shares.split(unpaid.pk, [Share(29)])
        Checkout.objects.update(amount=59)
        with pytest.raises(ValueError, match="30 to 99999999"):
            mate_shares.split_equally(unpaid.pk, 2)
        assert shares(unpaid) == []


@pytest.mark.rule("split.minimum")
def test_a_share_above_the_maximum_of_a_card_is_refused(
    unpaid: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SandboxProvider, "amount_rule", lambda _, currency: AmountRule(maximum=4499))
    with pytest.raises(ValueError, match="1 to 4499"):
        mate_shares.split(unpaid.pk, [Share(4500)])
    with pytest.raises(ValueError, match="1 to 4499"):
        mate_shares.split_equally(unpaid.pk, 2)
    mate_shares.split_equally(unpaid.pk, 3)
    assert shares(unpaid) == [("", 3000)] * 2


@pytest.mark.rule("pay.lead")
def test_a_previous_leads_form_does_not_change_the_next_leads_split(
    lea: Payer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A form that the previous lead sent must not change the split of the new lead.

    Lea has sent her form. Before her split is saved, Finn signs in and saves a split with Amy.
    """
    finn, is_valid = Payer(lea.checkout), SplitForm.is_valid

    def meanwhile(form: SplitForm) -> bool:
        monkeypatch.setattr(SplitForm, "is_valid", is_valid)
        finn.sign_in(FINN)
        assert by_amounts(finn, name=["Amy"], amount=["20"]).status_code == 303
        return form.is_valid()

    monkeypatch.setattr(SplitForm, "is_valid", meanwhile)
    assert lea.post("/split", split="all")["Location"] == f"/pay?id={lea.checkout.pk}"
    assert shares(lea.checkout) == [("Amy", 2000)]
    assert "Someone else has signed in to pay" in words(lea.get())


@pytest.mark.rule("split.minimum")
class TestCardChargeSteps:
    """The provider can charge only multiples of a fixed amount, called the step. The order here is £90.00."""

    @pytest.fixture(autouse=True)
    def whole_pounds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Set a step of £1.00 and a minimum of £1.30. The smallest possible amount is then £2.00."""
        rule = AmountRule(minimum=130, step=100)
        monkeypatch.setattr(SandboxProvider, "amount_rule", lambda _, currency: rule)

    def test_apply_to_a_mates_amount(self, lea: Payer) -> None:
        refused = by_amounts(lea, name=["Finn", "Amy", "Bo"], amount=["2.50", "2.00", "1.00"])
        told = words(refused)
        assert refused.status_code == 422
        assert (told.count("Enter a multiple of £1.00."), told.count("Enter at least £2.00.")) == (1, 1)
        assert by_amounts(lea, name=["Finn"], amount=["2.00"]).status_code == 303
        assert shares(lea.checkout) == [("Finn", 200)]

    def test_apply_to_an_equal_share_and_the_rest_is_the_leads(self, lea: Payer) -> None:
        assert equally(lea, 4).status_code == 303
        assert shares(lea.checkout) == [("", 2200)] * 3
        assert "£24.00" in words(lea.get("/split"))

    def test_are_also_checked_outside_the_form(self, unpaid: Checkout) -> None:
        with pytest.raises(ValueError, match="a multiple of 100"):
            mate_shares.split(unpaid.pk, [Share(250)])
        assert shares(unpaid) == []


@pytest.mark.parametrize(
    ("currency", "typed", "minor"),
    [
        ("GBP", "24", 2400),
        ("GBP", "24.5", 2450),
        ("GBP", " £ 1 234,50 ", 123450),
        ("GBP", "0.01", 1),
        ("JPY", "¥500", 500),
        ("JPY", "500.0", None),
        ("KWD", "1.234", 1234),
        ("KWD", "1.2345", None),
        ("GBP", "1.234", None),
        ("GBP", "-1", None),
        ("GBP", "", None),
        ("GBP", "１", None),
    ],
)
def test_an_amount_is_read_in_the_currencys_own_units(currency: str, typed: str, minor: int | None) -> None:
    assert money.parse(typed, currency) == minor


@pytest.mark.parametrize(("currency", "shown"), [("GBP", "24.00"), ("JPY", "2400"), ("KWD", "2.400")])
def test_an_amount_can_be_typed_as_it_is_shown(currency: str, shown: str) -> None:
    assert money.plain_amount(2400, currency) == shown and money.parse(shown, currency) == 2400


@pytest.mark.parametrize(("currency", "typed", "minor"), [("JPY", "300", 300), ("KWD", "0.300", 300)])
def test_a_split_in_any_currency(acme: Merchant, currency: str, typed: str, minor: int) -> None:
    line = factories.item(currency=currency, quantity=1, unit_price=1000)
    lea = Payer(factories.checkout(acme, currency=currency, items=[line], total_amount=1000))
    lea.sign_in()
    by_amounts(lea, name=["Finn"], amount=[typed])
    assert shares(lea.checkout) == [("Finn", minor)]


@pytest.mark.rule("money.minor_units")
@pytest.mark.parametrize(
    ("currency", "language", "example"),
    [("GBP", "en-gb", "24.00"), ("GBP", "de", "24,00"), ("JPY", "en-gb", "2400"), ("KWD", "fr", "2,400")],
)
def test_the_example_amount_of_the_page_is_accepted(
    acme: Merchant, currency: str, language: str, example: str
) -> None:
    line = factories.item(currency=currency, quantity=1, unit_price=9000)
    lea = Payer(factories.checkout(acme, currency=currency, items=[line], total_amount=9000))
    lea.sign_in()
    lea.client.post("/pay/language", {"language": language, "next": "/pay"})
    assert f" {example}." in words(by_amounts(lea, name=["Finn"], amount=["some"]))
    assert by_amounts(lea, name=["Finn"], amount=[example]).status_code == 303
    assert shares(lea.checkout) == [("Finn", 2400)]
