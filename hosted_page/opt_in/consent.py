"""Saves opt-ins to a merchant's marketing, and the versions of the box's text (rules opt_in.*).

For each opt-in, the service emits an event.
"""

from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator
from django.db import transaction
from django.db.models import Case, Max, Q, QuerySet, When
from django.utils.translation import get_language, gettext_lazy, override

from checkout.models import Customer, MerchantCustomer
from config.lib import clock, crypto, quota
from hosted_page.models import OptIn, OptInText
from hosted_page.opt_in import event
from hosted_page.payment_target import PaymentTarget
from payments.models import Merchant
from webhooks import lookup, outbox
from webhooks.models import EventType

WORDS = gettext_lazy(
    "{merchant} may send me offers by e\N{NON-BREAKING HYPHEN}mail and text. I can stop any time."
)
MAX_TICKS = 20  # per order or share; without a limit, anyone with the link could cause any number of events
MAX_DIGITS = 9  # maximum number of digits in a version number
MAX_EMAIL = 254
_check_email = EmailValidator()


class InvalidEmail(Exception):
    """The text is not an e-mail address."""


class TooManyTicks(Exception):
    """The order or the share already has the maximum number of opt-ins."""


def wording(merchant: Merchant) -> OptInText:
    """Return the current text of the box, in the payer's language if the merchant has a text in that language.

    A merchant without a text of their own gets the service's default text. There is one version of it for
    each language, and a new one for each change of the merchant's name.
    """
    language = get_language() or settings.LANGUAGE_CODE
    return _newest_wording(merchant, language) or _default_wording(merchant, language)


def _newest_wording(merchant: Merchant, language: str) -> OptInText | None:
    """Return the newest stored text that the box can show, or None if there is no such text.

    The merchant's own texts come before the default text, and texts in this language before others. A default
    text counts only if it is the current one, because an earlier one might contain the merchant's old name.
    """
    return _stored_wordings(merchant.pk, language, our_words(merchant, language)).first()


def our_words(merchant: Merchant, language: str) -> str:
    """Return the current default text in a language, for a merchant without a text of their own."""
    with override(language):
        return WORDS.format(merchant=merchant.name)


def _stored_wordings(merchant_uuid: UUID, language: str, our_text: str) -> QuerySet[OptInText]:
    is_shown = Q(is_ours=False) | Q(language=language, text=our_text)
    texts = OptInText.objects.filter(is_shown, merchant=merchant_uuid)
    language_order = Case(When(language=language, then=0), default=1)
    return texts.order_by("is_ours", language_order, "-version")


def _default_wording(merchant: Merchant, language: str) -> OptInText:
    with transaction.atomic(durable=True):
        # This call locks the merchant. Otherwise, two pages could create the default text at the same time.
        version = _next_version(merchant)
        text = our_words(merchant, language)
        return _newest_wording(merchant, language) or OptInText.objects.create(
            merchant=merchant, version=version, language=language, text=text, is_ours=True
        )


def save_text(merchant: Merchant, *, text: str, language: str) -> OptInText:
    """Save a merchant's own text for a language as a new version. From now on, the box shows it."""
    with transaction.atomic(savepoint=True):
        return OptInText.objects.create(
            merchant=merchant, version=_next_version(merchant), language=language, text=text
        )


def _next_version(merchant: Merchant) -> int:
    """Lock the merchant's row, and return the number for its next version."""
    Merchant.objects.select_for_update(no_key=True).get(pk=merchant.pk)
    last = OptInText.objects.filter(merchant=merchant).aggregate(last=Max("version"))["last"] or 0
    return int(last) + 1


def text_of_version(merchant: Merchant, version: str) -> OptInText:
    """Return the text of the version that a form names. If there is no such version, return the current text."""
    number = int(version) if version.isdecimal() and len(version) <= MAX_DIGITS else 0
    return OptInText.objects.filter(merchant=merchant, version=number).first() or wording(merchant)


def parse_email(text: str) -> str:
    """Return an e-mail address without surrounding spaces. Raises InvalidEmail."""
    email = text.strip()
    try:
        _check_email(email)
    except ValidationError:
        raise InvalidEmail from None
    if len(email) > MAX_EMAIL:
        raise InvalidEmail
    return email


