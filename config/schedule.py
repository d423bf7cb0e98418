"""The schedule: each task's name, the times at which beat starts it, and the title that operators see."""

from celery.schedules import crontab

DELIVER_DUE = "webhooks.tasks.deliver_due"
FINISH_OPERATIONS = "checkout.tasks.finish_operations"
# The pumps start every second, and each run is short. An extra start, for example by a second beat process,
# does no harm.
PUMPS = {
    "checkout.tasks.expire_due": "Keep deadlines",
    FINISH_OPERATIONS: "Finish operations",
    "checkout.tasks.answer_inquiries": "Ask about disputes",
    DELIVER_DUE: "Send webhooks",
    "payments.providers.sandbox.tasks.send_notifications": "Run the sandbox bank",
    "hosted_page.tasks.send_sms_messages": "Send texts",
    "portal.tasks.send_emails": "Send emails",
}
HOURLY = {
    "checkout.tasks.make_partitions": "Make partitions of calls",
    "webhooks.tasks.make_partitions": "Make partitions of events",
    "checkout.tasks.delete_idempotency_keys": "Delete idempotency keys",
    "checkout.tasks.delete_old_calls": "Delete old calls",
    "checkout.tasks.delete_old_prefills": "Delete prefilled details of ended orders",
    "hosted_page.tasks.delete_old_browsers": "Delete expired remembered browsers",
    "hosted_page.tasks.delete_old_card_tries": "Delete old card tries",
    "hosted_page.tasks.delete_old_sign_ins": "Delete ended payer sign-ins",
    "hosted_page.tasks.delete_old_csp_reports": "Delete old CSP reports",
    "hosted_page.tasks.delete_old_sms_messages": "Delete old texts",
    "hosted_page.tasks.delete_old_takes": "Delete old claims of shares",
    "portal.tasks.delete_ended_sessions": "Delete ended sessions",
    "portal.tasks.delete_expired_tokens": "Delete expired tokens",
    "portal.tasks.delete_login_attempts": "Delete old login attempts",
    "portal.tasks.delete_notes": "Delete notes on erased people",
    "portal.tasks.disable_unused_accounts": "Warn and disable unused accounts",
    "portal.tasks.delete_old_emails": "Delete old mails and invitations",
    "payments.providers.sandbox.tasks.delete_old_visits": "Delete old visits to the sandbox bank",
    "webhooks.tasks.delete_personal": "Delete personal data",
    "webhooks.tasks.delete_old_events": "Delete old events",
}
# In the admin, operators can start the tasks that have a title. A task without a title takes too long for a web
# request. Only a command can start it.
CALENDAR = {
    "payments.tasks.mail_discrepancies": ("Mail discrepancies", crontab()),
    "checkout.tasks.end_links": ("End pay links", crontab()),
    "portal.tasks.count_hours": ("Count hours for the portal", crontab()),
    "portal.tasks.write_emails": ("Write mails about new events", crontab()),
    "portal.tasks.run_trials": ("Continue checklist cases", 2.0),  # production has no trials
    "hosted_page.tasks.tell_leads": ("Text leads about their mates", 5.0),
    "hosted_page.tasks.watch_sms_budgets": ("Count texts", 10.0),
    "payments.tasks.close_days": ("Sum the ledger's days", crontab(minute="*/10")),
    "payments.tasks.reconcile": ("", crontab(hour=3, minute=20)),
    "payments.tasks.read_balance": ("", crontab(hour=3, minute=50)),
    "hosted_page.tasks.erase_old_people": ("", crontab(hour=2, minute=40)),
    "hosted_page.tasks.check_card_page": ("", crontab(hour=5, minute=10)),
    "checkout.tasks.prove_changed": ("Check the ledger of changed orders", crontab(minute=10)),
    "checkout.tasks.prove_all": ("", crontab(day_of_week="sunday", hour=4, minute=20)),
    "checkout.tasks.prove_on": ("", crontab()),
}
