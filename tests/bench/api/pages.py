"""Measures the CPU time of the hosted page in each state, relative to a bare view with one select."""

import random
import secrets
import statistics
from pathlib import Path
from uuid import UUID

from django.http import HttpRequest, HttpResponse

from checkout import authorizations, captures, creation, current_checkouts, mate_shares
from checkout.creation import Order
from checkout.models import Checkout, Customer
from checkout.split.share_rows import Share
from config.lib import clock
from hosted_page import payer
from hosted_page.group import bill
from hosted_page.payment_target import PaymentTarget
from hosted_page.steps import card_page, codes
from payments.cause import Cause
from payments.provider import CardUse
from payments.providers.sandbox import bank
from tests.bench.api import app, report, requests
from tests.bench.api.app import Backend, Call
from tests.bench.api.requests import Request

BUDGET, MEAN = 8.0, 5.0
# Every visible page sends this request every 1.5 seconds, so the budget for it is lower.
BUDGETS = {"page: bill, nothing new": 3.0}
JOURNEY = ("page: phone", "page: code", "page: split", "page: held, 3 mates", "page: confirmed, 3 mates")
CAUSE = Cause("bench")


def run(folder: Path, scale: float) -> None:
    """Measure the pages that people see most often, and print the table."""
    app.log_to(folder / "pages.log")
    app.use("pages")
    backend = Backend.of_new_merchant("Acme")
    table = [
        Request(name, BUDGETS.get(name, BUDGET), None, lambda times, call=call: [call] * times)  # type: ignore[misc]
        for name, call in calls(backend).items()
    ]
    ratios = requests.judge(backend, table, scale)
    mean = statistics.mean(ratios[name] for name in JOURNEY)
    report.line("")
    report.table(
        ("a lead's journey", "× bare view"), [("mean of its pages", report.judged("mean", mean, MEAN))]
    )


def calls(backend: Backend) -> dict[str, Call]:
    """Return a call for each page. The order in this call is in the state that the page shows."""
    lead = Customer.objects.create(phone=_phone(), name="Lea")
    asked, held, captured = (_checkout(backend, lead, step) for step in ("split", "held", "captured"))
    coded = _order(backend)
    share = captured.payment_requests.order_by("position")[0]
    return {
        "page: phone": Call("GET", f"/pay?id={_order(backend).pk}"),
        "page: code": Call("GET", f"/pay?id={coded.pk}", cookie=_awaiting_code(coded)),
        "page: split": Call("GET", f"/pay/split?id={asked.pk}", cookie=_signed_in(asked)),
        "bank: card page": Call("GET", f"/bank/card/{_card_session(asked)}"),
        "page: held, 3 mates": Call("GET", f"/pay?id={held.pk}", cookie=_signed_in(held)),
        "page: confirmed, 3 mates": Call("GET", f"/pay?id={captured.pk}", cookie=_signed_in(captured)),
        "page: bill, nothing new": Call("GET", _unchanged(captured), cookie=_signed_in(captured), status=204),
        "page: a mate is asked": Call("GET", f"/pay/share/{share.token}"),
        "page: the group's link": Call("GET", f"/pay/g/{captured.group_link.token}"),
    }


def _order(backend: Backend) -> Checkout:
    return creation.create(backend.merchant, Order(**app.order()), cause=CAUSE)


def _checkout(backend: Backend, lead: Customer, step: str) -> Checkout:
    """Return an order at `step`: "split", "held" or "captured". If it is held or captured, it has three mates."""
    made = _order(backend)
    mate_shares.make_lead(made.pk, lead)
    if step != "split":
        asked = [Share(2000, "Finn"), Share(3000), Share(1000)]
        mate_shares.split(made.pk, asked, lead=lead.pk)
        token = bank.tokenise(subject=made.pk, number="4242424242424242")
        authorizations.authorize(made.pk, card=CardUse(token), lead=lead, cause=CAUSE)
    if step == "captured":
        captures.capture(backend.merchant, made.pk, cause=CAUSE)
    return Checkout.objects.get(pk=made.pk)


def _unchanged(checkout: Checkout) -> str:
    """Return the URL that an open bill page polls while it already shows the current state."""
    seen = bill.bill_digest(checkout, current_checkouts.shares_of(checkout), clock.now(), disputed="")
    return f"/pay/bill?id={checkout.pk}&seen={seen}&no="


def _awaiting_code(checkout: Checkout) -> str:
    response = HttpResponse()
    browser = secrets.token_urlsafe(16)
    sent = codes.send_code(PaymentTarget(checkout), _phone(), browser, "192.0.2.1")
    payer.store_awaited_code(response, browser, sent.shown_code)
    return _cookies(response)


def _card_session(checkout: Checkout) -> UUID:
    return bank.open_session(
        subject=checkout.pk, return_url="/pay", page=card_page.page_context(PaymentTarget(checkout))
    )


def _signed_in(checkout: Checkout) -> str:
    response = HttpResponse()
    sign_in = payer.begin_sign_in(checkout.pk, checkout.lead_id or checkout.pk, is_proven=True)
    payer.sign_in_browser(HttpRequest(), response, sign_in)
    return _cookies(response)


def _cookies(response: HttpResponse) -> str:
    return "; ".join(f"{name}={morsel.value}" for name, morsel in response.cookies.items())


def _phone() -> str:
    return f"+4477{random.randrange(10**8):08}"
