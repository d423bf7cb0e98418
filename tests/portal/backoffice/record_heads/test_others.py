"""The tops of the pages for SMS messages, shares, bookings, users, keys, merchants and operators' stops."""

from collections.abc import Callable

import pytest
from django.test import Client

from checkout.models import Checkout, Refund
from config.lib import clock
from hosted_page.models import SmsMessage
from payments import bookings
from payments.models import Booking, Merchant, Operation, Switch
from portal import keys
from portal.models import ApiClient, User
from tests import factories
from tests.factories import CAUSE
from tests.portal import people
from tests.portal.backoffice.record_heads.tops import address_of, main_button, page_of, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.page")]


class TestTexts:
    def test_say_what_the_carrier_reported(self, operator: Client, unpaid: Checkout) -> None:
        now = clock.now()
        about = {"checkout_uuid": unpaid.pk, "subject": unpaid.pk, "merchant": unpaid.merchant}
        row = SmsMessage.objects.create(
            kind="code", created_at=now, ends_at=now, phone="+447700900123", **about
        )
        assert "It has not been sent yet." in text_of(operator, row)
        SmsMessage.objects.update(sent_at=now, ended_at=now)
        assert "The sandbox has no carrier, so no text was sent." in text_of(operator, row)
        SmsMessage.objects.update(receipt="undelivered", refusal="landline")
        told = text_of(operator, row)
        assert "Undelivered" in told and "Reason: landline." in told and "Ask the payer" in told
        assert f'href="{address_of(unpaid)}"' in page_of(operator, row)


class TestShares:
    def test_say_what_is_asked_of_whose_order(self, operator: Client, at: Callable[[str], Checkout]) -> None:
        order = at("shared")
        paid, asked = order.payment_requests.order_by("position")
        assert f"A mate paid £20.00 of order {order.merchant_order_id}" in text_of(operator, paid)
        assert "No action is needed: the mate can pay until" in text_of(operator, asked)


class TestBookings:
    def test_say_that_they_can_be_taken_back_once(self, operator: Client, failed: Refund) -> None:
        part = Operation.objects.select_related("payment").get(kind="refund")
        bookings.settle_outside(part, part.amount, note="By bank transfer", now=clock.now(), cause=CAUSE)
        row = Booking.objects.get()
        told = text_of(operator, row)
        assert "No money moved at the provider." in told and "choose Take the booking back" in told
        assert f'href="{address_of(part)}"' in page_of(operator, row)
        told = text_of(operator, part)
        assert "booked as settled outside" in told and f'href="{address_of(row)}"' in page_of(operator, part)


class TestUsers:
    def test_say_whether_they_can_log_in(self, operator: Client, acme: Merchant) -> None:
        lea = people.join(acme)
        assert "This person logs in to the merchant’s portal." in text_of(operator, lea)
        assert "<wbr>@" in page_of(operator, lea)
        User.objects.filter(pk=lea.pk).update(is_active=False)
        told = text_of(operator, lea)
        assert "Disabled" in told and "tick Active below and save" in told


class TestMemberships:
    def test_say_whose_role_it_is_at_which_merchant(self, operator: Client, acme: Merchant) -> None:
        row = people.join(acme).memberships.get()
        assert f"{people.EMAIL} is an owner in the portal of Acme Tickets." in text_of(operator, row)


class TestKeys:
    def test_say_whether_they_work(self, operator: Client, acme: Merchant) -> None:
        keys.create_client(acme, "Key")
        row = ApiClient.objects.get()
        assert "Valid" in text_of(operator, row)
        ApiClient.objects.update(revoked_at=clock.now())
        assert "It was revoked on" in text_of(operator, row)


class TestMerchants:
    def test_say_whether_they_take_payments(self, operator: Client, acme: Merchant) -> None:
        assert "Acme Tickets takes payments." in text_of(operator, acme)
        factories.stop(acme)
        told = text_of(operator, acme)
        assert "Stopped" in told and "cannot create orders" in told and "choose Resume" in told
        assert main_button(operator, acme) == "Resume"

    def test_say_if_all_are_stopped(self, operator: Client, acme: Merchant) -> None:
        Switch.objects.create(merchant=None, reason="Attack")
        assert "All merchants are stopped" in text_of(operator, acme)
        assert main_button(operator, acme) == "Open the stops"


class TestStops:
    def test_say_whom_they_stop_and_why(self, operator: Client, acme: Merchant) -> None:
        factories.stop(acme)
        row = Switch.objects.get()
        told = text_of(operator, row)
        assert "An operator stopped Acme Tickets on" in told and row.reason in told
        Switch.objects.update(is_stopped=False)
        assert "has ended" in text_of(operator, row)
