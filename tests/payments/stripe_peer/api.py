"""Answers requests to the API: authenticates them, finds the endpoint, checks the parameters."""

import json
import re
import secrets
import time
from dataclasses import dataclass
from email.message import Message
from functools import partial
from typing import Any

from tests.payments.stripe_peer import checking, errors, events, forms, idempotency, lists
from tests.payments.stripe_peer.books import Answer, Book, Call, Peer, public_fields
from tests.payments.stripe_peer.errors import Refusal
from tests.payments.stripe_peer.idempotency import Reply
from tests.payments.stripe_peer.resources import accounts, charges, disputes, intents, methods, refunds

_ROUTES: dict[str, Answer] = {
    "POST /v1/payment_intents": intents.create,
    "POST /v1/payment_intents/{id}": intents.update,
    "POST /v1/payment_intents/{id}/confirm": intents.confirm,
    "POST /v1/payment_intents/{id}/capture": intents.capture,
    "POST /v1/payment_intents/{id}/cancel": intents.cancel,
    "POST /v1/refunds": refunds.create,
    "POST /v1/refunds/{id}": refunds.update,
    "POST /v1/disputes/{id}": disputes.update,
    "POST /v1/disputes/{id}/close": disputes.close,
    "POST /v1/payment_methods": methods.create,
    "GET /v1/payment_methods/{id}": lists.read_endpoint("payment_method"),
    "GET /v1/confirmation_tokens/{id}": lists.read_endpoint("confirmation_token"),
    "POST /v1/test_helpers/confirmation_tokens": methods.create_token,
    "GET /v1/account": accounts.current,
    "POST /v1/webhook_endpoints": events.create_endpoint,
    "GET /v1/webhook_endpoints": lists.list_endpoint("webhook_endpoint", "/v1/webhook_endpoints"),
    "POST /v1/payment_method_domains": accounts.register_domain,
    "GET /v1/payment_method_domains": lists.list_endpoint(
        "payment_method_domain", "/v1/payment_method_domains"
    ),
}
for _kind in ("payment_intent", "refund", "charge", "dispute", "event", "balance_transaction", "payout"):
    _ROUTES[f"GET /v1/{_kind}s"] = lists.list_endpoint(_kind, f"/v1/{_kind}s")
    _ROUTES[f"GET /v1/{_kind}s/{{id}}"] = lists.read_endpoint(_kind)
_PATTERNS = {re.compile(re.escape(path).replace(r"\{id\}", "([^/]+)")): path for path in _ROUTES}


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: str
    body: str
    headers: Message
    address: str  # the peer's base address, for links to its own pages


def answer(peer: Peer, request: Request, fault: dict[str, Any] | None = None) -> Reply:
    """Return the response to a request. `fault` is the fault that a switch has set for it, if any."""
    headers = {"Request-Id": f"req_{secrets.token_hex(7)}"}
    try:
        reply = _checked(peer, request, fault or {}, headers)
    except Refusal as refusal:
        reply = _refused(refusal, headers)
    return reply


def _checked(peer: Peer, request: Request, fault: dict[str, Any], headers: dict[str, str]) -> Reply:
    book = accounts.book_of(peer, request.headers)
    path, object_id = _route(request)
    version = request.headers.get("Stripe-Version", checking.document()["version"])
    if version != checking.document()["version"]:
        raise Refusal(f"Invalid Stripe API version: {version}.")
    parameters = forms.decode("&".join(filter(None, (request.query, request.body))))
    call = Call(book, checking.check(path, parameters), object_id, request.address)
    key = request.headers.get("Idempotency-Key", "") if request.method == "POST" else ""
    if key:
        headers["Idempotency-Key"] = key
    work = partial(_work, path, call, fault=fault, headers=headers)
    return idempotency.run(book, key, [request.method, request.path, parameters], work) if key else work()


def _route(request: Request) -> tuple[str, str]:
    for pattern, path in _PATTERNS.items():
        if matched := pattern.fullmatch(f"{request.method} {request.path}"):
            return path, matched[1] if matched.groups() else ""
    message = f"Unrecognized request URL ({request.method}: {request.path})."
    raise Refusal(message, status=404)


def _work(path: str, call: Call, *, fault: dict[str, Any], headers: dict[str, str]) -> Reply:
    """Carry out the request and return its response, which the caller stores under the request's key."""
    if fault.get("mode") == "slow":
        time.sleep(fault["seconds"])
    if fault.get("mode") == "error" and fault["when"] in ("stored", "later"):
        if fault["when"] == "later":
            at = call.peer.now() + int(fault["seconds"])
            call.peer.late.append((at, partial(_done, path, call, headers)))
        return failed(headers)
    with call.peer.lock:
        reply = _done(path, call, headers)
    if fault.get("mode") == "error":
        return failed(headers)
    return reply


def _done(path: str, call: Call, headers: dict[str, str]) -> Reply:
    _catch_up(call.peer)
    names = {"id": headers["Request-Id"], "idempotency_key": headers.get("Idempotency-Key")}
    call.book.request_ids = names | {"version": checking.document()["version"]}
    _age(call.book)
    try:
        resource = lists.expand(call.book, _ROUTES[path](call), call.parameters.get("expand", []))
    except Refusal as refusal:
        return _refused(refusal, headers)
    return Reply(200, _written(resource), headers)


def _catch_up(peer: Peer) -> None:
    """Carry out earlier calls that are due now. Their callers got an error response at the time.

    (Documentation: "Advanced error handling", "Server errors")
    """
    for late in [late for late in peer.late if late[0] <= peer.now()]:
        peer.late.remove(late)
        late[1]()


def _age(book: Book) -> None:
    intents.lapse(book)
    charges.show_lines(book)
    for entry in book.all("balance_transaction"):
        entry["status"] = "available" if entry["available_on"] <= book.peer.now() else "pending"
    for dispute in book.all("dispute"):
        details = dispute["evidence_details"]
        details["past_due"] = details["due_by"] < book.peer.now()


def failed(headers: dict[str, str], status: int = 500) -> Reply:
    """Return the response for a server error at Stripe. (Reference: "Errors", `api_error`)"""
    return _refused(Refusal("An unknown error occurred.", status=status, type=errors.API), headers)


def _refused(refusal: Refusal, headers: dict[str, str]) -> Reply:
    return Reply(refusal.status, _written({"error": refusal.as_json}), headers)


def _written(resource: Any) -> bytes:
    return json.dumps(public_fields(resource), indent=2).encode()
