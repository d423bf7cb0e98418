"""Finds a person by a phone number or by the e-mail address of an opt-in, and all rows about this person."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet

from checkout.models import Checkout, Customer, MerchantCustomer, PaymentRequest, Prefill
from hosted_page.models import OptIn
from hosted_page.opt_in import consent


class Unknown(Exception):
    """The service has no person with this number or address."""


class SeveralPeople(Exception):
    """Several people with verified numbers have opted in with this address. Search for each person by number."""


@dataclass(frozen=True)
class Person:
    """A customer with a verified number, or a person without a verified number.

    For a person without a verified number, `customer` is None. The service then knows the person only by the
    e-mail address of an opt-in (`known_as`) or by a number (`phone`).
    """

    customer: Customer | None
    known_as: Sequence[MerchantCustomer]
    # Only for a person who never signed in: a lead entered the number for a share, or a merchant sent it.
    phone: str = ""

    @property
    def led_orders(self) -> QuerySet[Checkout]:
        """Orders that the person paid or began to pay as the lead."""
        return Checkout.objects.filter(lead=self.customer) if self.customer else Checkout.objects.none()

    @property
    def shares(self) -> QuerySet[PaymentRequest]:
        """Shares that the person paid as a mate, and shares that a lead sent to their number."""
        phone = (self.customer.phone if self.customer else self.phone) or ""
        shares = PaymentRequest.every.filter(phone=phone) if phone else PaymentRequest.every.none()
        return shares | PaymentRequest.every.filter(mate=self.customer) if self.customer else shares

    @property
    def prefills(self) -> QuerySet[Prefill]:
        """Customer data that merchants sent with the person's number.

        Data without a number is included if the person led the order for which it was sent.
        """
        phone = (self.customer.phone if self.customer else self.phone) or ""
        prefills = Prefill.objects.filter(phone=phone) if phone else Prefill.objects.none()
        prefills_of_led_orders = Prefill.objects.filter(checkout__lead=self.customer, phone="")
        return prefills | prefills_of_led_orders if self.customer else prefills

    @property
    def opt_ins(self) -> QuerySet[OptIn]:
        return OptIn.objects.filter(person__in=self.known_as)


def of_customer(customer_uuid: UUID) -> Person:
    """Return the person with this customer id. Raises Unknown."""
    customer = Customer.objects.filter(pk=customer_uuid, erased_at=None).first()
    if customer is None:
        raise Unknown
    return Person(customer, list(MerchantCustomer.objects.filter(customer=customer)))


def has_unverified_rows(phone: str) -> bool:
    """Return whether a lead sent a share to this number, or a merchant sent this number with an order."""
    return any(rows.filter(phone=phone).exists() for rows in (PaymentRequest.every, Prefill.objects))


def find_person(*, phone: str = "", email: str = "") -> Person:
    """Return the person with this number (E.164) or this e-mail address. Raises Unknown, SeveralPeople."""
    if phone:
        customer = Customer.objects.filter(phone=phone).first()
        if customer is not None:
            return of_customer(customer.pk)
        if has_unverified_rows(phone):
            return Person(None, [], phone)
        raise Unknown
    opt_ins = OptIn.objects.filter(email_digest__in=consent.email_digests(email))
    rows = MerchantCustomer.objects.filter(pk__in=opt_ins.values("person"))
    without_number = list(rows.filter(customer=None))
    customers = set(rows.filter(customer__erased_at=None).values_list("customer", flat=True)) - {None}
    if len(customers) > 1:
        raise SeveralPeople
    if not customers and not without_number:
        raise Unknown
    customer_uuid = next(filter(None, customers), None)
    if customer_uuid is None:
        return Person(None, without_number)
    person = of_customer(customer_uuid)
    return Person(person.customer, [*person.known_as, *without_number])
