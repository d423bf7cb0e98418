"""An order as the portal reads it: its checkout as it is now, and what several parts of its page show, read once."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, JSONObject
from django.http import Http404
from django.utils.functional import cached_property

from checkout import reading, settling
from checkout.models import Checkout, PaymentRequest
from checkout.settling.cards import Accounts
from config.lib.prepared import Prepared
from payments import open_operations
from payments.discrepancies import kinds
from payments.models import Booking, Discrepancy, Dispute, Merchant, Movement, Posting
from portal.models import CheckoutNote
from webhooks import lookup
from webhooks.models import Delivery

ACTS = (kinds.OUTSIDE_CAPTURE.name, kinds.CAPTURED_ANOTHER_AMOUNT.name, kinds.OUTSIDE_VOID.name)


def _acts_on(checkout: OuterRef, merchant: OuterRef) -> ArraySubquery:
    """Return a subquery for what others did at the provider that no operator has closed yet: kind, facts and `at`."""
    rows = Discrepancy.objects.filter(kind__in=ACTS, closed_at=None, merchant=merchant)
    of_order = rows.annotate(of=KeyTextTransform("checkout", "facts")).filter(of=Cast(checkout, TextField()))
    told = JSONObject(kind="kind", facts="facts", at="created_at")
    return ArraySubquery(of_order.order_by("created_at").values(told=told))


_ONE = Prepared(
    lambda pk, merchant: reading.with_read_at(
        open_operations.with_open_kind(
            settling.with_untold(
                Checkout.objects.filter(pk=pk, merchant=merchant)
                .with_bill()
                .select_related("merchant", "payment")
            )
        ).annotate(acts=_acts_on(OuterRef("pk"), OuterRef("merchant")))
    ),
    UUID,
    UUID,
)


@dataclass(frozen=True)
class Order:
    """A merchant's checkout, with its payment and merchant; the rest is read when it is first asked for."""

    checkout: Checkout

    @property
    def open_kind(self) -> str | None:
        """The kind of the card operation that is open on it; None if none is."""
        read: Any = self.checkout
        kind: str | None = read.open_kind
        return kind

    @property
    def acts(self) -> list[dict[str, Any]]:
        """What was done with it in the provider's own dashboard and is open: kind, facts, when we learned of it."""
        read: Any = self.checkout
        acts: list[dict[str, Any]] = read.acts
        return acts

    @cached_property
    def shares(self) -> list[PaymentRequest]:
        """What the mates were asked for; nobody was if nobody is to share."""
        return list(PaymentRequest.objects.filter(checkout=self.checkout)) if self.checkout.has_mates else []

    @cached_property
    def disputes(self) -> list[Dispute]:
        """The payers' disputes with their payments, newest first."""
        rows = Dispute.objects.filter(checkout_uuid=self.checkout.pk).select_related("payment")
        return list(rows.order_by("-created_at"))

    @cached_property
    def accounts(self) -> Accounts | None:
        """What each card has borne; None where the statuses of order and shares say it all."""
        return settling.look(self.checkout)

    @cached_property
    def movements(self) -> list[Movement]:
        """What has moved at the provider, the first first, with the payments and what caused it."""
        rows = Movement.objects.filter(checkout_uuid=self.checkout.pk)
        return list(rows.select_related("payment", "operation", "dispute").order_by("recorded_at", "pk"))

    @cached_property
    def bookings(self) -> list[Booking]:
        """What was booked without moving money at the provider, with the payments."""
        rows = Booking.objects.filter(checkout_uuid=self.checkout.pk)
        return list(rows.select_related("payment").order_by("created_at", "pk"))

    @cached_property
    def notes(self) -> list[CheckoutNote]:
        """What the merchant's people have noted, newest first."""
        rows = CheckoutNote.objects.filter(checkout_uuid=self.checkout.pk, merchant=self.checkout.merchant_id)
        return list(rows.select_related("user").order_by("-created_at", "-pk"))

    @cached_property
    def deliveries(self) -> dict[UUID, Delivery]:
        """The deliveries of its events that are not deleted yet, by their ids."""
        events = list(lookup.events_about(self.checkout.pk).values_list("pk", flat=True))
        return {
            row.pk: row for row in lookup.deliveries_of(events).filter(merchant=self.checkout.merchant_id)
        }

    @cached_property
    def postings(self) -> list[Posting]:
        """All that the ledger says of it: a few lines for each card."""
        rows = Posting.objects.filter(checkout_uuid=self.checkout.pk, merchant=self.checkout.merchant_id)
        return list(rows.order_by("created_at", "pk"))


def read(merchant: Merchant, checkout_uuid: UUID) -> Order:
    """Return the merchant's order as it is now. Raises Http404, also for another merchant's."""
    try:
        return Order(reading.one(_ONE, checkout_uuid, merchant.pk))
    except Checkout.DoesNotExist:
        raise Http404 from None
