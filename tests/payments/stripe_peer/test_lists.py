"""The peer's lists have pages of random size and a random order within a second, and leave out old events."""

from typing import Any

import pytest
import stripe as library
from stripe import StripeClient

from tests.payments.stripe_peer.remote import Remote

SEEDS = range(5)


def make(stripe: StripeClient, count: int) -> list[str]:
    """Create intents that all have the same creation time, in seconds. Return their ids."""
    return [stripe.v1.payment_intents.create({"amount": 1000, "currency": "usd"}).id for _ in range(count)]


class TestPages:
    def test_are_shorter_than_their_limit_and_say_that_there_are_more(
        self, peer: Remote, stripe: StripeClient
    ) -> None:
        sizes = set()
        for seed in SEEDS:
            peer.switch("clear", seed=seed)
            made = make(stripe, 7)
            first = stripe.v1.payment_intents.list({"limit": 100})
            assert first.has_more == (len(first.data) < 7)
            assert sorted(row.id for row in first.auto_paging_iter()) == sorted(made)
            sizes.add(len(first.data))
        assert len(sizes) > 1 and max(sizes) <= 7

    def test_have_ten_rows_where_no_limit_is_named(self, stripe: StripeClient) -> None:
        made = make(stripe, 11)
        first = stripe.v1.payment_intents.list()
        assert (len(first.data), first.has_more) == (10, True)
        assert sorted(row.id for row in first.auto_paging_iter()) == sorted(made)

    def test_are_never_empty_while_there_are_more(self, stripe: StripeClient) -> None:
        assert stripe.v1.payment_intents.list({"limit": 1}).data == []
        make(stripe, 3)
        assert len(stripe.v1.payment_intents.list({"limit": 1}).data) == 1

    def test_go_in_one_direction_at_a_time(self, stripe: StripeClient) -> None:
        one, other = make(stripe, 2)
        asked: Any = {"starting_after": one, "ending_before": other}
        with pytest.raises(library.InvalidRequestError):
            stripe.v1.payment_intents.list(asked)


class TestTheOrder:
    def test_within_a_second_is_arbitrary(self, peer: Remote, stripe: StripeClient) -> None:
        orders = set()
        for seed in SEEDS:
            peer.switch("clear", seed=seed)
            made = make(stripe, 4)
            listed = [row.id for row in stripe.v1.payment_intents.list().data]
            assert listed == [row.id for row in stripe.v1.payment_intents.list().data]
            orders.add(tuple(made.index(name) for name in listed))
        assert len(orders) > 1

    def test_of_seconds_is_the_newest_first(self, peer: Remote, stripe: StripeClient) -> None:
        made = []
        for _ in range(4):
            made += make(stripe, 1)
            peer.switch("advance", seconds=2)
        assert [row.id for row in stripe.v1.payment_intents.list().data] == made[::-1]

    def test_of_events_is_arbitrary(self, peer: Remote, stripe: StripeClient) -> None:
        orders = set()
        for seed in SEEDS:
            peer.switch("clear", seed=seed)
            given: Any = {"amount": 2000, "currency": "usd", "payment_method": "pm_card_visa"}
            stripe.v1.payment_intents.create(given | {"confirm": True, "return_url": "https://shop.example"})
            orders.add(tuple(row.type for row in stripe.v1.events.list().data))
        assert len(orders) > 1


class TestEvents:
    def test_of_thirty_days_ago_are_not_listed(self, peer: Remote, stripe: StripeClient) -> None:
        make(stripe, 1)
        peer.switch("advance", seconds=29 * 86400)
        assert len(stripe.v1.events.list().data) == 1
        peer.switch("advance", seconds=86400)
        assert stripe.v1.events.list().data == []

    @pytest.mark.parametrize(
        "asked",
        [{"types": [f"refund.{n}" for n in range(21)]}, {"type": "refund.*", "types": ["refund.failed"]}],
    )
    def test_are_filtered_by_one_name_or_by_up_to_twenty(self, stripe: StripeClient, asked: Any) -> None:
        with pytest.raises(library.InvalidRequestError) as refused:
            stripe.v1.events.list(asked)
        assert refused.value.param == "types"
