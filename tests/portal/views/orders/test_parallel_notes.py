"""Notes that are written at the same moment: together they do not exceed the limit of an order."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection
from django.test import Client

from portal.models import CheckoutNote, Role
from portal.views.orders import notes
from tests import factories
from tests.portal import stage

AT_ONCE = 4


@pytest.mark.django_db(transaction=True)
@pytest.mark.rule("portal.notes")
def test_notes_at_the_same_moment_stay_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "MAX_NOTES", 1)
    merchant = factories.MerchantFactory.create()
    order, member = factories.checkout(merchant), stage.person(merchant, Role.SUPPORT)
    browsers, together = [stage.browser(member) for _ in range(AT_ONCE)], Barrier(AT_ONCE)

    def write(browser: Client) -> None:
        browser.get(f"/portal/checkouts/{order.pk}")
        together.wait()
        try:
            browser.post(f"/portal/checkouts/{order.pk}/notes", {"text": "They called."})
        finally:
            connection.close()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(write, browsers))
    assert CheckoutNote.objects.count() == 1
