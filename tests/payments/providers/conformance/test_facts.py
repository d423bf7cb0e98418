"""An adapter declares correctly which amounts it accepts, how long its keys live, and that it has a card page."""

from datetime import timedelta

import pytest
from uuid_utils.compat import uuid7

from payments import safe_answers
from payments.models import Merchant
from payments.provider import CardForm, CardPage, Verdict
from tests.payments.providers.conformance.desk import Desk
from tests.payments.providers.conformance.story import Kind, Story

CURRENCIES = ["GBP", "USD", "EUR", "JPY", "KRW", "KWD", "ISK", "UGX"]


@pytest.mark.parametrize("currency", CURRENCIES)
class TestAnAmount:
    @pytest.mark.parametrize("bound", ["minimum", "maximum"])
    def test_at_a_bound_is_held_captured_and_refunded(
        self, desk: Desk, acme: Merchant, currency: str, bound: str
    ) -> None:
        amount = getattr(safe_answers.amount_rule(currency), bound)
        story = Story(desk, acme, amount=amount, currency=currency)
        for kind in (Kind.AUTHORIZE, Kind.CAPTURE, Kind.REFUND):
            ended = story.do(kind)
            assert (ended.verdict, ended.amount) == (Verdict.SUCCEEDED, story.payment.amount)

    def test_on_any_step_is_held_exactly(self, desk: Desk, acme: Merchant, currency: str) -> None:
        rule = safe_answers.amount_rule(currency)
        amount = rule.minimum + 7 * rule.step
        held = Story(desk, acme, amount=amount, currency=currency).do(Kind.AUTHORIZE)
        assert (held.verdict, held.amount) == (Verdict.SUCCEEDED, amount)


class TestTheAdapter:
    def test_says_how_long_a_key_lives(self, desk: Desk) -> None:
        assert timedelta(hours=2) < desk.provider.key_life <= timedelta(days=30)

    def test_has_a_card_page(self, desk: Desk) -> None:
        page = safe_answers.card_page(CardForm(uuid7(), "https://pay.example/paid?id=1", 9000, "GBP"))
        if isinstance(page, CardPage):
            assert page.template and all(page.allows.values())
        else:
            assert page.startswith("http")

    def test_lists_origins_only_in_valid_form(self, desk: Desk) -> None:
        for origin in (*desk.provider.page_origins, *desk.provider.payment_origins):
            assert origin.count("/") == 2 and "'" not in origin
