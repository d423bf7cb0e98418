"""The pumps by the titles that operators see, and running one by hand in the process that answers."""

import time
from typing import NamedTuple

from django.conf import settings
from django.utils.module_loading import import_string

from config import celery
from webhooks import loop
from webhooks.tasks import DRAIN_SECONDS

TITLES = {
    "checkout.tasks.answer_inquiries": "Ask about disputes",
    "checkout.tasks.end_links": "End pay links",
    "checkout.tasks.finish_operations": "Finish operations",
    "checkout.tasks.delete_idempotency_keys": "Forget idempotency keys",
    "checkout.tasks.expire_due": "Keep deadlines",
    "checkout.tasks.prove_changed": "Prove what has changed",
    celery.DELIVER_DUE: "Send webhooks",
    "checkout.tasks.delete_old_calls": "Remove old calls",
    "hosted_page.tasks.watch_sms_budgets": "Count SMS messages",
    "hosted_page.tasks.delete_old_card_tries": "Forget tries of cards",
    "hosted_page.tasks.delete_old_sms_messages": "Delete old SMS messages",
    "hosted_page.tasks.send_sms_messages": "Send SMS messages",
    "payments.providers.sandbox.tasks.send_notifications": "Send the bank's notifications",
    "payments.tasks.mail_discrepancies": "Mail discrepancies",
    "portal.tasks.count_hours": "Count hours for the portal",
    "portal.tasks.delete_ended_sessions": "Forget ended sessions",
    "portal.tasks.delete_expired_tokens": "Forget expired tokens",
    "portal.tasks.delete_login_attempts": "Forget tries to log in",
    "payments.providers.sandbox.tasks.delete_old_visits": "Remove old visits to the bank",
    "portal.tasks.delete_old_emails": "Remove old mails and invitations",
    "portal.tasks.send_emails": "Send mails to merchants",
    "portal.tasks.write_emails": "Look for news to mail",
    "webhooks.tasks.delete_personal": "Purge personal data",
    "webhooks.tasks.delete_old_events": "Remove old events",
}
TOO_LONG = frozenset(
    {"checkout.tasks.prove_all", "payments.tasks.reconcile"}
)  # for a request: commands do it
SENDING_SECONDS = 3.0


class PumpNotFound(Exception):
    """There is no such pump, or none that a request can wait for."""


class Pump(NamedTuple):
    """A Celery task, and its title for people."""

    name: str
    title: str


def every() -> list[Pump]:
    """Return the pumps that can be run by hand; those that run every second come first."""
    names = (*celery.PUMPS, *celery.HOURLY, *celery.CALENDAR)
    return [Pump(name, title_of(name)) for name in names if name not in TOO_LONG]


def title_of(name: str) -> str:
    """Return a pump's title for people."""
    return TITLES.get(name, name)


def run(name: str) -> float:
    """Run a pump to its end; return how many seconds it took. Raises PumpNotFound, and what the pump raises."""
    if name not in {pump.name for pump in every()}:
        raise PumpNotFound
    started = time.monotonic()
    if name == celery.DELIVER_DUE:
        send_webhooks(SENDING_SECONDS)
    else:
        import_string(name)()
    return time.monotonic() - started


def send_webhooks(seconds: float) -> None:
    """Send what is due from this process for `seconds`, then stop with all of it recorded."""
    sender = loop.Sender(slots=settings.WEBHOOK_SLOTS, allow_loopback=settings.WEBHOOK_LOOPBACK)
    sender.start()
    time.sleep(seconds)
    sender.stop(DRAIN_SECONDS)
