"""Finds and shows the account for which a request acts. (Reference: "Authentication", "Connected Accounts")"""

import base64
from email.message import Message

from tests.payments.stripe_peer.books import CONNECTED, KEYS, PLATFORM, Book, Call, Peer, Thing
from tests.payments.stripe_peer.errors import REQUEST, Refusal


def book_of(peer: Peer, headers: Message) -> Book:
    """Return the book for a request. It depends on the mode of the request's key, and on the account.

    The header `Stripe-Account` names the account. Without this header, the account is the platform's.
    """
    key = _key(headers.get("Authorization", ""))
    if not key:
        raise Refusal("You did not provide an API key.", status=401)
    if key not in KEYS:
        raise Refusal(f"Invalid API Key provided: {_masked(key)}", status=401, type=REQUEST)
    account = headers.get("Stripe-Account") or PLATFORM
    if account not in (PLATFORM, *CONNECTED):
        message = f"The provided key '{_masked(key)}' does not have access to account '{account}' "
        message += "(or that account does not exist). Application access may have been revoked."
        raise Refusal(message, "account_invalid", status=403)
    return peer.book(account, key.startswith("sk_live_"))


def _key(header: str) -> str:
    scheme, _, credentials = header.partition(" ")
    if scheme == "Basic":
        return base64.b64decode(credentials).decode(errors="replace").partition(":")[0]
    return credentials if scheme == "Bearer" else ""


def _masked(key: str) -> str:
    return f"{key[:8]}{'*' * 8}{key[-4:]}" if len(key) > 16 else "*" * 8


def current(call: Call) -> Thing:
    """Return the account. (Reference: "Retrieve account")"""
    is_platform = call.book.account == PLATFORM
    return {
        "id": call.book.account,
        "object": "account",
        "business_type": "company",
        "capabilities": {"card_payments": "active", "transfers": "active"},
        "charges_enabled": True,
        "country": "US",
        "default_currency": "usd",
        "details_submitted": True,
        "email": f"{call.book.account}@shop.example",
        "payouts_enabled": True,
        "settings": {"dashboard": {"display_name": "Platform" if is_platform else "Merchant"}},
        "type": "standard",
    } | call.book.lacks


def register_domain(call: Call) -> Thing:
    """Register a host for wallets. Apple Pay is active only if Stripe can verify the host.

    (Reference: "Payment Method Domain")
    """
    wallets: Thing = {
        name: {"status": "active"}
        for name in ("amazon_pay", "apple_pay", "google_pay", "klarna", "link", "paypal")
    }
    name = call.parameters["domain_name"]
    if name.startswith("unverified."):
        wallets["apple_pay"] = {
            "status": "inactive",
            "status_details": {"error_message": "The file was not found"},
        }
    return call.book.make(
        "payment_method_domain", domain_name=name, enabled=call.parameters.get("enabled", True), **wallets
    )
