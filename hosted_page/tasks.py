"""Celery tasks of the hosted page: SMS messages, the daily check, erasure, and the deletion of old rows."""

from typing import Any

from celery import shared_task, signals

from hosted_page import payer, remembered_browsers
from hosted_page.group import share_claim_limits
from hosted_page.page_security import daily_check, reports
from hosted_page.privacy import retention
from hosted_page.sms import budgets, lead_notifications, outbox, sending
from hosted_page.steps import declines

STOP_SECONDS = 3.0  # how long a stopping worker waits for messages in progress

# Each of these tasks only calls one function of another module.
send_sms_messages = shared_task(sending.start_sender, name="hosted_page.tasks.send_sms_messages")
tell_leads = shared_task(lead_notifications.queue_notifications, name="hosted_page.tasks.tell_leads")
delete_old_sms_messages = shared_task(outbox.delete_old, name="hosted_page.tasks.delete_old_sms_messages")
delete_old_browsers = shared_task(
    remembered_browsers.delete_old, name="hosted_page.tasks.delete_old_browsers"
)
erase_old_people = shared_task(retention.erase_old, name="hosted_page.tasks.erase_old_people")
delete_old_card_tries = shared_task(declines.delete_old, name="hosted_page.tasks.delete_old_card_tries")

delete_old_sign_ins = shared_task(payer.delete_old, name="hosted_page.tasks.delete_old_sign_ins")
delete_old_csp_reports = shared_task(reports.delete_old, name="hosted_page.tasks.delete_old_csp_reports")
delete_old_takes = shared_task(share_claim_limits.delete_old, name="hosted_page.tasks.delete_old_takes")


@shared_task
def watch_sms_budgets() -> None:
    """Stop counting SMS messages of paid orders and shares. Warn operators about budgets that are nearly used up."""
    budgets.stop_counting_paid()
    budgets.warn_operators()


@shared_task
def check_card_page() -> None:
    """Compare the live payment pages with this release (rule card_page.daily_check)."""
    daily_check.run()


@signals.worker_shutdown.connect
def _stop_sender(**_: Any) -> None:
    sending.stop(STOP_SECONDS)
