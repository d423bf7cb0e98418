"""The portal's pumps."""

from datetime import timedelta

from celery import shared_task
from django.utils import timezone
from oauth2_provider.models import AccessToken

from config.lib import batches, clock
from portal import counting, login_limits, notices, sessions, watching
from portal.models import Invitation, Notice

NOTICES_KEPT = timedelta(days=90)


@shared_task
def forget_expired_tokens() -> None:
    """Remove access tokens an hour after their end."""
    batches.delete(AccessToken.objects.filter(expires__lt=timezone.now() - timedelta(hours=1)))


@shared_task
def count_hours() -> None:
    """Count what the home page draws, up to now."""
    counting.catch_up(clock.now())


@shared_task
def write_notices() -> None:
    """Look for what the owners should be told by mail."""
    watching.look(clock.now())


@shared_task
def send_notices() -> None:
    """Send the mails that are due."""
    notices.send_due()


@shared_task
def remove_old_notices() -> None:
    """Remove mails that went out, and invitations that ended, so long ago that nobody asks about them any more."""
    before = clock.now() - NOTICES_KEPT
    batches.delete(Notice.objects.filter(pk__lt=clock.first_id(before), next_try_at=None))
    batches.delete(Invitation.objects.filter(pk__lt=clock.first_id(before), expires_at__lt=clock.now()))


@shared_task
def forget_login_attempts() -> None:
    """Remove tries to log in that no limit looks at any more."""
    login_limits.forget_old()


@shared_task
def forget_ended_sessions() -> None:
    """Remove sessions whose end has passed."""
    sessions.forget_ended()
