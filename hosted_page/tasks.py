"""The hosted page's pumps."""

from celery import shared_task

from hosted_page import invitations, texts


@shared_task
def send_texts() -> None:
    """Send the texts that are due."""
    invitations.send_due()


@shared_task
def forget_texts() -> None:
    """Remove what was kept of texts for the limits alone."""
    texts.forget_old()
