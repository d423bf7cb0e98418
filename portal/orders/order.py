"""An order as the portal reads it: its checkout as it is now, and what several parts of its page show, read once."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import OuterRef
from django.http import Http404
from django.utils.functional import cached_property

from checkout import reading
from checkout.models import Checkout, PaymentRequest
from config.lib.prepared import Prepared
from payments import open_operations
from payments.models import Booking, Dispute, Merchant, Posting
from payments.outside import acts
from portal.models import CheckoutNote
from webhooks import lookup
from webhooks.models import Delivery

_ONE = Prepared(
    lambda pk, merchant: reading.with_read_at(
        open_operations.with_open_kind(
            Checkout.objects.filter(pk=pk, merchant=merchant)
            .with_bill()
            .select_related("merchant", "payment")
        ).annotate(acts=acts.open_on(OuterRef("pk"), OuterRef("merchant")))
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
    def bookings(self) -> list[Booking]:
        """What operators booked, with the payments."""
        return list(Booking.objects.filter(checkout_uuid=self.checkout.pk).select_related("payment"))

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
