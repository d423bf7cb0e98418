"""An order for the portal's page: its current checkout, and related rows, each of which is read at most once."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, Sum, TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, JSONObject
from django.http import Http404
from django.utils.functional import cached_property

from checkout import current_checkouts, settling
from checkout.models import Change, Checkout, PaymentRequest
from checkout.settling import cards
from checkout.settling.cards import Accounts
from checkout.states import ShareStatus, Status
from payments import open_operations
from payments.discrepancies import kinds
from payments.models import Booking, Discrepancy, Dispute, Merchant, Movement, Operation, Posting
from portal.models import CheckoutNote
from webhooks import lookup
from webhooks.models import Delivery

OUTSIDE_ACTION_KINDS = (
    kinds.OUTSIDE_CAPTURE.name,
    kinds.CAPTURED_ANOTHER_AMOUNT.name,
    kinds.OUTSIDE_VOID.name,
)


def _open_actions_on(checkout: OuterRef, merchant: OuterRef) -> ArraySubquery:
    """Return a subquery for the actions on an order that were taken outside the service and are still open.

    An action is open until an operator closes it. It has `kind`, `facts` and `at`.
    """
    rows = Discrepancy.objects.filter(kind__in=OUTSIDE_ACTION_KINDS, closed_at=None, merchant=merchant)
    of_order = rows.annotate(checkout_text=KeyTextTransform("checkout", "facts")).filter(
        checkout_text=Cast(checkout, TextField())
    )
    action = JSONObject(kind="kind", facts="facts", at="created_at")
    return ArraySubquery(of_order.order_by("created_at").values(action=action))


def _read_checkout(checkout_uuid: UUID, merchant: UUID) -> Checkout:
    of_merchant = Checkout.objects.filter(merchant=merchant).with_bill().select_related("merchant", "payment")
    with_operation = open_operations.with_open_kind(settling.with_needs_accounts(of_merchant))
    with_actions = with_operation.annotate(
        outside_actions=_open_actions_on(OuterRef("pk"), OuterRef("merchant"))
    )
    return current_checkouts.with_read_at(with_actions).get(pk=checkout_uuid)


@dataclass(frozen=True)
class Order:
    """A merchant's checkout with its payment and merchant. Other data is read when it is first needed."""

    checkout: Checkout

    @property
    def open_kind(self) -> str | None:
        """The kind of the order's open card operation, or None if no operation is open."""
        annotated: Any = self.checkout
        kind: str | None = annotated.open_kind
        return kind

    @property
    def outside_actions(self) -> list[dict[str, Any]]:
        """The actions on the order that were taken outside the service and that no operator has closed.

        Each action has `kind`, `facts`, and `at`: the time at which the service learned of it.
        """
        annotated: Any = self.checkout
        actions: list[dict[str, Any]] = annotated.outside_actions
        return actions

    @cached_property
    def shares(self) -> list[PaymentRequest]:
        """The mates' shares, or an empty list if the order has no mates."""
        return list(PaymentRequest.objects.filter(checkout=self.checkout)) if self.checkout.has_mates else []

    @cached_property
    def reimbursed_amounts(self) -> dict[UUID, int]:
        """The amounts that the lead's card got for shares whose status does not show this, by the share's id.

        Such a share was refunded later, or is disputed.
        """
        paid = [share for share in self.shares if share.status == ShareStatus.PAID] if self.accounts else []
        reimbursed = {
            share.pk: self.accounts.reimbursement(share)[1].received for share in paid if self.accounts
        }
        return self._reimbursed_before_refund() | {
            share: amount for share, amount in reimbursed.items() if amount
        }

    def _reimbursed_before_refund(self) -> dict[UUID, int]:
        refunded = [share.pk for share in self.shares if share.status == ShareStatus.REFUNDED]
        if not refunded:
            return {}
        reimbursements = Operation.objects.filter(
            share_uuid__in=refunded,
            purpose=Operation.Purpose.REIMBURSEMENT,
            state=Operation.State.SUCCEEDED,
        )
        return dict(reimbursements.values_list("share_uuid").annotate(Sum("amount")))

    @cached_property
    def ends_of_refunds(self) -> list[Change]:
        """The changes of state with which a refund ended, oldest first."""
        rows = Change.objects.filter(checkout=self.checkout, origin=Status.REFUNDING)
        return list(rows.order_by("created_at", "pk"))

    @cached_property
    def sent_parts(self) -> list[Operation]:
        """For each card, the newest part of a refund that was sent to it, with its payment."""
        parts = Operation.objects.filter(
            payment__checkout_uuid=self.checkout.pk, purpose=Operation.Purpose.REFUND_PART
        )
        sent = parts.exclude(state=Operation.State.PLANNED).exclude(reason__in=cards.NOT_CARRIED_OUT)
        newest = sent.order_by("payment", "-created_at", "-pk").distinct("payment")
        return list(newest.select_related("payment"))

    @property
    def has_refused_part(self) -> bool:
        """Whether the bank has refused a part of the refund that the service has not sent again since."""
        return any(part.state == Operation.State.FAILED for part in self.sent_parts)

    @cached_property
    def disputes(self) -> list[Dispute]:
        """The payers' disputes, each with its payment, newest first."""
        rows = Dispute.objects.filter(checkout_uuid=self.checkout.pk).select_related("payment")
        return list(rows.order_by("-created_at"))

    @cached_property
    def accounts(self) -> Accounts | None:
        """What each card bears. It is None if the statuses of the order and its shares already show it."""
        return settling.read_accounts_unlocked(self.checkout)

    @cached_property
    def movements(self) -> list[Movement]:
        """The movements at the provider, each with its payment, operation and dispute, oldest first."""
        rows = Movement.objects.filter(checkout_uuid=self.checkout.pk)
        return list(rows.select_related("payment", "operation", "dispute").order_by("recorded_at", "pk"))

    @cached_property
    def bookings(self) -> list[Booking]:
        """The bookings, for which no money moved at the provider, each with its payment."""
        rows = Booking.objects.filter(checkout_uuid=self.checkout.pk)
        return list(rows.select_related("payment").order_by("created_at", "pk"))

    @cached_property
    def notes(self) -> list[CheckoutNote]:
        """The notes that the merchant's people wrote, newest first."""
        rows = CheckoutNote.objects.filter(checkout_uuid=self.checkout.pk, merchant=self.checkout.merchant_id)
        return list(rows.select_related("user").order_by("-created_at", "-pk"))

    @cached_property
    def deliveries(self) -> dict[UUID, Delivery]:
        """The deliveries of the order's events, by delivery id, without deleted deliveries."""
        events = list(lookup.events_about(self.checkout.pk).values_list("pk", flat=True))
        return {
            row.pk: row for row in lookup.deliveries_of(events).filter(merchant=self.checkout.merchant_id)
        }

    @cached_property
    def postings(self) -> list[Posting]:
        """The order's lines in the ledger, oldest first. Each card has only a few."""
        rows = Posting.objects.filter(checkout_uuid=self.checkout.pk, merchant=self.checkout.merchant_id)
        return list(rows.order_by("created_at", "pk"))


def read_order(merchant: Merchant, checkout_uuid: UUID) -> Order:
    """Return the merchant's order in its current state.

    Raises Http404 for an unknown order and for a different merchant's order.
    """
    try:
        return Order(current_checkouts.read_one(_read_checkout, checkout_uuid, merchant.pk))
    except Checkout.DoesNotExist:
        raise Http404 from None
