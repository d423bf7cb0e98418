"""While a discrepancy is open, it is not reported again. After a person has closed it, it can be reported again."""

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from config.lib import clock
from payments.discrepancies import kinds, reporting
from payments.models import Discrepancy, Merchant

pytestmark = pytest.mark.django_db
LIST = "/admin/payments/discrepancy/"


@pytest.mark.rule("money.discrepancy")
def test_a_discrepancy_closed_with_a_note_is_reported_again_if_it_recurs(operator: Client) -> None:
    for _ in range(2):
        reporting.report(kinds.FORGED_NOTIFICATION, None)
    found = Discrepancy.objects.get()
    operator.post(f"{LIST}{found.pk}/change/", {"note": "A scanner.", "kind": "mine"})
    chosen = {"action": "close", "_selected_action": [str(found.pk)]}
    operator.post(LIST, chosen | {"confirmed": "1", "words": "It went away."})
    found.refresh_from_db()
    assert found.note.endswith(": It went away.") and "A scanner." not in found.note
    assert found.kind == "forged_notification" and found.closed_at is not None
    assert LogEntry.objects.filter(object_id=str(found.pk), change_message="Closed: It went away.").exists()
    reporting.report(kinds.FORGED_NOTIFICATION, None)
    assert Discrepancy.objects.filter(closed_at=None).count() == 1


@pytest.mark.rule("money.discrepancy")
@pytest.mark.parametrize(
    ("noted", "kept"), [("", "It came."), ("Asked the bank.", "Asked the bank.\nIt came.")]
)
def test_a_discrepancy_closed_automatically_keeps_the_operators_note(
    noted: str, kept: str, acme: Merchant
) -> None:
    reporting.report(kinds.REFUND_RETURNED, acme.pk)
    Discrepancy.objects.update(note=noted)
    reporting.close_resolved(kinds.REFUND_RETURNED, acme.pk, note="It came.", now=clock.now())
    found = Discrepancy.objects.get()
    assert found.note == kept and found.closed_at is not None
