"""Customer data that a merchant sends with an order, kept until a day after the order's end.

Rules prefill.kept, create.customer.
"""

from datetime import timedelta

from django.db.models import OuterRef, Q, QuerySet, Subquery

from checkout.models import Checkout, Prefill
from config.lib import batches, clock

AFTER_END = timedelta(days=1)


def save_prefill(checkout: Checkout, customer: dict[str, str]) -> None:
    """Write the customer data of a new checkout (`phone` in E.164, `name`, `locale`), if any was sent.

    Must be called in the transaction that creates the checkout.
    """
    if customer:
        Prefill(checkout=checkout, **customer).save(force_insert=True)


def with_locale(rows: QuerySet[Checkout]) -> QuerySet[Checkout]:
    """Add `prefilled_locale` to each row: the locale that the merchant sent.

    It is "" if only other data was sent, and None if no data was sent.
    """
    of_order = Prefill.objects.filter(checkout=OuterRef("pk"))
    return rows.annotate(prefilled_locale=Subquery(of_order.values("locale")))


def prefill_of(checkout: Checkout) -> Prefill | None:
    """Return the data that was sent with an order read `with_locale`, or None.

    Returns None also for an order that was read without `with_locale`.
    """
    return None if locale(checkout) is None else Prefill.objects.filter(pk=checkout.pk).first()


def locale(checkout: Checkout) -> str | None:
    """Return the locale of an order that was read `with_locale`, or None for any other order."""
    return getattr(checkout, "prefilled_locale", None)


def delete_old() -> None:
    """Delete the data of orders that were paid, cancelled, released or left unpaid more than a day ago."""
    before = clock.now() - AFTER_END
    ended = Q(captured_at__lte=before) | Q(voided_at__lte=before) | Q(expired_at__lte=before)
    of_ended = Checkout.objects.filter(ended).values("pk")
    # An order that ended before that time was also created before it. The condition on the id skips the newer
    # orders, which are nearly all.
    batches.delete(Prefill.objects.filter(pk__lt=clock.first_id(before), checkout__in=of_ended))
