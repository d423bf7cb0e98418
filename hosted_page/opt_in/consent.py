"""The opt-in to a merchant's marketing: the box's words, in versions, and ticks, each an event (rules opt_in.*)."""

from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator
from django.db import transaction
from django.db.models import Case, Max, Q, QuerySet, When
from django.utils.translation import get_language, gettext_lazy, override

from checkout.models import Customer, MerchantCustomer
from config.lib import clock, crypto
from config.lib.prepared import Prepared
from hosted_page.models import OptIn, OptInText
from hosted_page.payment_target import PaymentTarget
from payments.models import Merchant
from webhooks import lookup, outbox
from webhooks.models import EventType

WORDS = gettext_lazy(
    "{merchant} may send me offers by e\N{NON-BREAKING HYPHEN}mail and text. I can stop any time."
)
MAX_TICKS = 20  # of one order or share: anybody who holds its link could cause events for ever
MAX_DIGITS = 9  # of a version
MAX_EMAIL = 254
_check_email = EmailValidator()


class InvalidEmail(Exception):
    """The text is not an address that a mail can be sent to."""


class TooManyTicks(Exception):
    """The order, or the share, has had as many ticks as it may."""


def wording(merchant: Merchant) -> OptInText:
    """Return the words that are shown now, in the payer's language if there are any.

    A merchant who has written none has ours, with a version for each language, and for each name they have had.
    """
    language = get_language() or settings.LANGUAGE_CODE
    return _newest(merchant, language) or _ours(merchant, language)


def _newest(merchant: Merchant, language: str) -> OptInText | None:
    """Return the newest words: the merchant's before ours, those in the language before others of theirs.

    Ours count if they are what we say today: earlier ones may name a company that is called otherwise now.
    """
    return _WORDING.first(merchant.pk, language, our_words(merchant, language))


def our_words(merchant: Merchant, language: str) -> str:
    """Return what we say today, in a language, for a merchant who has written no words of their own."""
    with override(language):
        return WORDS.format(merchant=merchant.name)


def _wordings(merchant_uuid: UUID, language: str, our_text: str) -> QuerySet[OptInText]:
    is_known = Q(is_ours=False) | Q(language=language, text=our_text)
    known = OptInText.objects.filter(is_known, merchant=merchant_uuid)
    is_other = Case(When(language=language, then=0), default=1)
    return known.order_by("is_ours", is_other, "-version")[:1]


_WORDING = Prepared(_wordings, UUID, str, str)


def _ours(merchant: Merchant, language: str) -> OptInText:
    with transaction.atomic():
        version = _next_version(merchant)  # under the lock: two pages may find none at once
        text = our_words(merchant, language)
        return _newest(merchant, language) or OptInText.objects.create(
            merchant=merchant, version=version, language=language, text=text, is_ours=True
        )


def write(merchant: Merchant, *, text: str, language: str) -> OptInText:
    """Write a merchant's own words for a language: a new version, shown from now on."""
    with transaction.atomic():
        return OptInText.objects.create(
            merchant=merchant, version=_next_version(merchant), language=language, text=text
        )


def _next_version(merchant: Merchant) -> int:
    """Lock the merchant's row; return the version after the last."""
    Merchant.objects.select_for_update(no_key=True).get(pk=merchant.pk)
    last = OptInText.objects.filter(merchant=merchant).aggregate(last=Max("version"))["last"] or 0
    return int(last) + 1


def shown(merchant: Merchant, version: str) -> OptInText:
    """Return the words that a page has shown, by the version that it sends back, else those that are shown now."""
    number = int(version) if version.isdecimal() and len(version) <= MAX_DIGITS else 0
    return OptInText.objects.filter(merchant=merchant, version=number).first() or wording(merchant)


def parse_email(text: str) -> str:
    """Return an e-mail address without the spaces around it. Raises InvalidEmail."""
    email = text.strip()
    try:
        _check_email(email)
    except ValidationError:
        raise InvalidEmail from None
    if len(email) > MAX_EMAIL:
        raise InvalidEmail
    return email


