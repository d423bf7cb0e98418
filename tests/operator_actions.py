"""Helpers for admin actions: log in an operator, carry out an action, and read the log of a row."""

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
    """Log in an operator. Return a function that carries out an admin action on the given rows of a list.

    The function returns the next page. If the function gets `words`, it also confirms the action with them.
    """
    people.operate(client)

    def act(address: str, action: str, *rows: Any, words: str | None = None, **more: str) -> str:
        form = {"action": action, "_selected_action": [str(row.pk) for row in rows]} | more
        if words is not None:
            form |= {"confirmed": "1", "words": words}
        answer = client.post(address, form, follow=True)
        assert answer.status_code == 200
        return str(answer.content.decode())

    return act
