"""The base classes of all admin pages: limited lists, links to related rows, and read-only pages."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup, DisallowedModelAdminToField
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import quote
from django.contrib.admin.views.main import ChangeList
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.db import transaction
from django.db.models import DateTimeField, Field, ForeignKey, Model, QuerySet, UUIDField
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.text import capfirst

from config.lib.admin import columns, lists, panels, titles
from config.lib.admin.columns import Column
from config.lib.database import replica

FROM_PAGE = "from_page"  # posted if the action was started on the row's page
FROM_OPERATIONS = "from_operations"  # posted if it was started on the page of cases that need an operator


class ChangesForm(forms.ModelForm):
    """Form that writes only the fields that the operator changed.

    Another operator might have changed the other fields after the page was shown. The page therefore also
    posts the values that it showed. If such a value is missing for a field, the form compares the field with
    the current row. Rule operator.changes.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        posted = [name for name in self.fields if self.add_initial_prefix(name) in self.data]
        for name, field in self.fields.items():
            # For a list that was empty, the page posts no earlier value. A missing earlier value of a list
            # therefore counts as empty.
            was_empty = bool(posted) and isinstance(field, forms.ModelMultipleChoiceField)
            is_comparable = not self.is_bound or name in posted or was_empty
            field.show_hidden_initial = is_comparable and self._is_of_row()

    def clean(self) -> dict[str, Any]:
        typed = self.cleaned_data
        super().clean()
        return {name: typed[name] for name in typed if name in self.changed_data or not self._is_of_row()}

    def _is_of_row(self) -> bool:
        return not self.instance._state.adding


