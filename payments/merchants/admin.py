"""Admin pages for merchants, for the stops of single merchants, and for the stop of all merchants.

Rules operator.stop, operator.settings, operator.recorded.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.validators import validate_email
from django.db import models
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.text import capfirst

from config.lib.admin import columns, confirmation, lists
from config.lib.admin.readonly import ChangesForm, OperatorAdmin, ReadOnlyAdmin
from payments import operator_stops
from payments.models import Merchant, Switch
from payments.settings_form import SettingsForm


def _ask_about_merchants(verb: str, effect: str) -> confirmation.Question:
    """Return the question to confirm before merchants are changed. {} in `effect` is replaced by the merchant."""
    return confirmation.Question(
        title=f"{verb} merchants",
        text=effect.format("they"),
        label="Reason",
        button=f"Yes, {verb.lower()}",
        title_for_one=f"{verb} {{}}?",
        of_one=lambda merchant: {"text": effect.format(merchant), "button": f"Yes, {verb.lower()} it"},
    )


SUSPEND = _ask_about_merchants(
    "Stop",
    "Within five seconds, {} can no longer create orders, be paid or capture. Holds lapse and are released."
    " Reading, cancelling and refunding still work, and operations in doubt are finished.",
)
RESUME = _ask_about_merchants(
    "Resume",
    "Within five seconds, {} can create orders, be paid and capture again, unless all merchants are stopped.",
)
STOP_ALL = confirmation.Question(
    title="Stop all merchants",
    text="Within five seconds, no merchant can create orders, be paid or capture. Holds lapse and are released."
    " Reading, cancelling and refunding still work, and operations in doubt are finished.",
    label="Reason",
    button="Yes, stop all merchants",
)
LIFT = confirmation.Question(
    title="End these stops",
    title_for_one="Resume {}?",
    text="Within five seconds, these merchants can create orders, be paid and capture again, unless another stop"
    " still applies to them.",
    label="Reason",
    button="Yes, resume",
)
INVITE = confirmation.Question(
    title="Invite an owner",
    text="We send an invitation to this address. The link works for seven days. An owner can change everything in"
    " the merchant’s portal, and can invite others.",
    label="Owner’s e-mail",
    button="Send the invitation",
    title_for_one="Invite an owner of {}?",
)
SUSPENSION = lists.state_filter({"open": Q(is_suspended=False), "stopped": Q(is_suspended=True)})


# Help texts for the form. They replace the columns' own help texts, which are too technical here.
HELP_TEXTS = {
    "country": "Two letters, such as GB. The country of phone numbers without a country code.",
    "brand_colour": "# and six hexadecimal digits, such as #A61C59.",
    "shop_url": "We link to it for customers whose order has no link back to the shop, such as a mate who has paid.",
    "time_zone": "The time zone of the portal, such as Europe/London.",
    "provider_account": "The provider account of the merchant’s future payments. If empty, the service’s own.",
    "return_hosts": "Hosts to which customers can be sent back, one on each line. If empty, any host.",
    "unpaid_minutes": "How many minutes an order can wait for payment. If empty, the service’s default.",
}


def _recorder() -> Any:
    """Return the module of a higher layer that records operators' changes in the merchant's audit log."""
    return import_module(settings.OPERATORS_RECORDED_BY)


class MerchantForm(ChangesForm, SettingsForm):
    """The settings that an operator may change, with the same checks as in the merchant's portal.

    Rule operator.settings.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            column: Any = Merchant._meta.get_field(name)
            field.label = capfirst(column.verbose_name)
            field.help_text = HELP_TEXTS.get(name, column.help_text)
            field.initial = column.get_default() if column.has_default() else None


def _stops_of_row() -> QuerySet[Switch]:
    """Return a subquery for the active stops of the outer query's merchant."""
    return Switch.objects.filter(merchant=OuterRef("pk"), is_stopped=True)


def _email_error(text: str) -> str:
    """Return an error message if the text is not an e-mail address, otherwise ""."""
    try:
        validate_email(text)
    except ValidationError:
        return "Enter an e-mail address, such as name@example.com."
    return ""


