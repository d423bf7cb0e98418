"""The portal's pumps."""

from datetime import timedelta

from celery import shared_task
from django.utils import timezone
from oauth2_provider.models import AccessToken

from config.lib import batches, clock
from portal.accounts import login_limits, sessions
from portal.dashboard import counting
from portal.mail import outbox, watching
from portal.models import Invitation, OutboundEmail

EMAILS_KEPT = timedelta(days=90)


@shared_task
def delete_expired_tokens() -> None:
    """Remove access tokens an hour after their end."""
    batches.delete(AccessToken.objects.filter(expires__lt=timezone.now() - timedelta(hours=1)))


@shared_task
def count_hours() -> None:
    """Count what the home page draws, up to now."""
    counting.catch_up(clock.now())


@shared_task
def write_emails() -> None:
    """Look for what the owners should be told by mail."""
    watching.look(clock.now())


@shared_task
def send_emails() -> None:
    """Send the mails that are due."""
    outbox.send_due()


@shared_task
def delete_old_emails() -> None:
    """Remove mails that went out, and invitations that ended, so long ago that nobody asks about them any more."""
    before = clock.now() - EMAILS_KEPT
    batches.delete(OutboundEmail.objects.filter(pk__lt=clock.first_id(before), next_try_at=None))
    batches.delete(Invitation.objects.filter(pk__lt=clock.first_id(before), expires_at__lt=clock.now()))


@shared_task
def delete_login_attempts() -> None:
    """Remove tries to log in that no limit looks at any more."""
    login_limits.delete_old()


@shared_task
def delete_ended_sessions() -> None:
    """Remove sessions whose end has passed."""
    sessions.delete_ended()
