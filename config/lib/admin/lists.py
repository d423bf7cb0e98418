"""Admin lists whose cost does not grow with their tables. No list counts or reads a whole table."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin
from django.contrib.admin.helpers import ActionForm
from django.contrib.admin.utils import get_fields_from_path
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property
from django.utils.text import Truncator, capfirst

from config.lib.admin import titles

# A list shows at most this many rows on all its pages together. A search finds at most this many rows.
MAXIMUM = 1000
NEWEST_SEARCHED = 10_000  # how many of the newest rows a filter searches
MERCHANT_PARAMETER = "merchant__exact"


class WrongFilterValue(Exception):
    """Raised if the address of a list has a filter value that the filter does not offer."""

    def __init__(self, query: Mapping[str, str], model: type[Model], title: str = "") -> None:
        super().__init__(f"A filter does not have the value in {dict(query)}.")
        self.query, self.model, self.title = query, model, title

    @property
    def words(self) -> str:
        """Return sentences that name the filters and the wrong values. The page shows them."""
        return " ".join(
            f"The filter {self._title_of(name)} has no value “{Truncator(value).chars(60)}”."
            for name, value in self.query.items()
        )

    def _title_of(self, parameter: str) -> str:
        name = parameter.partition("__")[0]
        fields = {field.name: field for field in self.model._meta.fields}
        own = titles.title_of(fields[name]) if name in fields else name.replace("_", " ")
        return str(capfirst(self.title or own))


def check_filter_values(changelist: ChangeList, request: HttpRequest) -> None:
    """Raise WrongFilterValue if a filter of the list has a value that is not one of its choices."""
    for chosen in changelist.filter_specs:
        names = [name for name in chosen.expected_parameters() if name and request.GET.get(name)]
        query = {name: request.GET[name] for name in names}
        if query and not any(choice["selected"] for choice in chosen.choices(changelist)):
            title = "" if getattr(chosen, "field", None) else str(chosen.title).partition(",")[0]
            raise WrongFilterValue(query, changelist.model, title)


def filter_parameters(model: type[Model], chosen: Any) -> set[str]:
    """Return the query parameters that belong to an entry in `list_filter`.

    For a field with choices, `status__exact` is a parameter, but `status` is not, because no filter would
    check its value.
    """
    name = chosen[0] if isinstance(chosen, tuple) else chosen
    if own := getattr(name, "parameter_name", None):
        return {own}
    names = {f"{name}__exact", f"{name}__isnull"}
    return names if getattr(get_fields_from_path(model, name)[-1], "choices", None) else {*names, name}


class ShortPaginator(Paginator):
    """Paginator that counts at most MAXIMUM rows. It reads them in the list's order, which has an index."""

    @cached_property
    def count(self) -> int:
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]  # a queryset
        return rows.values("pk")[:MAXIMUM].count()


class NewestFirst(ChangeList):
    """Keeps a list in the only order that has an index, and ignores any order in the query string."""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        return list(self.model_admin.get_ordering(request))


class SelectedRowsForm(ActionForm):
    """Form that applies an action only to the selected rows, never to all rows of the list."""

    select_across = forms.BooleanField(
        label="", required=False, initial=False, disabled=True, widget=forms.HiddenInput
    )


class NewestRowsFilter(admin.ChoicesFieldListFilter):
    """Filter that searches only the newest rows. A search for a rare value would otherwise read the whole table."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = f"{self.title}, among the newest {NEWEST_SEARCHED:,}"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        found = super().queryset(request, queryset)
        return queryset if found is None or not self.used_parameters else limit_to_newest(request, found)


def limit_to_newest(request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
    """Limit a list to the newest rows of its model. In a list of one merchant, only this merchant's rows count."""
    merchant_uuid = _merchant_uuid(request)
    rows = queryset.model._base_manager.order_by("-pk")
    if merchant_uuid is not None:
        rows = rows.filter(merchant=merchant_uuid)
    oldest = rows.values_list("pk", flat=True)[NEWEST_SEARCHED : NEWEST_SEARCHED + 1].first()
    return queryset if oldest is None else queryset.filter(pk__gt=oldest)


def state_filter(choices: Mapping[str, Q]) -> type[admin.SimpleListFilter]:
    """Return a filter by named conditions, for a small table. Each name is also the label of the choice."""

    class State(admin.SimpleListFilter):
        title = "state"
        parameter_name = "state"

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            return [(word, word.capitalize()) for word in choices]

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            return queryset.filter(choices.get(self.value() or "", Q()))

    return State


class MerchantFilter(admin.SimpleListFilter):
    """Filter that limits a list to one merchant's rows. Other pages link to lists with this filter.

    The filter is visible only on filtered lists. It names the merchant, and links to the unfiltered list.
    """

    title = "merchant"
    parameter_name = MERCHANT_PARAMETER

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, str]]:
        merchant_uuid = _merchant_uuid(request)
        if merchant_uuid is None:
            return ()
        merchants = model_admin.model._meta.get_field("merchant").related_model._base_manager
        return [(str(row.pk), str(row)) for row in merchants.filter(pk=merchant_uuid)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() is None:
            return queryset
        merchant_uuid = _merchant_uuid(request)
        return queryset.none() if merchant_uuid is None else queryset.filter(merchant=merchant_uuid)

    def has_output(self) -> bool:
        return self.value() is not None


def has_one_merchant(request: HttpRequest) -> bool:
    """Return whether a list has only one merchant's rows."""
    return _merchant_uuid(request) is not None


def _merchant_uuid(request: HttpRequest) -> UUID | None:
    try:
        return UUID(request.GET.get(MERCHANT_PARAMETER, ""))
    except ValueError:
        return None


def find_exact_matches(
    model: type[Model], paths: Sequence[str], term: str, of_each_merchant: Sequence[str]
) -> set[Any]:
    """Return the keys of the rows in which one of the columns is exactly this term.

    A path that ends in `__iexact` ignores case. Each look-up uses an index. The index of a column in
    `of_each_merchant` begins with the merchant. To use this index, the look-up lists all merchants.
    """
    keys: set[Any] = set()
    for path in paths:
        try:
            value = get_fields_from_path(model, path.removesuffix("__iexact"))[-1].to_python(term)
        except ValidationError:
            # The column cannot contain the term. For example, a UUID column cannot contain a word.
            continue
        rows = model._base_manager.filter(**{path: value})
        if path.removesuffix("__iexact") in of_each_merchant:
            merchants = model._meta.get_field("merchant").related_model
            # The related model of a foreign key is a model class. The stubs allow other types too.
            rows = rows.filter(merchant__in=merchants._base_manager.all())  # type: ignore[union-attr]
        keys |= set(rows.order_by().values_list("pk", flat=True)[:MAXIMUM])
    return keys