class OperatorAdmin(admin.ModelAdmin):
    """An admin whose lists have a limited cost. Its search uses indexes, and its pages link to all related rows."""

    form = ChangesForm
    action_form = lists.SelectedRowsForm
    actions_on_bottom = True  # below the rows, as in the portal
    actions_on_top = False
    actions_selection_counter = False
    list_per_page = 50
    ordering = ("-pk",)
    paginator = lists.ShortPaginator
    show_facets = admin.ShowFacets.NEVER
    show_full_result_count = False
    sortable_by = ()
    view_on_site = False  # no row has a page outside the admin, even if a library's model names one

    titles: Mapping[str, str] = {}  # labels of fields, where the label from `titles.title_of` does not fit
    explanations: Mapping[str, str] = {}  # help texts of fields, where the model's are not for operators
    short_names: Mapping[str, str] = {}  # names of actions for the buttons on a row's page
    searched_by = ""  # the label of the search field, where the label from `titles.search_label` does not fit
    adds_by = ""  # the label of the button that adds a row, if it needs one
    adding_note = ""  # what the operator must know before adding a row
    deletes_by = "Delete"  # the label of the link that deletes a row
    empty_value_display = columns.EMPTY_CELL
    listed_as = "Newest first"  # the list's order
    is_small = False  # the table is so small that a search or a filter can read all rows
    secret: tuple[str, ...] = ()
    code_words: tuple[str, ...] = ()  # fields with machine words, which are shown in plain words
    hidden: tuple[str, ...] = ()  # internal fields, which do not help an operator
    panel_order: tuple[str, ...] = ("pk",)  # the order of the rows in a panel on another row's page
    actors: tuple[str, ...] = ("actor",)  # fields that say who caused a change
    references: Mapping[str, str] = {}  # maps a field with another row's key to that row's model
    # The panels on a row's page. Each entry names another model, and its field that refers to the row.
    panels: tuple[tuple[str, str], ...] = ()
    counts_records = False  # whether a row's page shows how many rows refer to the row
    uncounted: tuple[str, ...] = ()  # fields in `references` without an index; their rows are not counted
    linked_by: tuple[str, ...] = ()  # lookups in links to the list, in addition to the foreign keys
    of_each_merchant: tuple[str, ...] = ()  # searched columns whose index begins with the merchant
    merchants_order: tuple[str, ...] = ()  # the indexed order of one merchant's rows

    def offers(self, action: str, row: Any) -> bool:
        """Return whether a row's own page has a button for an action."""
        return True

    def called(self, row: Any) -> str:
        """Return the name of a row for the question that asks for confirmation."""
        return str(row)

    def column(self, name: Any) -> Any:
        """Return the column for a field: a link to another row, a time to the second, or a value in words."""
        field = {field.name: field for field in self.opts.fields}.get(name)
        if field is None:
            return name
        title = self.titles.get(name) or titles.title_of(field)
        if name in self.references:
            return columns.reference_column(name, title, self.references[name])
        if isinstance(field, ForeignKey):
            return columns.link_column(name, title)
        if isinstance(field, DateTimeField):
            return columns.time_column(name, title)
        if isinstance(field, UUIDField) or name in CODES:
            return columns.code_column(name, title)
        if name in self.code_words:
            return columns.words_column(name, title)
        make = columns.actor_column if name in self.actors else columns.field_column
        return make(name, title)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        foreign = [field.name for field in self.opts.fields if isinstance(field, ForeignKey)]
        more = self.list_select_related or ()
        rows = super().get_queryset(request)
        # The stubs allow True here, but our admins never set it.
        return rows.select_related(*foreign, *more) if foreign else rows  # type: ignore[misc]

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the row, or raise Http404.

        Lock the row if the request changes or deletes it, because a save writes all fields.
        """
        row = super().get_object(request, object_id, from_field)
        if row is None:
            raise Http404  # otherwise, Django would redirect to the overview
        if request.method != "POST" or not transaction.get_connection().in_atomic_block:
            return row  # a POST to the history page runs outside a transaction, so it cannot lock the row
        if not (self.has_change_permission(request, row) or self.has_delete_permission(request, row)):
            return row  # Django will refuse the request, and our role may not lock some tables' rows
        return self.get_queryset(request).select_for_update(of=("self",), no_key=True).get(pk=row.pk)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """Return the form, with the labels and help texts of this admin."""
        kwargs["labels"] = {name: capfirst(title) for name, title in self.titles.items()}
        kwargs["help_texts"] = {"subject": "", **self.explanations}
        return super().get_form(request, obj, change, **kwargs)

    def formfield_for_choice_field(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Return the form field for a choice. If it has no default, its empty choice asks the operator to choose."""
        kwargs["choices"] = db_field.get_choices(
            include_blank=db_field.blank or not db_field.has_default(), blank_choice=[("", "Choose one")]
        )
        return super().formfield_for_choice_field(db_field, request, **kwargs)

    def get_list_display(self, request: HttpRequest) -> Any:
        shown = [self.column(name) for name in self.list_display]
        return [
            columns.list_column(column, is_first=place == 0) if callable(column) else column
            for place, column in enumerate(shown)
        ]

    def get_list_filter(self, request: HttpRequest) -> Any:
        filters: list[Any] = [self._filter(chosen) for chosen in self.list_filter]
        has_merchant = any(field.name == "merchant" for field in self.opts.fields)
        return [lists.MerchantFilter, *filters] if has_merchant else filters

    def _filter(self, chosen: Any) -> Any:
        return (chosen, lists.NewestRowsFilter) if isinstance(chosen, str) and not self.is_small else chosen

    def get_ordering(self, request: HttpRequest) -> Any:
        return self.merchants_order or self.ordering if lists.has_one_merchant(request) else self.ordering

    @replica.readable
    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        try:
            return super().changelist_view(request, extra_context)
        except (DisallowedModelAdminLookup, DisallowedModelAdminToField):
            return self._show_wrong_filter(request, "No such filter")
        except lists.WrongFilterValue as error:
            return self._show_wrong_filter(request, "No such value", error)

    def _show_wrong_filter(
        self, request: HttpRequest, title: str, error: lists.WrongFilterValue | None = None
    ) -> HttpResponse:
        """Return an error page for an address with a filter, or a filter value, that the list does not have."""
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": title,
            "wrong_value": error,
        }
        return TemplateResponse(request, "admin/wrong_filter.html", context, status=400)

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Return the list. Raises WrongFilterValue, where Django would show the whole list without a message."""
        try:
            found: Any = super().get_changelist_instance(request)
        except IncorrectLookupParameters as error:
            raise lists.WrongFilterValue(request.GET.dict(), self.model) from error
        lists.check_filter_values(found, request)
        if self.search_fields:
            label = self.searched_by or titles.search_label(self.model, list(self.search_fields))
            hint = self.search_help_text or titles.search_hint(label, finds_parts=self.is_small)
            found.searched_by, found.search_help_text = label, hint
        return found

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return lists.NewestFirst

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Allow only the lookups that our pages use. Others could reveal a secret letter by letter."""
        names = [field.name for field in self.opts.fields if isinstance(field, ForeignKey)]
        allowed = {f"{name}__exact" for name in (*names, *self.references, *self.linked_by)}
        for chosen in self.get_list_filter(request) if request else ():
            allowed |= lists.filter_parameters(self.model, chosen)
        return lookup in allowed

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find rows in which one of `search_fields` is exactly this term. In a small table, a part of it is enough."""
        term = search_term.replace("\0", "").strip()
        if self.is_small or not term:
            return super().get_search_results(request, queryset, term)
        found = lists.find_exact_matches(self.model, list(self.search_fields), term, self.of_each_merchant)
        return queryset.filter(pk__in=found), False

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Return the form field for a model's field, without Django's icons that open another row in a window."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and isinstance(field.widget, RelatedFieldWidgetWrapper):
            field.widget = field.widget.widget
        return field

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        title = {"title": "Operators’ actions on this record"}
        return super().history_view(request, object_id, {**(extra_context or {}), **title})

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        row = kwargs.get("obj")
        # After a reauthentication, the browser can show a different address. The form therefore contains its
        # own address.
        kwargs["form_url"] = request.get_full_path()
        context["adminform"].form.label_suffix = ""
        # The form has only one button. It saves, and returns to the list.
        context.update(
            show_save_and_add_another=False, show_save_and_continue=False, deletes_by=self.deletes_by
        )
        if row is not None:
            context.update(self._around(request, row))
        return super().render_change_form(request, context, *args, **kwargs)

    def _around(self, request: HttpRequest, row: Model) -> dict[str, Any]:
        registered = {
            model_admin.opts.label_lower: model_admin for model_admin in admin.site._registry.values()
        }
        drawn = [found for found in self.panels if registered[found[0]].has_view_permission(request)]
        actions: dict[str, Any] = dict(self.get_actions(request) or {})
        return {
            "panels": [panels.read_panel(registered[label], request, path, row) for label, path in drawn],
            "elsewhere": panels.other_list_links(
                list(registered.values()), request, row, set(drawn), is_counted=self.counts_records
            ),
            "row_actions": [
                (name, self.short_names.get(name, words))
                for name, (_, _, words) in actions.items()
                if self.offers(name, row)
            ],
        }

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any], *where: Any
    ) -> HttpResponse | None:
        """If the action was started on a page other than the list, redirect to that page."""
        answer = super().response_action(request, queryset, *where)
        chosen = request.POST.getlist("_selected_action")
        if isinstance(answer, HttpResponseRedirect) and FROM_PAGE in request.POST and len(chosen) == 1:
            return HttpResponseRedirect(
                columns.page_address(self.opts.label_lower, quote(chosen[0])), status=303
            )
        if isinstance(answer, HttpResponseRedirect) and FROM_OPERATIONS in request.POST:
            return HttpResponseRedirect(reverse("admin_operations"), status=303)
        return answer


# Fields that are used for look-ups or by developers. A row's page shows them last.
TECHNICAL = ("id", "reference", "request_id", "traceparent", "card_fingerprint")
# Fields whose values people copy rather than read.
CODES = (*TECHNICAL, "client_id", "key", "merchant_refund_ref", "provider_account", "provider_reference")


class ReadOnlyAdmin(OperatorAdmin):
    """An admin that does not allow changes. It shows all fields, except secret fields and fields without a value."""

    extra_columns: tuple[str, ...] = ()  # columns that are shown in addition to the fields

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields: list[Field[Any, Any]] = list(self.opts.fields)
        names = [
            field.name
            for field in fields
            if field.name not in (*self.secret, *self.hidden) and not self._is_empty(field, obj)
        ]
        facts: list[str | Column] = [self.column(name) for name in names if name not in TECHNICAL]
        return [*facts, *self.extra_columns, *(self.column(name) for name in TECHNICAL if name in names)]

    def _is_empty(self, field: Any, row: Model | None) -> bool:
        # A deferred field is skipped, because Django would need another statement to read it.
        is_read = row is not None and field.attname not in row.get_deferred_fields()
        return is_read and getattr(row, field.attname) in (None, "", [])


class UnloggedAdmin(ReadOnlyAdmin):
    """An admin for unlogged tables. A replica lacks their rows, so the list is read from the primary."""

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        return super().changelist_view(request, extra_context)
