"""The tops of the pages of operations: what they do, their state, and the next step."""

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from checkout.models import Checkout, Refund
from config.lib import clock
from payments.models import Operation
from portal.models import User
from tests.portal import people
from tests.portal.backoffice.record_heads.tops import address_of, page_of, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.page")]


class TestOperations:
    @pytest.mark.parametrize(
        ("state", "told", "step"),
        [
            ("planned", "It has not been sent yet.", "the service sends it"),
            ("in_flight", "the provider has not answered yet", "Look it up"),
            ("unknown", "The provider gave no clear answer", "Look it up"),
            ("pending", "has not confirmed it yet", "the service asks the provider again"),
            ("declined", "The bank declined it", "the payer can use another card"),
            ("succeeded", "It succeeded at", "No action is needed."),
        ],
    )
    def test_explain_their_state_and_the_next_step(
        self, operator: Client, captured: Checkout, state: str, told: str, step: str
    ) -> None:
        row = Operation.objects.get(kind="authorize")
        ended_at = clock.now() if state in Operation.ENDED else None
        Operation.objects.filter(pk=row.pk).update(state=state, ended_at=ended_at)
        text = text_of(operator, row)
        assert "This asks the bank to hold £90.00 on Visa 4242 for Acme Tickets." in text
        assert told in text and step in text
        assert f'href="{address_of(captured)}"' in page_of(operator, row)

    def test_of_a_failed_refund_lead_to_the_refund(self, operator: Client, failed: Refund) -> None:
        part = Operation.objects.get(kind="refund")
        told = text_of(operator, part)
        assert "This pays £90.00 back to Visa 4242" in told and "The card’s account is closed." in told
        assert "The whole refund failed." in told and f'href="{address_of(failed)}"' in page_of(
            operator, part
        )

    def test_link_only_to_pages_that_the_operator_may_see(self, client: Client, captured: Checkout) -> None:
        person = User.objects.create_user("looker@example.com", is_staff=True)
        person.user_permissions.set(Permission.objects.filter(codename="view_operation"))
        people.operate(client, person)
        row = Operation.objects.get(kind="capture")
        assert f'href="{address_of(captured)}"' not in page_of(client, row)
