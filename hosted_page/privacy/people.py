"""Who a person is: a number that was proven, or an address that was ticked, and all that hangs on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q, QuerySet

from checkout.models import Checkout, Customer, MerchantCustomer, PaymentRequest
from config.lib import crypto
from hosted_page.models import OptIn


class Unknown(Exception):
    """Nobody is known by this number or address."""


@dataclass(frozen=True)
class Person:
    """A customer, whose number was proven, or somebody who is known by a ticked address alone."""

    customer: Customer | None
    known_as: Sequence[MerchantCustomer]

    @property
    def led(self) -> QuerySet[Checkout]:
        """The orders that they have paid as the lead, or begun to."""
        return Checkout.objects.filter(lead=self.customer) if self.customer else Checkout.objects.none()

    @property
    def shares(self) -> QuerySet[PaymentRequest]:
        """The shares that they have paid for others, or that were asked of their number."""
        if self.customer is None:
            return PaymentRequest.objects.none()
        asked = Q(phone=self.customer.phone) if self.customer.phone else Q(pk=None)
        return PaymentRequest.objects.filter(Q(mate=self.customer) | asked)

    @property
    def opt_ins(self) -> QuerySet[OptIn]:
        return OptIn.objects.filter(person__in=self.known_as)


def of_customer(customer_uuid: UUID) -> Person:
    """Return the person with this id of ours. Raises Unknown."""
    customer = Customer.objects.filter(pk=customer_uuid, erased_at=None).first()
    if customer is None:
        raise Unknown
    return Person(customer, list(MerchantCustomer.objects.filter(customer=customer)))


def find(*, phone: str = "", email: str = "") -> Person:
    """Return the person with this number (E.164), or with this address who has none. Raises Unknown."""
    if phone:
        customer = Customer.objects.filter(phone=phone).first()
        if customer is None:
            raise Unknown
        return of_customer(customer.pk)
    digest = crypto.keyed_digest("e-mail", email.lower())
    ticked = MerchantCustomer.objects.filter(
        pk__in=OptIn.objects.filter(email_digest=digest).values("person")
    )
    known_as = list(ticked.select_related("customer"))
    customers = {row.customer for row in known_as if row.customer}
    if len(customers) == 1 and all(row.customer for row in known_as):
        return of_customer(customers.pop().pk)
    nameless = [row for row in known_as if row.customer is None]
    if not nameless:
        raise Unknown
    return Person(None, nameless)
