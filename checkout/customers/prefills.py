"""Saves and reads the customer data that a merchant sends with an order, and deletes it a day after the order's end.

Rules prefill.kept, create.customer.
"""

from datetime import timedelta

from django.db.models import OuterRef, Q, QuerySet, Subquery

from checkout.models import Checkout, Prefill
from config.lib import batches, clock

KEPT_AFTER_END = timedelta(days=1)


def save_prefill(checkout: Checkout, customer: dict[str, str]) -> None:
    """Save the customer data that was sent with a new checkout.

    `customer` has the keys `phone` (in E.164), `name` and `locale_of`.

    Must be called in the transaction that creates the checkout.
    """
    if customer:
        Prefill(checkout=checkout, **customer).save(force_insert=True)


def with_locale(rows: QuerySet[Checkout]) -> QuerySet[Checkout]:
    """Add `prefilled_locale` to each row: the locale that the merchant sent.

    `prefilled_locale` is "" if the merchant sent only other customer data, and None if the merchant sent no customer
    data.
    """
    of_order = Prefill.objects.filter(checkout=OuterRef("pk"))
    return rows.annotate(prefilled_locale=Subquery(of_order.values("locale")))


def prefill_of(checkout: Checkout) -> Prefill | None:
    """Return the customer data that was sent with an order, or None.

    The order must come from a query with `with_locale`. Otherwise, the function returns None.
    """
    return None if locale_of(checkout) is None else Prefill.objects.filter(pk=checkout.pk).first()


def locale_of(checkout: Checkout) -> str | None:
    """Return the locale that was sent with an order, or None.

    The order must come from a query with `with_locale`. Otherwise, the function returns None.
    """
    return getattr(checkout, "prefilled_locale", None)


def delete_old() -> None:
    """Delete the data of orders that were captured, voided or expired more than a day ago."""
    ended_before = clock.now() - KEPT_AFTER_END
    ended = (
        Q(captured_at__lte=ended_before) | Q(voided_at__lte=ended_before) | Q(expired_at__lte=ended_before)
    )
    of_ended = Checkout.objects.filter(ended).values("pk")
    # An order that ended before `ended_before` was also created before that time. The condition on the id
    # therefore excludes all newer orders, which are the majority.
    batches.delete(Prefill.objects.filter(pk__lt=clock.first_id(ended_before), checkout__in=of_ended))