def _stop_in_words(switch: Switch) -> str:
    """Return a sentence about a stop: what it stops, when it began, the operator and the reason."""
    logged = LogEntry.objects.filter(object_id=str(switch.pk)).order_by("-action_time").first()
    scope = "Stopped" if switch.merchant_id else "All merchants have been stopped"
    by = f" by {logged.user}" if logged else ""
    since = columns.time_in_words(switch.changed_at)
    return f"{scope} since {since}{by}: {switch.reason}."


class MerchantAdmin(OperatorAdmin):
    """Admin pages for merchants. A merchant is suspended, never deleted, because its money's history must stay."""

    form = MerchantForm
    actions = ("suspend", "resume", "invite_owner")
    listed_as = "Stopped first, then by name"
    searched_by = "Name or ID"
    search_help_text = "Part of the name or of the ID."
    is_small = True
    list_display = ("name", "id", "country", "created_at")
    list_filter = (SUSPENSION, "country", "opt_in_enabled")
    search_fields = ("name", "id")
    formfield_overrides = {models.URLField: {"assume_scheme": "https"}}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        stopped = _stops_of_row()
        rows: QuerySet[Any] = (
            super()
            .get_queryset(request)
            .annotate(
                is_suspended=Exists(stopped),
                stop_reason=Subquery(stopped.values("reason")[:1]),
                are_all_stopped=Exists(Switch.objects.filter(merchant=None, is_stopped=True)),
            )
        )
        return rows

    def get_ordering(self, request: HttpRequest) -> Any:
        """Return the sort order: suspended merchants first, then by name."""
        return (Exists(_stops_of_row()).desc(), "name", "pk")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields. If the merchant is not saved yet, the state, the id and the time are hidden."""
        own = {"id", "created_at", "brand_version", "logo_version", "logo_width"}
        changed = [field.name for field in self.opts.fields if field.name not in own]
        return ["state", self.column("id"), *changed, self.column("created_at")] if obj else changed

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the read-only fields. Only superusers may change a merchant's account at the provider."""
        is_superuser = getattr(request.user, "is_superuser", False)
        fields = ("state", self.column("id"), self.column("created_at"))
        return fields if is_superuser else (*fields, "provider_account")

    @admin.display(description="state")
    def state(self, merchant: Merchant) -> str:
        """Return "Open", or a sentence about each stop that applies to the merchant."""
        stops = Switch.objects.filter(Q(merchant=merchant) | Q(merchant=None), is_stopped=True)
        return " ".join(map(_stop_in_words, stops.order_by("changed_at"))) or "Open"

    def offers(self, action: str, row: Any) -> bool:
        return action in ("invite_owner", "resume" if row.is_suspended else "suspend")

    def save_model(self, request: HttpRequest, obj: Merchant, form: Any, change: bool) -> None:
        """Save the merchant. If the colour changes, the merchant's style sheet gets a new address."""
        if change and "brand_colour" in form.changed_data:
            obj.brand_version += 1
        super().save_model(request, obj, form, change)
        if change and form.changed_data:
            _recorder().record_settings(request, obj, form.changed_data)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def response_add(
        self, request: HttpRequest, obj: Merchant, post_url_continue: Any = None
    ) -> HttpResponse:
        self.message_user(request, f"{obj} is added. Next: invite its owner.", messages.SUCCESS)
        return HttpResponseRedirect(columns.page_address("payments.merchant", obj.pk))

    def has_invite_permission(self, request: HttpRequest) -> bool:
        """Return whether the operator may invite owners. Only superusers may."""
        return bool(getattr(request.user, "is_superuser", False))

    @admin.action(description="Invite an owner", permissions=["invite"])
    @confirmation.requires_confirmation(INVITE, check=_email_error)
    def invite_owner(self, request: HttpRequest, rows: QuerySet[Merchant], email: str) -> None:
        for merchant in rows:
            refusal = _recorder().invite_owner(request, merchant, email)
            if refusal:
                self.message_user(request, f"{merchant}: {refusal}", messages.ERROR)
                continue
            self.log_change(request, merchant, f"Invited {email} as an owner.")
            self.message_user(request, f"{merchant}: {email} is invited as an owner.", messages.SUCCESS)

    def has_suspend_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("payments.change_switch")

    @admin.action(description="Stop", permissions=["suspend"])
    @confirmation.requires_confirmation(SUSPEND)
    def suspend(self, request: HttpRequest, rows: QuerySet[Merchant], reason: str) -> None:
        for merchant in rows:
            switch = operator_stops.suspend(merchant, reason=reason)
            record_switch(self, request, switch, reason)
            self._show_result(request, merchant, switch, "was stopped already.")

    @admin.action(description="Resume", permissions=["suspend"])
    @confirmation.requires_confirmation(RESUME)
    def resume(self, request: HttpRequest, rows: QuerySet[Merchant], reason: str) -> None:
        for merchant in rows:
            switch = operator_stops.resume(merchant, reason=reason)
            record_switch(self, request, switch, reason)
            self._show_result(request, merchant, switch, "was not stopped.")

    def _show_result(
        self, request: HttpRequest, merchant: Merchant, switch: Switch | None, otherwise: str
    ) -> None:
        if switch is None:
            self.message_user(request, f"{merchant} {otherwise}", messages.WARNING)
            return
        self.message_user(request, f"{merchant} is {'stopped' if switch.is_stopped else 'open again'}.")


