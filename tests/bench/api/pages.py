"""CPU time of the hosted page, state by state, against a bare view with one select."""

from pathlib import Path

from django.http import HttpResponse

from checkout import authorizations, captures, creation, sharing
from checkout.creation import Order
from checkout.models import Checkout, Customer
from hosted_page import payer
from payments.cause import Cause
from payments.provider import CardUse
from payments.providers.sandbox import bank
from tests.bench.api import app, requests
from tests.bench.api.app import Backend, Call
from tests.bench.api.requests import Request

BUDGET = 12.0
CAUSE = Cause("bench")


def run(folder: Path, scale: float) -> None:
    """Print the table of the pages that most people see."""
    app.log_to(folder / "pages.log")
    app.use("pages")
    backend = Backend.of_new_merchant("Acme")
    lead = Customer.objects.create(phone="+447700900123", name="Lea")
    asked, held, captured = (_checkout(backend, lead, step) for step in ("split", "held", "captured"))
    share = captured.payment_requests.order_by("position")[0]
    pages = {
        "page: phone": Call("GET", f"/pay?id={_order(backend).pk}"),
        "page: split": Call("GET", f"/pay/split?id={asked.pk}", cookie=_signed_in(asked)),
        "page: held": Call("GET", f"/pay?id={held.pk}", cookie=_signed_in(held)),
        "page: confirmed, 3 mates": Call("GET", f"/pay?id={captured.pk}", cookie=_signed_in(captured)),
        "page: a mate is asked": Call("GET", f"/pay/share/{share.token}"),
    }
    table = [
        Request(name, BUDGET, None, lambda times, call=call: [call] * times)  # type: ignore[misc]
        for name, call in pages.items()
    ]
    requests.judge(backend, table, scale)


def _order(backend: Backend) -> Checkout:
    return creation.create(backend.merchant, Order(**app.order()), cause=CAUSE)


def _checkout(backend: Backend, lead: Customer, step: str) -> Checkout:
    """An order that has come so far, with three mates."""
    made = _order(backend)
    sharing.join(made.pk, lead)
    if step != "split":
        sharing.split(made.pk, [sharing.Share(2000, "Finn"), sharing.Share(3000), sharing.Share(1000)])
        token = bank.tokenise(subject=made.pk, number="4242424242424242")
        authorizations.authorize(made.pk, card=CardUse(token), lead=lead, cause=CAUSE)
    if step == "captured":
        captures.capture(backend.merchant, made.pk, cause=CAUSE)
    return Checkout.objects.get(pk=made.pk)


def _signed_in(checkout: Checkout) -> str:
    response = HttpResponse()
    payer.remember(response, checkout.pk, checkout.lead_id or checkout.pk)
    return "; ".join(f"{name}={morsel.value}" for name, morsel in response.cookies.items())
