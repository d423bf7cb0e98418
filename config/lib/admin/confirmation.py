"""Admin actions that first ask the operator to confirm, and to write a note for the log."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from config.lib.admin.columns import list_address, page_address
from config.lib.admin.readonly import FROM_OPERATIONS, FROM_PAGE, OperatorAdmin

CONFIRMED = "confirmed"
Action = Callable[[Any, HttpRequest, QuerySet[Any], str], None]
LookUp = Callable[[Any], str]
Check = Callable[[str], str]  # returns why the note is refused, or ""
RowTexts = Callable[[Any], dict[str, Any]]


@dataclass(frozen=True)
class Question:
    """The texts of a confirmation: what will happen, what the note is for, and the button's text.

    `title_for_one` is the title for a single row, with {} in place of the row's name
    (`OperatorAdmin.called`). `of_one` is called with the single row, and returns the texts that differ for
    it, keyed by field name.
    """

    title: str
    text: str
    label: str
    button: str
    title_for_one: str = ""
    of_one: RowTexts | None = None

    def about(self, model_admin: OperatorAdmin, rows: Sequence[Any]) -> "Question":
        """Return the question for one row or for several rows. Its title ends with a question mark."""
        if len(rows) != 1 or not self.title_for_one:
            return replace(self, title=f"{self.title}?")
        words: dict[str, Any] = {"title": self.title_for_one.format(model_admin.called(rows[0]))}
        return replace(self, **words | (self.of_one(rows[0]) if self.of_one else {}))


def requires_confirmation(
    question: Question, *, look_up: LookUp | None = None, check: Check | None = None
) -> Callable[[Action], Callable[..., HttpResponse | None]]:
    """Decorate an action so that it asks for confirmation first. The action gets the operator's note.

    With `look_up`, the action accepts only one row at a time, and the question shows what `look_up` returns
    for that row. If `check` refuses the note, the page shows the question again, with the error next to the
    note.
    """

    def decorated(action: Action) -> Callable[..., HttpResponse | None]:
        @wraps(action)
        def asking(self: Any, request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse | None:
            if look_up is not None and len(rows) != 1:
                self.message_user(request, "Choose one: it is looked up first.", messages.WARNING)
                return None
            asked = question.about(self, list(rows))
            form = _NoteForm(asked.label, request.POST if CONFIRMED in request.POST else None)
            if form.is_valid() and form.is_accepted(check):
                action(self, request, rows, form.cleaned_data["words"])
                return None
            details = look_up(rows[0]) if look_up else ""
            texts = {"rows": list(rows), "question": asked, "action": action.__name__, "said": details}
            return _render_page(self, request, form, texts)

        # `question_about` reads these attributes.
        asking.question, asking.look_up = question, look_up  # type: ignore[attr-defined]
        return asking

    return decorated


@dataclass(frozen=True)
class AskedQuestion:
    """The confirmation of an action on one row. `details` is the result of `look_up`; `field` is the note's field."""

    question: Question
    details: str
    field: forms.BoundField


def question_about(
    model_admin: OperatorAdmin, request: HttpRequest, action: str, row: Any
) -> AskedQuestion | None:
    """Return the confirmation of an action on a row.

    Return None if the action is not available for this row or this operator, or does not ask for
    confirmation.
    """
    chosen = (model_admin.get_actions(request) or {}).get(action)
    if chosen is None or not model_admin.offers(action, row) or not hasattr(chosen[0], "question"):
        return None
    asking: Any = chosen[0]
    question, look_up = asking.question.about(model_admin, [row]), asking.look_up
    form = _NoteForm(question.label)
    return AskedQuestion(question, look_up(row) if look_up else "", form["words"])


class _NoteForm(forms.Form):
    words = forms.CharField(
        max_length=200,
        widget=forms.TextInput(attrs={"class": "input"}),
        error_messages={"required": "Write a note. Your colleagues need it."},
    )

    def __init__(self, label: str, data: Any = None) -> None:
        super().__init__(data)
        self.fields["words"].label = label

    def is_accepted(self, check: Check | None) -> bool:
        """Return whether a check accepts the note. If it refuses the note, show the reason next to the field."""
        refusal = check(self.cleaned_data["words"]) if check else ""
        if refusal:
            self.add_error("words", refusal)
        return not refusal


def _render_page(
    model_admin: OperatorAdmin,
    request: HttpRequest,
    form: forms.Form,
    texts: dict[str, Any],
) -> HttpResponse:
    context = {
        **model_admin.admin_site.each_context(request),
        **texts,
        "title": texts["question"].title,
        "form": form,
        "opts": model_admin.opts,
        "chosen": request.POST.getlist(ACTION_CHECKBOX_NAME),
        "from_page": FROM_PAGE in request.POST,
        "from_operations": FROM_OPERATIONS in request.POST,
        "back": _address_of_list(model_admin, request),
    }
    return TemplateResponse(request, "admin/confirm.html", context)


def _address_of_list(model_admin: OperatorAdmin, request: HttpRequest) -> str:
    chosen = request.POST.getlist(ACTION_CHECKBOX_NAME)
    if FROM_OPERATIONS in request.POST:
        return reverse("admin_operations")
    if FROM_PAGE in request.POST and len(chosen) == 1:
        return page_address(model_admin.opts.label_lower, quote(chosen[0]))
    return list_address(model_admin.opts.label_lower)