def record_switch(
    model_admin: OperatorAdmin, request: HttpRequest, switch: Switch | None, reason: str
) -> None:
    """Record a changed switch in the admin's log and in the merchant's audit log. Ignore a switch of None."""
    if switch is None:
        return
    log_text = f"{'Stopped' if switch.is_stopped else 'Resumed'}: {reason}"
    model_admin.log_change(request, switch, log_text)
    if switch.merchant is not None:
        model_admin.log_change(request, switch.merchant, log_text)
        _recorder().record_stop(request, switch.merchant, is_stopped=switch.is_stopped)


class SwitchAdmin(ReadOnlyAdmin):
    """Admin pages for stops. To stop a single merchant, operators use the merchant's page.

    Only `add_view` stops all merchants.
    """

    is_small = True
    adds_by = "Stop all merchants"
    explanations: Mapping[str, str] = {"merchant": ""}
    short_names: Mapping[str, str] = {"lift": "Resume"}
    actions = ("lift",)
    list_display = ("__str__", "merchant", "reason", "changed_at")
    list_filter = (lists.state_filter({"stopped": Q(is_stopped=True), "ended": Q(is_stopped=False)}),)
    search_fields = ("merchant__name", "reason")

    def get_fields(self, request: HttpRequest, obj: Switch | None = None) -> Any:
        """Return the fields, without the merchant for a stop that applies to all merchants."""
        names = [field.name for field in self.opts.fields]
        has_merchant = obj is not None and obj.merchant_id is not None
        return [self.column(name) for name in names if name != "merchant" or has_merchant]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("payments.change_switch")

    has_lift_permission = has_add_permission

    def called(self, row: Switch) -> str:
        return str(row.merchant or "all merchants")

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Show the list. The button that stops all merchants is shown only while they are not stopped."""
        are_stopped = Switch.objects.filter(merchant=None, is_stopped=True).exists()
        return super().changelist_view(request, {"has_add_permission": False} if are_stopped else None)

    def offers(self, action: str, row: Switch) -> bool:
        return row.is_stopped

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Ask whether to stop all merchants. Stop them after the operator has confirmed."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        confirmation = self._stop_all(request, Switch.objects.none())
        return confirmation or HttpResponseRedirect(columns.list_address("payments.switch"))

    @confirmation.requires_confirmation(STOP_ALL)
    def _stop_all(self, request: HttpRequest, rows: QuerySet[Switch], reason: str) -> None:
        switch = operator_stops.suspend(None, reason=reason)
        record_switch(self, request, switch, reason)
        done = "All merchants are stopped." if switch else "All merchants were stopped already."
        self.message_user(request, done, messages.WARNING)

    @admin.action(description="Resume merchants", permissions=["lift"])
    @confirmation.requires_confirmation(LIFT)
    def lift(self, request: HttpRequest, rows: QuerySet[Switch], reason: str) -> None:
        for row in rows:
            switch = operator_stops.resume(row.merchant, reason=reason)
            record_switch(self, request, switch, reason)
            self.message_user(request, f"The stop of {self.called(row)} has ended.")
