"""The rights of operators in words, and the form field that shows them as a list of checkboxes.

The field offers only the rights that an admin page checks. Django makes four rights for each table, and most
of them have no effect, because most tables are read-only.
"""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from portal.backoffice import frame

# The rights to act, keyed by Django's name for the permission. A superuser has further rights that other people
# cannot get.
ACTIONS: dict[str, str] = {
    "checkout.change_checkout": "Cancel held orders",
    "payments.change_operation": "Resolve operations, and run tasks by hand",
    "payments.change_discrepancy": "Close discrepancies",
    "payments.change_switch": "Stop and resume merchants",
    "payments.add_merchant": "Add merchants",
    "payments.change_merchant": "Change merchants’ settings",
    "webhooks.change_delivery": "Resend webhooks",
    "portal.add_user": "Add users",
    "portal.change_user": "Close users’ accounts and open them again",
    "mfa.delete_authenticator": "Delete users’ second factors",
    "usersessions.delete_usersession": "Log users out",
}
ACT, SEE, OTHER = "Act", "See", "See other tables"
GROUPS_HINT = "An operator also has the rights of these groups."


def rights_in_words(permissions: Iterable[Permission]) -> str:
    """Return the rights that have an effect, as a text with a list."""
    words = [words for _, rights in group_rights(permissions) for _, words in rights]
    return ", ".join(words)


def group_rights(permissions: Iterable[Permission]) -> list[tuple[str, list[tuple[int, str]]]]:
    """Return the choices of a form for the rights that have an effect: groups of keys and words.

    Each permission must be read with its content type.
    """
    by_name = {f"{row.content_type.app_label}.{row.codename}": row.pk for row in permissions}
    groups = [(ACT, [(by_name[name], words) for name, words in ACTIONS.items() if name in by_name])]
    seen = _tables()
    known = [label for rows in frame.RECORDS.values() for _, label in rows]
    for title, labels in ((SEE, known), (OTHER, sorted(seen.keys() - set(known), key=seen.__getitem__))):
        names = [(label, label.replace(".", ".view_")) for label in labels]
        groups.append((title, [(by_name[name], seen[label]) for label, name in names if name in by_name]))
    return [(title, rights) for title, rights in groups if rights]


def _tables() -> dict[str, str]:
    """Return the label of each table in the admin, keyed by the label of its model."""
    tables = {}
    for model in admin.site._registry:
        label = frame.table_label(str(capfirst(model._meta.verbose_name_plural)))
        is_of_bank = model._meta.app_label == "bank"
        tables[model._meta.label_lower] = f"Sandbox bank: {label.lower()}" if is_of_bank else label
    return tables


class TickBoxes(forms.CheckboxSelectMultiple):
    """Checkboxes in columns. Each group of choices has a heading. `title` names the whole list for screen readers.

    `hint` is shown below the choices, if there are any.
    """

    def __init__(self, title: str, hint: str = "") -> None:
        super().__init__()
        self.title, self.hint = title, hint

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """Return the HTML of the checkboxes."""
        context = self.get_context(name, value, attrs)
        return render_to_string(
            "admin/tick_boxes.html", {**context, "title_of_all": self.title, "hint": self.hint}
        )


class RightsField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]  # generic only in the stubs
    """A field to choose rights.

    The field does not offer rights without an effect. A row keeps such rights until its other rights change.
    """

    def __init__(self, queryset: Any, **options: Any) -> None:
        groups = group_rights(queryset.select_related("content_type"))
        self.offered = {key for _, rights in groups for key, _ in rights}
        options["widget"] = TickBoxes("Rights")
        super().__init__(queryset.filter(pk__in=self.offered), **options)
        self.choices = groups

    def prepare_value(self, value: Any) -> Any:
        """Return the keys in the value, without those that the field does not offer."""
        prepared = super().prepare_value(value)
        offered = {str(key) for key in self.offered}
        return [key for key in prepared if str(key) in offered] if isinstance(prepared, list) else prepared
