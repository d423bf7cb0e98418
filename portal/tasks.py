"""The portal's Celery tasks. They call functions in other modules, and delete old rows."""

from datetime import timedelta

from celery import shared_task
from django.utils import timezone
from oauth2_provider.models import AccessToken

from checkout.models import Checkout
from config.lib import batches, clock
from portal.accounts import login_limits, sessions, unused_accounts
from portal.dashboard import hourly_counts
from portal.mail import outbox, trouble_mails
from portal.models import CheckoutNote, Invitation, OutboundEmail
from portal.trials import trial_runs

EMAIL_RETENTION = timedelta(days=90)

# These tasks only call a function in another module.
send_emails = shared_task(outbox.send_due, name="portal.tasks.send_emails")
run_trials = shared_task(trial_runs.run_due, name=trial_runs.RUN_TRIALS)
delete_login_attempts = shared_task(login_limits.delete_old, name="portal.tasks.delete_login_attempts")
disable_unused_accounts = shared_task(
    unused_accounts.warn_and_disable, name="portal.tasks.disable_unused_accounts"
)
delete_ended_sessions = shared_task(sessions.delete_ended, name="portal.tasks.delete_ended_sessions")


@shared_task
def delete_expired_tokens() -> None:
    """Delete access tokens that expired more than an hour ago."""
    batches.delete(AccessToken.objects.filter(expires__lt=timezone.now() - timedelta(hours=1)))


@shared_task
def count_hours() -> None:
    """Bring the hourly figures on the home page up to date."""
    hourly_counts.catch_up(clock.now())


@shared_task
def write_emails() -> None:
    """Queue the mails about problems that owners should know about."""
    trouble_mails.queue_trouble_mails(clock.now())


@shared_task
def delete_old_emails() -> None:
    """Delete mails and invitations older than 90 days, except unsent mails and open invitations."""
    before = clock.now() - EMAIL_RETENTION
    batches.delete(OutboundEmail.objects.filter(pk__lt=clock.first_id(before), next_try_at=None))
    batches.delete(Invitation.objects.filter(pk__lt=clock.first_id(before), expires_at__lt=clock.now()))


@shared_task
def delete_notes() -> None:
    """Delete the notes on orders of erased customers, because a note can be about the customer."""
    erased = Checkout.objects.filter(lead__erased_at__isnull=False)
    batches.delete(CheckoutNote.objects.filter(checkout_uuid__in=erased.values("pk")))
