"""Labels of fields on admin pages, made from column names: "created at" is shown as "created"."""

from collections.abc import Sequence
from typing import Any

from django.contrib.admin.utils import get_fields_from_path
from django.db.models import Field, ForeignKey, Model, UUIDField

# Labels that `title_of` cannot derive, by column name in words.
TITLES = {
    "actor": "by",
    "attempt count": "attempts",
    "bearer": "whose money",
    "blocked": "blocked address",
    "card last4": "last digits of the card",
    "duration ms": "duration in ms",
    "email": "e-mail",
    "has passed": "passed",
    "http status": "HTTP status",
    "hung in a row": "timeouts in a row",
    "id": "ID",
    "ip": "IP address",
    "is approved": "approved for personal data",
    "is live": "current payment",
    "is open": "waits for the provider",
    "last sent at": "not sent after",
    "last4": "last digits",
    "merchant order id": "order ID",
    "merchant refund ref": "refund reference",
    "object repr": "about",
    "origin": "from",
    "param": "parameter",
    "reference": "provider’s ID",
    "request id": "request ID",
    "resends": "replaces",
    "resent by": "next attempt requested by",
    "resent count": "requested attempts",
    "response excerpt": "beginning of the answer",
    "returns at": "next automatic attempt",
    "subject": "order or share",
    "status": "state",
    "traceparent": "trace",
    "url": "address",
}


# The nouns for a model's rows, singular and plural, by the model's name in words. All other rows are named like
# their model.
NOUNS = {
    "card try": ("card attempt", "card attempts"),
    "day of texts": ("day with texts", "days with texts"),
    "log entry": ("action", "actions"),
    "last write": ("last change", "last changes"),
    "number that stopped texts": ("opted-out number", "opted-out numbers"),
    "outbound email": ("email", "emails"),
    "payer sign in": ("payer sign-in", "payer sign-ins"),
    "payment request": ("share", "shares"),
    "prefill": ("order with prefilled customer data", "orders with prefilled customer data"),
    "reconciled": ("reconciliation", "reconciliations"),
    "share take": ("share claim", "share claims"),
    "sign in code": ("sign-in code", "sign-in codes"),
    "switch": ("stop", "stops"),
}


def row_noun(opts: Any, count: int = 1) -> str:
    """Return the noun for this number of a model's rows, such as "share"."""
    names = str(opts.verbose_name), str(opts.verbose_name_plural)
    return NOUNS.get(names[0], names)[count != 1]


def title_of(field: "Field[Any, Any]") -> str:
    """Return the label of a field.

    The function removes "is" from the beginning of a name, and "at" or "uuid" from its end. The label then
    fits the field's value: a yes or no, a time, or a link.
    """
    name = str(field.verbose_name)
    if name.lower() in TITLES:
        return TITLES[name.lower()]
    return name.removeprefix("is ").removesuffix(" at").removesuffix(" uuid").replace(" url", " address")


def search_label(model: type[Model], paths: Sequence[str]) -> str:
    """Return the label of a list's search field, made from the columns that it searches.

    For example: "Refund or checkout ID, or refund reference".
    """
    fields = [get_fields_from_path(model, path.removesuffix("__iexact")) for path in paths]
    titles = dict.fromkeys(_title_of_path(model, path) for path in fields)
    owners = [title.removesuffix(" ID") for title in titles if title.endswith(" ID")]
    others = [title for title in titles if not title.endswith(" ID")]
    ids = [f"{_join(_owners_apart(owners))} ID"] if owners else []
    words = _join([*ids, *others], comma=len(owners) > 1)
    return f"{words[0].upper()}{words[1:]}"


def search_hint(label: str, *, finds_parts: bool) -> str:
    """Return the hint below a search field with this label. It says how much of a value must be typed."""
    if finds_parts:
        return "A part is enough."
    return "Enter the whole ID." if label.endswith(" ID") else "Enter it in full."


def _title_of_path(model: type[Model], fields: Sequence[Any]) -> str:
    """Return what a search by a path finds, such as "checkout ID" or "user’s e-mail"."""
    *_, owner, field = (None, *fields)
    if field.primary_key and owner is None and not field.is_relation:
        return f"{row_noun(model._meta)} ID"
    title = title_of(field)
    if isinstance(field, UUIDField | ForeignKey):
        return f"{title.removesuffix(' ID')} ID"
    return f"{title_of(owner)}’s {title}" if owner is not None and field.name in ("name", "email") else title


def _owners_apart(owners: Sequence[str]) -> list[str]:
    """Return the nouns in front of "ID", each once. The order of an "order or share" is found by its checkout ID."""
    nouns = [noun for owner in owners for noun in owner.split(" or ")]
    return list(dict.fromkeys("checkout" if noun == "order" and len(owners) > 1 else noun for noun in nouns))


def _join(words: Sequence[str], *, comma: bool = False) -> str:
    """Join the words into a list with "or" before the last one."""
    *most, last = words or [""]
    return f"{', '.join(most)}{',' if comma else ''} or {last}" if most else last
