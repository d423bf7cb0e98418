"""The tops of operation pages show what the operation does, its state, and the next step."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from checkout.models import Checkout, Refund
from config.lib import clock
from payments.discrepancies import kinds, reporting
from payments.models import Operation
from portal.models import User
from tests import factories
from tests.portal import people
from tests.portal.backoffice.record_heads.tops import address_of, main_button, page_of, text_of

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
            ("succeeded", "It succeeded on", "No action is needed."),
        ],
    )
    def test_explain_their_state_and_the_next_step(
        self, operator: Client, captured: Checkout, state: str, told: str, step: str
    ) -> None:
        row = Operation.objects.get(kind="authorize")
        ended_at = clock.now() if state in Operation.ENDED else None
        Operation.objects.filter(pk=row.pk).update(state=state, ended_at=ended_at)
        text = text_of(operator, row)
        verb = "asked" if ended_at else "asks"
        assert f"The service {verb} the bank to hold £90.00 on Visa 4242 for Acme Tickets." in text
        assert told in text and step in text
        assert f'href="{address_of(captured)}"' in page_of(operator, row)

    def test_in_doubt_are_looked_up_with_the_filled_button(
        self, operator: Client, captured: Checkout
    ) -> None:
        row = Operation.objects.get(kind="capture")
        Operation.objects.filter(pk=row.pk).update(state="unknown", ended_at=None)
        assert main_button(operator, row) == "Look it up"
        assert "page of operations" not in text_of(operator, row)
        reporting.report_operation(row, kinds.IN_DOUBT_FOR_A_DAY)
        assert main_button(operator, row) == "Look it up"
        assert "Look it up first." in text_of(operator, row)
        assert ">Give up the operation</button>" in page_of(operator, row)
        Operation.objects.filter(pk=row.pk).update(state="succeeded", ended_at=clock.now())
        answer = operator.post(f"/admin/operations/{row.pk}/look-up", {"from_page": "1"})
        assert answer.status_code == 303 and answer["Location"] == address_of(row)

    def test_that_were_replaced_are_not_shown_as_failed(self, operator: Client, unclear: Operation) -> None:
        newest = factories.replace_key(unclear)
        page, text = page_of(operator, unclear), text_of(operator, unclear)
        assert "It did not arrive at the provider, so another request replaced it on" in text
        assert "Its state: being sent." in text and f'href="{address_of(newest)}"' in page
        listed = operator.get("/admin/payments/operation/").content.decode()
        for words in (text, listed):
            assert "Replaced" in words and "It failed" not in words
        order = operator.get(address_of(Checkout.objects.get())).content.decode()
        assert "Replaced</span>" in order and "Failed</span>" not in order

    def test_under_a_new_key_show_their_first_request(self, operator: Client, unclear: Operation) -> None:
        start = clock.now() - timedelta(minutes=5)
        Operation.objects.filter(pk=unclear.pk).update(created_at=start, attempts=4)
        unclear.refresh_from_db()
        assert "It was first requested" not in text_of(operator, unclear)
        newest = factories.replace_key(unclear)
        told, whole = text_of(operator, newest), operator.get(address_of(newest)).content.decode()
        assert "4 under all keys, 0 under the current one" in whole and "Attempts</label>" not in whole
        when = f"on {start.day} {start:%b} at {start:%H:%M:%S}"
        assert f"It was first requested {when}. The service has made 4 calls since then." in told

    @pytest.mark.rule("money.discrepancy")
    def test_under_a_new_key_keep_the_discrepancy_and_its_remedies(
        self, operator: Client, unclear: Operation
    ) -> None:
        reporting.report_operation(unclear, kinds.IN_DOUBT_FOR_A_DAY)
        newest = factories.replace_key(unclear)
        assert ">Give up the operation</button>" in page_of(operator, newest)
        board = operator.get("/admin/operations/").content.decode()
        assert f"/ask/give_up/{newest.pk}" in board

    def test_of_a_failed_refund_lead_to_the_refund(self, operator: Client, failed: Refund) -> None:
        part = Operation.objects.get(kind="refund")
        told = text_of(operator, part)
        assert "This was to pay £90.00 back to Visa 4242" in told and "The card’s account is closed." in told
        assert "The whole refund failed." in told and f'href="{address_of(failed)}"' in page_of(
            operator, part
        )

    def test_of_a_whole_failed_refund_have_no_button_that_the_service_refuses(
        self, operator: Client, failed: Refund
    ) -> None:
        Checkout.objects.update(status="captured")
        part = Operation.objects.get(kind="refund")
        page, listed = page_of(operator, part), operator.get("/admin/payments/operation/").content.decode()
        for words in ("Send again", "Settled outside"):
            assert f">{words}</button>" not in page and words not in listed
        # The refund to one card failed, and the refund to a second card succeeded.
        Checkout.objects.update(status="refunding")
        Refund.objects.update(status="pending", failure_reason=None)
        page, listed = page_of(operator, part), operator.get("/admin/payments/operation/").content.decode()
        for words in ("Send again", "Settled outside"):
            assert f">{words}</button>" in page and words.lower() in listed.lower()

    def test_link_only_to_pages_that_the_operator_may_see(self, client: Client, captured: Checkout) -> None:
        person = User.objects.create_user("looker@example.com", is_staff=True)
        person.user_permissions.set(Permission.objects.filter(codename="view_operation"))
        people.operate(client, person)
        row = Operation.objects.get(kind="capture")
        assert f'href="{address_of(captured)}"' not in page_of(client, row)
