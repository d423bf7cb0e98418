"""Admin pages for discrepancies: a list, and a page for each discrepancy that explains its kind."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django.contrib import admin, messages
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html

from config.lib.admin import columns, confirmation, lists
from config.lib.admin.readonly import ReadOnlyAdmin
from payments.discrepancies import facts, kinds, reporting
from payments.models import Discrepancy

CLOSE = confirmation.Question(
    title="Close discrepancies",
    text="Close the discrepancies that you have resolved. If one occurs again, it is reported again.",
    label="What came of it",
    button="Close",
    title_for_one="Close this discrepancy?",
    of_one=lambda _: {
        "text": "Close it once you have resolved it. If it occurs again, it is reported again.",
        "button": "Close it",
    },
)
ADD_NOTE = confirmation.Question(
    title="Add a note",
    text="The discrepancies stay open. The note shows your name and the time.",
    label="Why it stays open",
    button="Add the note",
    title_for_one="Add a note to this discrepancy?",
    of_one=lambda _: {"text": "The discrepancy stays open. The note shows your name and the time."},
)
OPEN_STATE_FILTER = lists.state_filter({"open": Q(closed_at=None), "closed": Q(closed_at__isnull=False)})


class DiscrepancyAdmin(ReadOnlyAdmin):
    """Admin pages for discrepancies. A person investigates a discrepancy, notes the result and closes it.

    If the discrepancy occurs again, it is reported again. A subclass in checkout/remedies/admin.py adds the search by
    order.
    """

    actions: tuple[str, ...] = ("close", "add_note")
    is_small = True
    ordering = (F("closed_at").desc(nulls_first=True), "created_at")  # type: ignore[assignment]
    list_display = ("__str__", "merchant", "operation", "subject", "created_at", "closed_at")
    list_filter = (OPEN_STATE_FILTER, "kind")
    listed_as = "By age, open ones first"
    searched_by = "What is wrong, note or order"
    search_help_text = "Part of what is wrong or of a note, or a whole order ID."
    search_fields = ("kind", "note", "subject")
    titles: Mapping[str, str] = {"created_at": "since", "note": "notes", "subject": "about"}
    # The page for a discrepancy begins with these fields and its facts. All other fields are collapsed below them.
    words: tuple[str, ...] = ("merchant", "created_at", "note")

    def has_write_permission(self, request: HttpRequest) -> bool:
        """Return whether the operator may close discrepancies and add notes to them."""
        return request.user.has_perm("payments.change_discrepancy")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = super().get_fields(request, obj)
        others = [field for field in fields if columns.column_name(field) not in (*self.words, "facts")]
        empty = {"note": not obj.note, "merchant": not obj.merchant_id}
        words = [self.column(name) for name in self.words if not empty.get(name)]
        rows = facts.fact_columns(obj)
        return [
            (None, {"fields": words}),
            *([("Facts", {"fields": rows})] if rows else []),
            ("For developers", {"fields": ["runbook", *others], "classes": ["collapse"]}),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return [field for _, options in self.get_fieldsets(request, obj) for field in options["fields"]]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the search results. The search also finds discrepancies by the sentence of their kind."""
        found, has_duplicates = super().get_search_results(request, queryset, search_term)
        term = search_term.strip().lower()
        named = [kind.name for kind in kinds.TABLE.values() if term and term in kind.sentence.lower()]
        is_found = Q(pk__in=found.order_by().values("pk")) | Q(kind__in=named)
        return (queryset.filter(is_found) if named else found), has_duplicates

    def offers(self, action: str, row: Discrepancy) -> bool:
        return row.closed_at is None

    @admin.display(description="runbook")
    def runbook(self, row: Discrepancy) -> str:
        return format_html("<code>{}</code>", row.kind_entry.runbook_page)

    @admin.action(description="Close with a note", permissions=["write"])
    @confirmation.requires_confirmation(CLOSE)
    def close(self, request: HttpRequest, rows: QuerySet[Discrepancy], note: str) -> None:
        for discrepancy in self._write_note(request, rows, reporting.close_discrepancy, note):
            self.log_change(request, discrepancy, f"Closed: {note}")
            self.message_user(request, f"Closed: {discrepancy}.")

    @admin.action(description="Add a note", permissions=["write"])
    @confirmation.requires_confirmation(ADD_NOTE)
    def add_note(self, request: HttpRequest, rows: QuerySet[Discrepancy], note: str) -> None:
        for discrepancy in self._write_note(request, rows, reporting.add_note, note):
            self.log_change(request, discrepancy, f"Noted: {note}")
            self.message_user(request, f"Note added: {discrepancy}.")

    def _write_note(
        self,
        request: HttpRequest,
        rows: QuerySet[Discrepancy],
        write: Callable[..., Discrepancy],
        note: str,
    ) -> Iterator[Discrepancy]:
        """Write the note on each discrepancy. Yield the discrepancies that were still open."""
        for discrepancy in rows:
            try:
                write(discrepancy.pk, note=note, author=str(request.user))
            except reporting.AlreadyClosed:
                self.message_user(request, f"{discrepancy} was closed already.", messages.WARNING)
            else:
                yield discrepancy
