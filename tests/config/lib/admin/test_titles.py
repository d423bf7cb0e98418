"""Labels of fields and choices on admin pages, and the hints for searches, are plain words."""

import re
from typing import Any

import pytest
from django.contrib import admin
from django.db.models import Model

from checkout.models import ApiCall, Bill, Checkout, Refund
from config.lib.admin import titles
from payments.models import Movement, Operation, Payment
from portal.models import Membership
from webhooks.models import Attempt, Delivery

# Beginnings and ends of column names that a label must not have: "is_open", "created_at", "refund_uuid".
BARE = re.compile(r"_|^is |( at| uuid)$")
CODE = re.compile(r"_|^[a-z]|: ")


def _admins() -> list[tuple[type[Model], Any]]:
    return list(admin.site._registry.items())


def test_labels_of_fields_are_plain_words() -> None:
    bare = {
        f"{model._meta.label_lower}.{field.name}"
        for model, shown in _admins()
        for field in model._meta.fields
        if field.name not in getattr(shown, "secret", ())
        and BARE.search(shown.titles.get(field.name) or titles.title_of(field))
    }
    assert bare == set()


@pytest.mark.parametrize(
    ("model", "name", "title"),
    [
        (Operation, "refund_uuid", "refund"),
        (Operation, "first_sent_at", "first sent"),
        (Operation, "is_open", "waits for the provider"),
        (Payment, "card_last4", "last digits of the card"),
        (Attempt, "http_status", "HTTP status"),
        (Checkout, "cancel_url", "cancel address"),
        (Movement, "bearer", "whose money"),
    ],
)
def test_a_label_says_what_the_value_is(model: type[Model], name: str, title: str) -> None:
    field: Any = model._meta.get_field(name)
    assert titles.title_of(field) == title


def test_labels_of_choices_are_plain_words() -> None:
    ours = ("payments", "checkout", "hosted_page", "webhooks")
    coded = {
        (str(field), label)
        for model in admin.site._registry
        if model._meta.app_label in ours
        for field in model._meta.fields
        for value, label in field.flatchoices
        if CODE.search(str(label)) and str(label) != value  # an event type is its own label
    }
    assert coded == set()


@pytest.mark.parametrize(
    ("model", "label", "hint"),
    [
        (ApiCall, "API call, request or checkout ID", "Enter the whole ID."),
        (Refund, "Refund or checkout ID, or refund reference", "Enter it in full."),
        (Delivery, "Delivery, event or checkout ID", "Enter the whole ID."),
        (Operation, "Operation, payment, checkout, share or refund ID", "Enter the whole ID."),
        (Payment, "Payment, checkout or share ID, or last digits of the card", "Enter it in full."),
        (Bill, "Checkout ID", "Enter the whole ID."),
        (Membership, "User’s e-mail or merchant’s name", "A part is enough."),
    ],
)
def test_the_label_and_the_hint_of_a_search_say_what_it_finds(
    model: type[Model], label: str, hint: str
) -> None:
    shown: Any = admin.site.get_model_admin(model)
    assert titles.search_label(model, list(shown.search_fields)) == label
    assert titles.search_hint(label, finds_parts=shown.is_small) == hint


def test_a_label_of_a_search_names_no_thing_twice() -> None:
    searched = [shown for _, shown in _admins() if shown.search_fields]
    labels = {shown: titles.search_label(shown.model, list(shown.search_fields)) for shown in searched}
    words = {shown: re.split(r", or |, | or ", label.lower()) for shown, label in labels.items()}
    assert [label for shown, label in labels.items() if len(set(words[shown])) < len(words[shown])] == []