def record_opt_in(
    target: PaymentTarget,
    *,
    person: Customer | None,
    has_proven: bool = True,
    email: str,
    placement: str,
    text: OptInText,
    name: str = "",
) -> UUID | None:
    """Save an opt-in and emit its event. Return the event's id.

    Return None if the merchant has turned opt-in off or the person was erased. `person` is the signed-in
    person, or None. The event contains the person's number only if they entered a code during this visit
    (`has_proven`). `name` is the name that was typed by a person who had no name. Raises TooManyTicks.
    """
    merchant = target.checkout.merchant
    if not merchant.opt_in_enabled:
        return None
    with transaction.atomic(durable=True):
        if person is not None and (person := _lock_person(person)) is None:
            return None
        _check_tick_limit(target)
        _save_name(person, name)
        opt_in = _save_opt_in(target, _merchant_customer(merchant, person, email), email, placement, text)
        data = event.event_data(target, opt_in, person, name, verified=person if has_proven else None)
        order = target.checkout.pk
        return outbox.emit(merchant, EventType.OPTED_IN, data, at=opt_in.opted_in_at, checkout_uuid=order).pk


def erase_events(opt_ins: QuerySet[OptIn]) -> None:
    """Delete the bodies of the events about these opt-ins, and stop sending the events. Used to erase a person."""
    keys = set(opt_ins.values_list("checkout_uuid", "opted_in_at"))
    if keys:
        events = lookup.events_about(*{checkout_uuid for checkout_uuid, _ in keys}).filter(
            type=EventType.OPTED_IN
        )
        rows = events.filter(body_deleted_at=None).values_list("pk", "checkout_uuid", "created_at")
        outbox.erase_bodies(
            {
                pk: checkout_uuid
                for pk, checkout_uuid, at in rows
                if checkout_uuid and (checkout_uuid, at) in keys
            }
        )


def _check_tick_limit(target: PaymentTarget) -> None:
    """Raise TooManyTicks if the limit is reached. A lock makes parallel opt-ins wait, so that each one is counted."""
    quota.lock(f"opt_in:{target.subject}")
    opt_ins = OptIn.objects.filter(checkout_uuid=target.checkout.pk, share_uuid=_share_uuid(target))
    if opt_ins.count() >= MAX_TICKS:
        raise TooManyTicks


def _lock_person(person: Customer) -> Customer | None:
    """Lock the person and read them again, so that no erasure runs at the same time. Return None if they are erased."""
    rows = Customer.objects.select_for_update(no_key=True)
    return rows.filter(pk=person.pk, erased_at=None).first()


def _share_uuid(target: PaymentTarget) -> UUID | None:
    return target.share.pk if target.share else None


def _save_name(person: Customer | None, name: str) -> None:
    """Save the typed name for a person who has no name yet."""
    if person is not None and name and not person.name:
        person.name = name
        person.save(update_fields=["name"])


def _save_opt_in(
    target: PaymentTarget, known_as: MerchantCustomer, email: str, placement: str, text: OptInText
) -> OptIn:
    return OptIn.objects.create(
        text=text,
        person=known_as,
        checkout_uuid=target.checkout.pk,
        share_uuid=_share_uuid(target),
        email=email,
        email_digest=email_digests(email)[0],
        placement=placement,
        opted_in_at=clock.now(),
    )


def _merchant_customer(merchant: Merchant, person: Customer | None, email: str) -> MerchantCustomer:
    """Return the merchant's customer for an opt-in.

    It is the customer of the signed-in person. If no one is signed in, it is the customer of earlier opt-ins
    with this e-mail address. If there is no such customer, it is a new one.
    """
    if person is not None:
        return MerchantCustomer.objects.get_or_create(merchant=merchant, customer=person)[0]
    earlier_opt_ins = OptIn.objects.filter(
        email_digest__in=email_digests(email), person__merchant=merchant, person__customer=None
    ).select_related("person")
    newest_opt_in = earlier_opt_ins.order_by("-opted_in_at").first()
    return newest_opt_in.person if newest_opt_in else MerchantCustomer.objects.create(merchant=merchant)


def email_digests(email: str) -> list[str]:
    """Return the digests with which the opt-ins of an e-mail address are found. New rows store the first digest."""
    return crypto.keyed_digests("e-mail", email.lower())
