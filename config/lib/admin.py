"""The admin is for looking: money and history are read there, never written."""

from typing import Any

from django.contrib import admin
from django.db.models import Field, Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html


class ReadOnlyAdmin(admin.ModelAdmin):
    """Every field shown, none changed. Never counts a whole table for its pages."""

    show_full_result_count = False
    list_per_page = 50
    secret: tuple[str, ...] = ()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields: list[Field[Any, Any]] = list(self.model._meta.fields)
        return [field.name for field in fields if field.name not in self.secret]


def link(target: Model | None) -> str:
    """Return a link to another object's page in the admin."""
    if target is None:
        return "–"
    meta = target._meta
    address = reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[target.pk])
    return format_html('<a href="{}">{}</a>', address, target)
