"""What every page is told."""

from django.conf import settings
from django.http import HttpRequest


def environment(request: HttpRequest) -> dict[str, bool]:
    """Test mode is never mistaken for live: every template knows it."""
    return {"test_mode": settings.SANDBOX}