def tick(
    target: PaymentTarget,
    *,
    person: Customer | None,
    has_proven: bool = True,
    email: str,
    placement: str,
    text: OptInText,
    name: str = "",
) -> UUID | None:
    """Save a tick and emit its event; return the event's id, None if the merchant has opt-in off or they were erased.

    `person` is who is signed in: the event has their number if a code of this visit has proven it, and nobody else's.
    `name` is what a person without a known name has typed. Raises TooManyTicks.
    """
    merchant = target.checkout.merchant
    if not merchant.opt_in_enabled:
        return None
    with transaction.atomic(durable=True):
        if person is not None and (person := _locked(person)) is None:
            return None
        _check_room(target)
        _keep_name(person, name)
        saved = _saved(target, _known_as(merchant, person, email), email, placement, text)
        told = _payload(target, saved, person, name, proven=person if has_proven else None)
        order = target.checkout.pk
        return outbox.emit(merchant, EventType.OPTED_IN, told, at=saved.opted_in_at, checkout_uuid=order).pk


def erase_events(ticks: QuerySet[OptIn]) -> None:
    """Delete what the events of these ticks say of their person, who is erased, and send them no more."""
    ticked = set(ticks.values_list("checkout_uuid", "opted_in_at"))
    if ticked:
        events = lookup.events_about(*{order for order, _ in ticked}).filter(type=EventType.OPTED_IN)
        told = events.filter(body_deleted_at=None).values_list("pk", "checkout_uuid", "created_at")
        outbox.erase({pk: order for pk, order, at in told if order and (order, at) in ticked})


def _check_room(target: PaymentTarget) -> None:
    """Raise TooManyTicks if so many are saved for the order or share that no more are taken."""
    ticks = OptIn.objects.filter(checkout_uuid=target.checkout.pk, share_uuid=_share_uuid(target))
    if ticks.count() >= MAX_TICKS:
        raise TooManyTicks


def _locked(person: Customer) -> Customer | None:
    """Return the person anew, beside whom no erasure goes on any more; None if they are erased."""
    rows = Customer.objects.select_for_update(no_key=True)
    return rows.filter(pk=person.pk, erased_at=None).first()


def _share_uuid(target: PaymentTarget) -> UUID | None:
    return target.share.pk if target.share else None


def _keep_name(person: Customer | None, name: str) -> None:
    """Save the name that somebody without a known one has typed."""
    if person is not None and name and not person.name:
        person.name = name
        person.save(update_fields=["name"])


def _saved(
    target: PaymentTarget, known_as: MerchantCustomer, email: str, placement: str, text: OptInText
) -> OptIn:
    return OptIn.objects.create(
        text=text,
        person=known_as,
        checkout_uuid=target.checkout.pk,
        share_uuid=_share_uuid(target),
        email=email,
        email_digest=digests(email)[0],
        placement=placement,
        opted_in_at=clock.now(),
    )


def _payload(
    target: PaymentTarget, saved: OptIn, person: Customer | None, name: str, *, proven: Customer | None
) -> dict[str, object]:
    """Return what the event tells the merchant of a tick, and the number of a `proven` person."""
    return {
        "customer_id": str(saved.person_id),
        "subject": "friend" if target.share else "lead",
        "order": {
            "merchant_order_id": target.checkout.merchant_order_id,
            "checkout_uuid": str(target.checkout.pk),
            "payment_request_uuid": str(target.share.pk) if target.share else None,
        },
        "customer": {
            "name": (person.name if person else name) or None,
            "email": saved.email,
            "phone": proven.phone if proven else None,
        },
        "opt_in": _agreed(saved, is_proven=proven is not None),
    }


def _agreed(saved: OptIn, *, is_proven: bool) -> dict[str, object]:
    return {
        "email_marketing": True,
        "sms_marketing": True if is_proven else None,
        "opted_in_at": clock.iso(saved.opted_in_at),
        "placement": saved.placement,
        "text_version": saved.text.version,
    }


def _known_as(merchant: Merchant, person: Customer | None, email: str) -> MerchantCustomer:
    """Return the merchant's customer: the signed-in person's, else that of earlier ticks by this e-mail, else new."""
    if person is not None:
        return MerchantCustomer.objects.get_or_create(merchant=merchant, customer=person)[0]
    earlier = OptIn.objects.filter(
        email_digest__in=digests(email), person__merchant=merchant, person__customer=None
    ).select_related("person")
    last = earlier.order_by("-opted_in_at").first()
    return last.person if last else MerchantCustomer.objects.create(merchant=merchant)


def digests(email: str) -> list[str]:
    """Return the digests by which the ticks of an address are found, the one to write first."""
    return crypto.keyed_digests("e-mail", email.lower())
