from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from checkout import captures, refunds
from checkout.models import Checkout, PaymentRequest
from checkout.proof import ledger_proof, statements
from payments.discrepancies import kinds
from payments.models import Discrepancy, Merchant, Operation, Payment
from payments.providers.sandbox import fault_injection
from tests import factories, mates, outside
from tests.checkout.proof.tampering import (
    MINE,
    NEW,
    ONE,
    TAMPERINGS,
    UNBALANCED,
    Tampering,
    copy,
    prove,
    tamper,
    without_guards,
)
from tests.factories import CAUSE

pytestmark = pytest.mark.django_db


@pytest.fixture
def order_at(at: Callable[[str], Checkout]) -> Callable[[str], Checkout]:
    """Return a function that brings Acme's checkout to a status. In some statuses, shares are paid too."""

    def to(status: str) -> Checkout:
        if status not in ("reimbursed", "unreimbursed refunded", "split refunded"):
            return at(status)
        order = at("shared")
        if status != "unreimbursed refunded":
            for _ in range(2):
                outside.settle(order)
        if status != "reimbursed":
            refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
            outside.settle(order)
        assert order.status == ("captured" if status == "reimbursed" else "refunded")
        return order

    return to


@pytest.fixture(autouse=True)
def bystander(rival: Merchant, pay: Callable[..., Checkout]) -> Checkout:
    """Return a captured checkout whose records the tests do not change."""
    paid = pay(factories.checkout(rival))
    return captures.capture(rival, paid.pk, cause=CAUSE)


def subjects_and_kinds(breaches: list[ledger_proof.Breach]) -> set[tuple[object, str]]:
    return {(breach.subject, breach.kind.name) for breach in breaches}


