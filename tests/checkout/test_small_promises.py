"""Small promises about who pays, what is read, and what may be done."""

from collections.abc import Callable

import pytest

from checkout import sharing, transitions
from checkout.models import Checkout
from config.lib import clock
from payments.provider import CardUse
from payments.providers.sandbox import bank
from tests import mates
from tests.checkout.test_doubtful_payments import break_down, pump
from tests.conftest import Api
from tests.factories import CAUSE, CustomerFactory, make_late
from tests.refusals import nothing_moves

pytestmark = pytest.mark.django_db


class TestTheLead:
    @pytest.mark.rule("pay.lead")
    def test_who_is_not_it_any_more_does_not_pay(self, unpaid: Checkout) -> None:
        """Somebody else has signed in while the card page was open."""
        first, second = CustomerFactory.create(), CustomerFactory.create()
        sharing.join(unpaid.pk, first)
        token = bank.tokenise(subject=unpaid.pk, number="4242424242424242")
        sharing.join(unpaid.pk, second)
        with nothing_moves(), pytest.raises(transitions.NotTheLead):
            transitions.authorize(unpaid.pk, card=CardUse(token), lead=first, cause=CAUSE)
        paid = transitions.authorize(unpaid.pk, card=CardUse(token), lead=second, cause=CAUSE)
        assert paid.verdict == "succeeded"

    def test_of_the_helper_is_whoever_pays_last(self, api: Api, unpaid: Checkout) -> None:
        path = f"/api/sandbox/v1/checkouts/{unpaid.pk}/pay"
        for phone, card, status in (
            ("+447700900123", "4000000000000002", 402),
            ("+447700900999", "4242424242424242", 200),
        ):
            headers = api.headers({})
            body = {"card": card, "phone": phone}
            answer = api.client.post(path, body, content_type="application/json", headers=headers)
            assert answer.status_code == status
        unpaid.refresh_from_db()
        assert unpaid.lead is not None and unpaid.lead.phone == "+447700900999"


@pytest.mark.rule("list.filters")
class TestTheListOfChanges:
    def seen_since(self, api: Api, at: str) -> list[str]:
        listed = api.get(f"checkouts?updated_after={at}").json()["data"]["checkouts"]
        return [row["checkout_uuid"] for row in listed]

    def test_has_an_order_whose_share_was_paid(
        self, api: Api, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        (share,) = mates.split(unpaid, 2000)
        transitions.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
        at = str(clock.iso(clock.now()))
        assert self.seen_since(api, at) == []
        mates.pay(share)
        mates.pump(unpaid.pk)
        assert self.seen_since(api, at) == [str(unpaid.pk)]

    def test_has_an_order_whose_release_is_confirmed(self, api: Api, held: Checkout) -> None:
        transitions.cancel(held.merchant, held.pk, cause=CAUSE)
        at = str(clock.iso(clock.now()))
        pump()
        assert self.seen_since(api, at) == [str(held.pk)]


@pytest.mark.rule("read.actions")
class TestWhatMayBeDone:
    def test_is_nothing_past_the_deadline_while_a_capture_is_in_doubt(self, api: Api, held: Checkout) -> None:
        break_down("capture", "down")
        break_down("look_up", "down", times=9)
        with pytest.raises(transitions.OutcomeUnknown):
            transitions.capture(held.merchant, held.pk, cause=CAUSE)
        assert api.get(f"checkouts/{held.pk}").json()["data"]["available_actions"] == ["capture", "cancel"]
        make_late(held)
        (listed,) = api.get("checkouts").json()["data"]["checkouts"]
        read = api.get(f"checkouts/{held.pk}").json()["data"]
        assert read["available_actions"] == listed["available_actions"] == []
