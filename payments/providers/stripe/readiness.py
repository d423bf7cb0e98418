"""Checks whether Stripe is set up for payments, without changing anything there (rule provider.check)."""

from collections.abc import Iterator

import stripe
from django.conf import settings
from django.urls import reverse

from config.lib.web import origins
from payments.provider import ProviderUnreachable
from payments.providers.stripe import books, client

WALLETS = ("apple_pay", "google_pay", "link")


def missing_parts() -> Iterator[str]:
    """Yield a sentence, with the remedy, for each missing part of the setup. Raises ProviderUnreachable."""
    try:
        yield from _webhook_problems()
        for account in books.current_accounts() or [""]:
            yield from _account_problems(account)
            _client_of(account).v1.balance_transactions.list(
                {"limit": 1}
            )  # raises PermissionError if the key does not allow reading fees and payouts
            yield from _wallet_problems(account)
    except stripe.AuthenticationError:
        yield "Stripe does not know STRIPE_SECRET_KEY. Copy it from Stripe's dashboard, Developers, API keys."
    except stripe.PermissionError as error:
        yield f"The key in STRIPE_SECRET_KEY may not ask this: {error.user_message}"
    except stripe.StripeError as error:
        raise ProviderUnreachable from error


def _webhook_problems() -> Iterator[str]:
    """Yield a problem if the webhook endpoints with our address do not send all the events that we read."""
    wanted = settings.BASE_URL + reverse("provider_notifications")
    found = _client_of("").v1.webhook_endpoints.list({"limit": 100}).auto_paging_iter()
    ours = [row for row in found if row.url == wanted and row.status == "enabled"]
    if not ours:
        yield f"No webhook endpoint of Stripe's sends to {wanted}: make one for the events {', '.join(books.EVENTS)}."
        return
    heard = {name for row in ours for name in row.enabled_events}
    unheard = [] if "*" in heard else sorted(set(books.EVENTS) - heard)
    if unheard:
        yield f"The webhook endpoint for {wanted} lacks the events {', '.join(unheard)}: add them."


def _account_problems(account: str) -> Iterator[str]:
    found = _client_of(account).v1.accounts.retrieve_current()
    cards = getattr(found.capabilities, "card_payments", "not asked for")
    if not found.charges_enabled:
        yield f"The account {found.id} may not take payments yet: finish what Stripe's dashboard asks for."
    elif cards != "active":
        yield f"The account {found.id} may not take cards (card_payments is {cards}): ask for it in Stripe's dashboard."


def _wallet_problems(account: str) -> Iterator[str]:
    """Yield the reasons why Stripe does not show wallets.

    It shows them only on hosts that are registered. Cards work without registration.
    """
    host = origins.host_of(settings.CHECKOUT_PAGE_URL)
    whose = f" of the account {account}" if account else ""
    found = _client_of(account).v1.payment_method_domains.list({"domain_name": host, "enabled": True}).data
    if not found:
        yield f"Wallets are not shown: register {host} among the payment method domains{whose} in Stripe's dashboard."
        return
    for wallet in WALLETS:
        seen = getattr(found[0], wallet)
        if seen.status != "active":
            reason = getattr(seen.status_details, "error_message", "") or "Stripe names no reason"
            yield f"{wallet} is not shown on {host}{whose}: {reason}."


def _client_of(account: str) -> stripe.StripeClient:
    return client.client_for(account, seconds=client.ASK_SECONDS)