class TestBreaches:
    @pytest.mark.rule("money.proof")
    @pytest.mark.parametrize(
        "status",
        [
            "created",
            "authorized",
            "captured",
            "shared",
            "reimbursed",
            "refunding",
            "refunded",
            "unreimbursed refunded",
            "split refunded",
            "voided",
            "lapsed",
            "expired",
        ],
    )
    def test_are_none_in_any_status(self, order_at: Callable[[str], Checkout], status: str) -> None:
        order_at(status)
        assert (
            ledger_proof.find_breaches()
            == ledger_proof.find_breaches(since=timezone.now() - timedelta(hours=1))
            == []
        )

    @pytest.mark.rule("money.nothing_held", "money.proof")
    @pytest.mark.parametrize(
        "tampering", TAMPERINGS, ids=lambda case: f"{case.status} {' '.join(sorted(case.kinds))}"
    )
    def test_name_the_checkout_that_was_tampered_with_and_no_other(
        self, order_at: Callable[[str], Checkout], tampering: Tampering
    ) -> None:
        checkout = order_at(tampering.status)
        tamper(checkout, tampering.sql)
        expected = {(checkout.pk, kind) for kind in tampering.kinds}
        found = ledger_proof.find_breaches()
        assert subjects_and_kinds(found) == expected
        assert {breach.merchant_uuid for breach in found} == {checkout.merchant_id}
        assert ledger_proof.find_breaches(since=timezone.now() - timedelta(hours=1)) == found

    def test_cover_each_invariant_and_each_name_fits_its_column(self) -> None:
        broken = set.union(*(case.kinds for case in TAMPERINGS))
        assert {invariant.kind.name for invariant in statements.INVARIANTS} == broken
        assert max(map(len, broken)) <= 60

    @pytest.mark.parametrize("hides", ["withdrawn", "begun"])
    def test_name_a_refund_with_a_part_that_is_neither_planned_nor_waiting(
        self, order: Checkout, shares: list[PaymentRequest], settings: Settings, hides: str
    ) -> None:
        """A refused part has to be planned again once another part has succeeded.

        A part that was only withdrawn has to be planned again at once.
        """
        mates.pay(shares[0])
        mates.pump(order.pk)
        settings.SANDBOX_REFUND_SECONDS = 3600
        fault_injection.set_fault(verb="refund", mode="refund_card_closed", times=1)
        refund = mates.give_back(order)
        mates.pump(order.pk)
        refused, under_way = Operation.objects.filter(refund_uuid=refund.pk).order_by("state")
        if hides == "withdrawn":
            without_guards(
                "UPDATE payments_operation SET reason = 'withdrawn' WHERE id = %(id)s", id=refused.pk
            )
        else:
            of_card = f"{MINE} AND original.kind = 'captured' AND original.payment_id = %(card)s"
            changes = {"id": NEW, "kind": "'refunded'", "operation_id": "%(id)s::uuid", "amount": "-1"}
            given = ONE + copy("payments_movement", of_card, **changes)
            without_guards(given, checkout=order.pk, id=under_way.pk, card=under_way.payment_id)
        found = {breach.kind.name for breach in ledger_proof.find_breaches()}
        assert "ledger_refund_not_planned" in found

    def test_do_not_name_a_refused_part_while_a_mates_card_is_being_charged(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        """The refund waits until the outcome of the mate's charge is known, because it can only fail as a whole."""
        fault_injection.set_fault(verb="capture", mode="down", times=1)
        mates.pay(shares[0])
        fault_injection.set_fault(verb="refund", mode="refund_card_closed", times=1)
        fault_injection.set_fault(verb="look_up", mode="down", times=1)
        mates.give_back(order)
        mates.pump(order.pk)
        refused = Operation.objects.get(payment__checkout_uuid=order.pk, kind="refund")
        shares[0].refresh_from_db()
        assert (refused.state, shares[0].status) == ("failed", "paying")
        assert ledger_proof.find_breaches() == []

    def test_do_not_name_a_refused_part_while_a_dashboard_refund_of_another_card_is_pending(
        self, order: Checkout, shares: list[PaymentRequest], settings: Settings
    ) -> None:
        """The refund ends only after all refunds of the order are confirmed, including those from outside."""
        mates.pay(shares[0])
        for _ in range(2):
            outside.settle(order)
        settings.SANDBOX_REFUND_SECONDS = 3600
        payment = Payment.objects.get(subject=shares[0].pk)
        outside.refund_outside(payment, 500, is_pending=True)
        outside.ask_about(payment)
        fault_injection.set_fault(verb="refund", mode="refund_card_closed", times=2)
        refund = mates.give_back(order)
        mates.pump(order.pk)
        parts = Operation.objects.filter(refund_uuid=refund.pk)
        order.refresh_from_db()
        assert ({part.state for part in parts}, order.status) == ({"failed"}, "refunding")
        assert ledger_proof.find_breaches() == []

    def test_do_not_count_a_capture_that_was_in_doubt_over_its_deadline(self, captured: Checkout) -> None:
        tamper(captured, "UPDATE payments_operation SET attempts = 2 WHERE kind = 'capture'")
        tamper(captured, "UPDATE checkout_checkout SET capture_before = captured_at - interval '1 hour'")
        assert ledger_proof.find_breaches() == []


class TestReport:
    def test_leaves_one_discrepancy_for_each_breach(self, captured: Checkout) -> None:
        tamper(captured, "DELETE FROM payments_posting WHERE checkout_uuid = %(checkout)s")
        for _ in range(2):
            assert ledger_proof.report_breaches_since(since=timezone.now() - timedelta(hours=2)) == 1
        left = Discrepancy.objects.get()
        assert (left.kind, left.subject, left.merchant_id) == (
            "ledger_not_posted",
            captured.pk,
            captured.merchant_id,
        )

    def test_leaves_no_discrepancy_without_a_breach(self, captured: Checkout) -> None:
        assert (
            ledger_proof.report_breaches_since(since=timezone.now() - timedelta(hours=2)) == 0
            and not Discrepancy.objects.exists()
        )


class TestTheCommand:
    def test_prints_the_number_of_cases_of_each_invariant(self, captured: Checkout) -> None:
        code, said, complained = prove()
        assert (code, complained) == (0, "")
        proved = [row.kind for row in (*statements.INVARIANTS, *statements.REFERENCES)]
        assert [line for line in said.splitlines() if line.startswith("0 cases: ")] == [
            f"0 cases: {kind.sentence}" for kind in (*proved, kinds.LEDGER_SUMS)
        ]
        assert said.endswith("2 checkouts, 4 postings\n")

    @pytest.mark.rule("money.proof")
    def test_names_each_breach_and_exits_1(self, captured: Checkout) -> None:
        tamper(captured, UNBALANCED)
        for arguments in ((), ("--since-hours", "2")):
            code, said, complained = prove(*arguments)
            assert (code, said) == (1, "")
            assert complained == f"{captured.pk}  {kinds.LEDGER_UNBALANCED.sentence}\n"
