"""Checks whether Stripe is set up for payments. The check does not change anything there (rule provider.check)."""

from collections.abc import Iterator

import stripe
from django.conf import settings
from django.urls import reverse

from config.lib.web import origins
from payments.provider import ProviderUnreachable
from payments.providers.stripe import books, client

WALLETS = ("apple_pay", "google_pay", "link")


def missing_parts() -> Iterator[str]:
    """Yield a sentence for each missing part of the setup, with the remedy. Raises ProviderUnreachable."""
    try:
        yield from _webhook_problems()
        for account in books.current_accounts() or [""]:
            yield from _account_problems(account)
            # Raises PermissionError if the key is not allowed to read fees and payouts.
            _client_of(account).v1.balance_transactions.list({"limit": 1})
            yield from _wallet_problems(account)
    except stripe.AuthenticationError:
        yield "Stripe does not know STRIPE_SECRET_KEY. Copy it from Stripe's dashboard, Developers, API keys."
    except stripe.PermissionError as error:
        yield f"The key in STRIPE_SECRET_KEY does not allow this request: {error.user_message}"
    except stripe.StripeError as error:
        raise ProviderUnreachable from error


def _webhook_problems() -> Iterator[str]:
    """Yield a problem if our address does not get all the events that we need from Stripe."""
    address = settings.BASE_URL + reverse("provider_notifications")
    endpoints = _client_of("").v1.webhook_endpoints.list({"limit": 100}).auto_paging_iter()
    ours = [row for row in endpoints if row.url == address and row.status == "enabled"]
    if not ours:
        yield f"Stripe has no webhook endpoint for {address}. Create one for the events {', '.join(books.EVENTS)}."
        return
    enabled = {name for row in ours for name in row.enabled_events}
    missing = [] if "*" in enabled else sorted(set(books.EVENTS) - enabled)
    if missing:
        yield f"The webhook endpoint for {address} lacks the events {', '.join(missing)}. Add them."


def _account_problems(account: str) -> Iterator[str]:
    details = _client_of(account).v1.accounts.retrieve_current()
    cards = getattr(details.capabilities, "card_payments", "not requested")
    if not details.charges_enabled:
        yield f"The account {details.id} cannot take payments yet. Complete its setup in Stripe's dashboard."
    elif cards != "active":
        yield f"The account {details.id} cannot take cards (card_payments is {cards}). Request it at Stripe."


def _wallet_problems(account: str) -> Iterator[str]:
    """Yield the reasons why Stripe does not show wallets.

    Wallets are shown only on registered hosts. Cards work without registration.
    """
    host = origins.host_of(settings.CHECKOUT_PAGE_URL)
    of_account = f" of the account {account}" if account else ""
    domains = _client_of(account).v1.payment_method_domains.list({"domain_name": host, "enabled": True}).data
    if not domains:
        yield f"Wallets are not shown. Register {host} as a payment method domain{of_account} in Stripe's dashboard."
        return
    for wallet in WALLETS:
        wallet_details = getattr(domains[0], wallet)
        if wallet_details.status != "active":
            reason = getattr(wallet_details.status_details, "error_message", "") or "Stripe gives no reason"
            yield f"{wallet} is not shown on {host}{of_account}: {reason}."


def _client_of(account: str) -> stripe.StripeClient:
    return client.client_for(account, seconds=client.ASK_SECONDS)
