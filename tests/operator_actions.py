"""Operators' actions in the admin: who carries them out, their log, and an operator with few rights."""

from collections.abc import Callable
from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client

from portal.models import User
from tests.portal import people

Act = Callable[..., str]


def log_of(row: Any) -> list[str]:
    entries = LogEntry.objects.filter(object_id=str(row.pk)).order_by("pk")
    return [entry.change_message for entry in entries]


def looker(*permissions: str) -> Client:
    """Log in a member of staff with only these permissions."""
    person = User.objects.create_user("looker@example.com", is_staff=True)
    person.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    people.operate(client, person)
    return client


def acting(client: Client) -> Act:
    """Log an operator in, and return a function that carries out an action on rows of a list.

    It confirms the action if `words` are given, and returns the next page.
    """
    people.operate(client)

    def acted(address: str, action: str, *rows: Any, words: str | None = None, **more: str) -> str:
        form = {"action": action, "_selected_action": [str(row.pk) for row in rows]} | more
        if words is not None:
            form |= {"confirmed": "1", "words": words}
        answer = client.post(address, form, follow=True)
        assert answer.status_code == 200
        return str(answer.content.decode())

    return acted
