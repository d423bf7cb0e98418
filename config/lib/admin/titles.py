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


def search_hint(model: type[Model], paths: Sequence[str], *, finds_parts: bool) -> str:
    """Return the hint next to a list's search field, made from the columns that it searches.

    For example: "The whole ID of the refund or its checkout, or a whole refund reference."
    """
    fields = [get_fields_from_path(model, path.removesuffix("__iexact")) for path in paths]
    titles = list(dict.fromkeys(map(_title_of_path, fields)))
    if finds_parts:
        return f"Part of the {_join(titles)}."
    keys = [
        title for title in titles if title in {_title_of_path(path) for path in fields if _is_key(path[-1])}
    ]
    others = [
        f"the {title}" if title.startswith("last digits") else f"a whole {title}"
        for title in titles
        if title not in keys
    ]
    own, of = "ID" in keys, [f"its {title}" for title in keys if title != "ID"]
    if of:
        owners = [f"the {row_noun(model._meta)}", *of] if own else of
        others = [f"the whole ID of {_join(owners)}", *others]
    words = _join([*(["a whole ID"] if own and not of else []), *others], comma=bool(of))
    return f"{words[0].upper()}{words[1:]}."


def _is_key(field: "Field[Any, Any]") -> bool:
    return isinstance(field, UUIDField | ForeignKey) or field.primary_key


def _title_of_path(fields: Sequence[Any]) -> str:
    *_, owner, field = (None, *fields)
    of = f"{title_of(owner)}’s " if owner is not None and field.name in ("name", "email") else ""
    return f"{of}{title_of(field)}"


def _join(words: Sequence[str], *, comma: bool = False) -> str:
    """Join the words into a list with "or" before the last one."""
    *most, last = words or [""]
    return f"{', '.join(most)}{',' if comma else ''} or {last}" if most else last
