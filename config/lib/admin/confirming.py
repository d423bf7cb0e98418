"""Admin actions that ask for confirmation first, and for words for the log."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from config.lib.admin.columns import link, list_of
from config.lib.admin.readonly import FROM_PAGE, OperatorAdmin

CONFIRMED = "confirmed"
Action = Callable[[Any, HttpRequest, QuerySet[Any], str], None]
Seen = Callable[[Any], str]


@dataclass(frozen=True)
class Question:
    """The texts of a confirmation: what will happen, what the words are for, and what the button says."""

    title: str
    text: str
    label: str
    button: str


def confirmed(
    question: Question, *, seen: Seen | None = None
) -> Callable[[Action], Callable[..., HttpResponse | None]]:
    """Decorate an action, so that it asks first; it is given the words, which are required.

    With `seen` the action takes one row at a time, and the question shows what `seen` returns for that row.
    """

    def decorated(action: Action) -> Callable[..., HttpResponse | None]:
        @wraps(action)
        def asking(self: Any, request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse | None:
            if seen is not None and len(rows) != 1:
                self.message_user(request, "Choose one: it is looked up first.", messages.WARNING)
                return None
            form = _Words(request.POST if CONFIRMED in request.POST else None)
            form.fields["words"].label = question.label
            if form.is_valid():
                action(self, request, rows, form.cleaned_data["words"])
                return None
            about = [(row, seen(row) if seen else "") for row in rows]
            return _page(self, request, about, question, form)

        return asking

    return decorated


class _Words(forms.Form):
    words = forms.CharField(max_length=200, widget=forms.TextInput(attrs={"class": "input"}))


def _page(
    shown: OperatorAdmin,
    request: HttpRequest,
    about: Sequence[tuple[Any, str]],
    question: Question,
    form: forms.Form,
) -> HttpResponse:
    context = {
        **shown.admin_site.each_context(request),
        "title": question.title,
        "question": question,
        "form": form,
        "opts": shown.opts,
        "links": [(link(row), said) for row, said in about],
        "chosen": request.POST.getlist(ACTION_CHECKBOX_NAME),
        "action": request.POST.get("action"),
        "from_page": FROM_PAGE in request.POST,
        "back": list_of(shown.opts.label_lower),
    }
    return TemplateResponse(request, "admin/confirm.html", context)
