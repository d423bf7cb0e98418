"""Sign-ups at the same moment: together they do not exceed the limit of an order."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from hosted_page.models import OptIn
from hosted_page.opt_in import consent
from hosted_page.payment_target import PaymentTarget
from tests import factories

AT_ONCE = 8


@pytest.mark.django_db(transaction=True)
@pytest.mark.rule("opt_in.link")
def test_sign_ups_at_the_same_moment_stay_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    merchant = factories.MerchantFactory.create(opt_in_enabled=True)
    target, together = PaymentTarget(factories.checkout(merchant)), Barrier(AT_ONCE)
    text = consent.wording(merchant)
    monkeypatch.setattr(consent, "MAX_TICKS", 1)

    def sign_up(number: int) -> bool:
        connection.ensure_connection()
        together.wait()
        try:
            email = f"lea{number}@example.com"
            consent.record_opt_in(target, person=None, email=email, placement="email_link", text=text)
        except consent.TooManyTicks:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert sum(pool.map(sign_up, range(AT_ONCE))) == OptIn.objects.count() == 1
