"""The portal's pumps."""

from datetime import timedelta

from celery import shared_task
from django.utils import timezone
from oauth2_provider.models import AccessToken


@shared_task
def forget_expired_tokens() -> None:
    """Remove access tokens an hour after their end, a thousand at a time."""
    expired = AccessToken.objects.filter(expires__lt=timezone.now() - timedelta(hours=1))
    AccessToken.objects.filter(pk__in=list(expired.values_list("pk", flat=True)[:1000])).delete()
