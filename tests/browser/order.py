"""Reads the state of a browser test's order in the service and in the bank's books."""

import json
from dataclasses import dataclass
from tempfile import NamedTemporaryFile
from typing import Any
from uuid import UUID

from playwright.sync_api import Page

from tests.journeys import polling
from tests.journeys.merchant import Merchant
from tests.journeys.service import Service

OLDER = """
from datetime import timedelta
from django.db.models import F
from django.db.models.functions import Now
from payments.models import Operation
opened = Operation.objects.filter(payment__checkout_uuid="{checkout}", ended_at=None)
opened.update(created_at=F("created_at") - timedelta(seconds={seconds}), next_attempt_at=Now())
"""
OLDER_SIGN_IN = """
import time
from pathlib import Path
from django.core import signing
from hosted_page import payer
class Older(signing.TimestampSigner):
    def timestamp(self):
        return signing.b62_encode(int(time.time()) - {seconds})
value = signing.loads("{cookie}", salt=payer.SALT)
older = Older(salt=payer.SALT).sign_object(value, serializer=signing.JSONSerializer)
Path("{kept}").write_text(older)
"""
NO_TEXT_JUST_NOW = """
from datetime import timedelta
from django.db.models import F
from hosted_page.models import SmsMessage
SmsMessage.objects.update(created_at=F("created_at") - timedelta(minutes=1))
"""
FAULT = """
from payments.providers.sandbox import fault_injection
for verb in ("authorize", "look_up"):
    fault_injection.set_fault(verb=verb, mode="error", times={times})
"""

DISPUTE = """
from checkout.models import Checkout
from payments.inquiring import inquiries
from payments.providers.sandbox import client
checkout = Checkout.objects.get(pk="{checkout}")
paid = checkout if {place} == 1 else checkout.payment_requests.get(position={place})
payment = paid.payment_id
client.call_bank("{verb}", payment=payment, **{facts})
inquiries.open_inquiries([payment])
"""


@dataclass(frozen=True)
class Order:
    """An order that is unpaid at first: its state in the service and in the bank's books, and actions of the bank."""

    service: Service
    merchant: Merchant
    checkout_uuid: str

    @property
    def url(self) -> str:
        return f"{self.merchant.base_url}/pay?id={self.checkout_uuid}"

    def status(self) -> str:
        return str(self.merchant.read(self.checkout_uuid)["status"])

    def charges(self) -> list[str]:
        """Return the states of the order's charges in the bank's books."""
        payments = self._rows("payments.payment", "checkout_uuid", {self.checkout_uuid})
        charges = self._rows("bank.charge", "payment", {row["pk"] for row in payments})
        return sorted(row["fields"]["state"] for row in charges)

    def _rows(self, model: str, field: str, values: set[str]) -> list[dict[str, Any]]:
        rows = json.loads(self.service.command("dumpdata", model))
        return [row for row in rows if row["fields"][field] in values]

    def comes_to(self, *charges: str) -> None:
        """Fail unless the order is held and its charges reach these states within 10 s. Releases take time."""
        assert self.status() == "authorized"
        polling.until(lambda: self.charges() == list(charges), within=10, what=f"charges {charges}")

    def grow_older(self, seconds: int) -> None:
        """Make the order's open operations older by this time, so that no test has to wait for ten minutes."""
        self.service.command("shell", "--command", OLDER.format(checkout=self.checkout_uuid, seconds=seconds))

    def be_disputed(self, place: int = 1) -> None:
        """Let a payer dispute their payment. The payer is the lead, or the mate at this place on the bill."""
        self._ask("dispute", place)

    def decide_the_dispute(self, *, is_won: bool, place: int = 1) -> None:
        """Let the bank decide the dispute.

        If `is_won` is true, the merchant keeps the money. Otherwise, the payer gets the money.
        """
        self._ask("decide", place, is_won=is_won)

    def _ask(self, verb: str, place: int, **facts: bool) -> None:
        words = DISPUTE.format(checkout=self.checkout_uuid, place=place, verb=verb, facts=facts)
        self.service.command("shell", "--command", words)

    def sign_in_grows_older(self, page: Page, seconds: int) -> None:
        """Make a browser's sign-in to the order, or its last extension, older by this many seconds."""
        name = f"payer_{UUID(self.checkout_uuid).hex}"
        found = next(cookie for cookie in page.context.cookies() if cookie.get("name") == name)
        with NamedTemporaryFile("r") as kept:
            command = OLDER_SIGN_IN.format(cookie=found.get("value"), seconds=seconds, kept=kept.name)
            self.service.command("shell", "--command", command)
            older = kept.read()
        page.context.add_cookies([{"name": name, "value": older, "url": self.url}])
        # The sent codes must be older too, because a number gets at most one code in 30 seconds.
        self.service.command("shell", "--command", NO_TEXT_JUST_NOW)

    def let_the_bank_fail(self, *, times: int) -> None:
        """Make the bank's next `times` authorizations and look-ups fail with status 500.

        If `times` is 0, end the fault.
        """
        self.service.command("shell", "--command", FAULT.format(times=times))
