"""The tables of allowed status changes: the database and the code have the same pairs, and refuse all others."""

import itertools
import re
from collections.abc import Callable, Collection
from pathlib import Path

import pytest
from django.db import IntegrityError, transaction

from checkout import states
from checkout.models import Checkout, PaymentRequest
from checkout.states import ALLOWED_SHARE_MOVES, MoveRefused, ShareStatus, Status
from tests import mates


def pairs(text: str) -> set[tuple[str, ...]]:
    return set(re.findall(r"\('(\w+)', '(\w+)'\)", text))


@pytest.mark.rule("money.states")
class TestTheTable:
    def test_the_database_holds_exactly_its_pairs(self) -> None:
        of_orders, of_shares = (
            Path("checkout/sql/states.sql").read_text().split("CREATE OR REPLACE FUNCTION share_moves")
        )
        assert pairs(of_orders) == {(str(origin), str(to)) for origin, to in states.ALLOWED_MOVES}
        assert pairs(of_shares) == {(str(origin), str(to)) for origin, to in states.ALLOWED_SHARE_MOVES}

    def test_equals_the_pairs_of_the_specification_and_our_three_additions(self) -> None:
        spec = {
            ("created", "authorized"),
            ("authorized", "captured"),
            ("authorized", "voided"),
            ("captured", "refunding"),
            ("refunding", "refunded"),
        }
        ours = {("created", "voided"), ("created", "expired"), ("refunding", "captured")}
        assert {(str(origin), str(to)) for origin, to in states.ALLOWED_MOVES} == spec | ours

    @pytest.mark.parametrize(
        ("statuses", "allowed", "check"),
        [
            (Status, states.ALLOWED_MOVES, states.check_move),
            (ShareStatus, ALLOWED_SHARE_MOVES, states.check_share_move),
        ],
        ids=["checkout", "share"],
    )
    def test_allows_exactly_its_pairs(
        self, statuses: type[Status], allowed: Collection[tuple[str, str]], check: Callable[[str, str], None]
    ) -> None:
        for origin, to in itertools.product(statuses, statuses):
            if (origin, to) in allowed:
                check(origin, to)
            else:
                with pytest.raises(MoveRefused, match=f"never goes from {origin} to {to}"):
                    check(origin, to)

    def test_has_no_change_from_a_final_status(self) -> None:
        ends = {Status.VOIDED, Status.EXPIRED, Status.REFUNDED}
        assert not ends & {origin for origin, _ in states.ALLOWED_MOVES}


@pytest.mark.rule("money.states")
@pytest.mark.django_db
class TestTheTableOfShares:
    @pytest.mark.parametrize("to", [to for to in ShareStatus if ("draft", to) not in ALLOWED_SHARE_MOVES])
    def test_refuses_a_change_that_it_does_not_contain(self, unpaid: Checkout, to: ShareStatus) -> None:
        (share,) = mates.split(unpaid, 2000)
        with pytest.raises(MoveRefused):
            share.move(to)
        if to != "draft":
            with pytest.raises(IntegrityError, match="never goes from"), transaction.atomic():
                PaymentRequest.objects.filter(pk=share.pk).update(status=to)
