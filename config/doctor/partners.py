"""Checks of the card provider and the SMS carrier. They do not move money, and do not send an SMS message."""

from collections.abc import Iterator

from django.core.exceptions import ImproperlyConfigured

from config.doctor import Finding
from hosted_page.sms import senders
from payments import provider
from payments.provider import ProviderUnreachable


def card_provider() -> Iterator[Finding]:
    """Check that the provider answers and is set up for payments."""
    try:
        yield from map(Finding, provider.current_provider().missing())
    except ProviderUnreachable:
        yield Finding("The card provider does not answer. Check the network and the provider's status page.")


def sms_carrier() -> Iterator[Finding]:
    """Check that the sender can be created, and that the carrier accepts its credentials."""
    try:
        senders.require_sender()
        senders.current_sender().check_access()
    except ImproperlyConfigured as refused:
        yield Finding(str(refused))
    except senders.Refused as refused:
        yield Finding(f"The SMS carrier refuses the account ({refused.reason}). Check its variables.")
    except senders.NotSent as failed:
        yield Finding(
            f"The SMS carrier does not answer ({failed.reason}). Check the network and the carrier's status page."
        )
