"""What a merchant's backend says of its customer, from the order's creation until a day after its end.

Rules prefill.kept, create.customer.
"""

from datetime import timedelta
from uuid import UUID

from django.db.models import OuterRef, Q, QuerySet, Subquery

from checkout.models import Checkout, Prefill
from config.lib import batches, clock
from config.lib.prepared import Prepared

AFTER_END = timedelta(days=1)


def keep(checkout: Checkout, customer: dict[str, str]) -> None:
    """Write what was sent (`phone` in E.164, `name`, `locale`), if anything was, in the transaction of the creation."""
    if customer:
        Prefill(checkout=checkout, **customer).save(force_insert=True)


def with_locale(rows: QuerySet[Checkout]) -> QuerySet[Checkout]:
    """Add `prefilled_locale` to each row: the locale that was sent, "" if only something else was, None if nothing."""
    of_order = Prefill.objects.filter(checkout=OuterRef("pk"))
    return rows.annotate(prefilled_locale=Subquery(of_order.values("locale")))


def of(checkout: Checkout) -> Prefill | None:
    """Return what was sent with an order that was read `with_locale`, None if nothing was; of any other order None."""
    return None if locale(checkout) is None else _OF.first(checkout.pk)


_OF = Prepared(lambda pk: Prefill.objects.filter(pk=pk), UUID)


def locale(checkout: Checkout) -> str | None:
    """Return the locale of an order that was read `with_locale`, None of any other."""
    return getattr(checkout, "prefilled_locale", None)


def delete_old() -> None:
    """Delete what was sent with orders that were paid, cancelled, released or left unpaid more than a day ago."""
    before = clock.now() - AFTER_END
    ended = Q(captured_at__lte=before) | Q(voided_at__lte=before) | Q(expired_at__lte=before)
    of_ended = Checkout.objects.filter(ended).values("pk")
    # An order that ended then was made before: the newer ones, which are nearly all, are not looked at.
    batches.delete(Prefill.objects.filter(pk__lt=clock.first_id(before), checkout__in=of_ended))
