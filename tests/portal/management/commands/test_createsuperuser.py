"""`manage.py createsuperuser` creates only operators who can log in."""

import pytest
from django.core.management import CommandError, call_command

from portal.models import User

pytestmark = pytest.mark.django_db
MAIL, PASSWORD = "ops@checkout.example", "a-long-and-random-password-7"


def test_an_operator_without_a_password_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DJANGO_SUPERUSER_PASSWORD", raising=False)
    with pytest.raises(CommandError, match="Set DJANGO_SUPERUSER_PASSWORD, or leave out --noinput"):
        call_command("createsuperuser", interactive=False, email=MAIL)
    assert not User.objects.filter(email=MAIL).exists()


def test_the_password_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", PASSWORD)
    call_command("createsuperuser", interactive=False, email=MAIL)
    assert User.objects.get(email=MAIL).check_password(PASSWORD)
