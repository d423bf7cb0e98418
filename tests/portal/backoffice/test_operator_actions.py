"""On the operations page, operators look up an operation in doubt, and confirm an action."""

from datetime import timedelta
from uuid import uuid4

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.contrib.sessions.models import Session
from django.test import Client

from checkout import operation_recovery
from checkout.models import Checkout
from config.lib import clock
from payments.discrepancies import kinds, reporting
from payments.models import Discrepancy, Operation
from portal.models import User
from tests.outages import break_down
from tests.portal import people
from tests.refusals import nothing_moves

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.page")]
PAGE = "/admin/operations/"
PART = {"HX-Request": "true"}


@pytest.fixture
def discrepancy(captured: Checkout) -> Discrepancy:
    reporting.report_operation(Operation.objects.get(kind="capture"), kinds.ANOTHER_AMOUNT)
    return Discrepancy.objects.get()


class TestLookingUpNow:
    def test_looks_the_operation_up_reports_it_and_records_it(
        self, operator: Client, unclear: Operation
    ) -> None:
        address = f"{PAGE}{unclear.pk}/look-up"
        assert f'action="{address}"' in operator.get(PAGE).content.decode()
        answer = operator.post(address)
        assert (answer.status_code, answer["Location"]) == (303, PAGE)
        assert Checkout.objects.get().status == "captured"
        assert "Looked up at the provider." in operator.get(PAGE).content.decode()
        assert LogEntry.objects.get().change_message == "Looked up at the provider: done."

    def test_of_an_operation_that_never_arrived_says_that_it_is_sent_again(
        self, operator: Client, unclear: Operation
    ) -> None:
        Operation.objects.filter(pk=unclear.pk).update(attempts=operation_recovery.ATTEMPTS_PER_KEY)
        operator.post(f"{PAGE}{unclear.pk}/look-up")
        unclear.refresh_from_db()
        assert (unclear.state, unclear.reason) == ("failed", "new_key")
        page = operator.get(PAGE).content.decode()
        assert "it did not arrive. The service sends it again." in page and "failed" not in page
        assert 'class="notice tone-move"' in page and 'class="notice tone-done"' not in page
        told = LogEntry.objects.get().change_message
        assert told == "Looked up at the provider: did not arrive. The service sends it again."

    def test_without_an_outcome_is_not_shown_as_a_success(self, operator: Client, unclear: Operation) -> None:
        break_down("look_up", "down", times=9)
        break_down("capture", "down", times=9)
        operator.post(f"{PAGE}{unclear.pk}/look-up")
        page = operator.get(PAGE).content.decode()
        assert f"The outcome of Capture, {Checkout.objects.get().merchant_order_id} is still unknown." in page
        assert 'class="notice tone-move"' in page and 'class="notice tone-done"' not in page

    def test_of_an_ended_operation_does_nothing(self, operator: Client, captured: Checkout) -> None:
        capture = Operation.objects.get(kind="capture")
        with nothing_moves():
            assert operator.post(f"{PAGE}{capture.pk}/look-up").status_code == 303
            assert "Not done." in operator.get(PAGE).content.decode()
            assert operator.post(f"{PAGE}{uuid4()}/look-up").status_code == 404

    def test_requires_the_permission_and_a_post(self, client: Client, unclear: Operation) -> None:
        person = User.objects.create_user("looker@example.com", is_staff=True)
        person.user_permissions.set(Permission.objects.filter(codename="view_operation"))
        people.operate(client, person)
        with nothing_moves():
            opened = client.get(f"{PAGE}{unclear.pk}/look-up")
            assert opened.status_code == 405
            assert (
                "It runs an action that begins with a button on the page Operations."
                in opened.content.decode()
            )
            assert client.post(f"{PAGE}{unclear.pk}/look-up").status_code == 403
        assert "Look it up now" not in client.get(PAGE).content.decode()


class TestTheQuestion:
    def test_is_shown_in_place_or_on_its_own_page(self, operator: Client, discrepancy: Discrepancy) -> None:
        address = f"{PAGE}ask/close/{discrepancy.pk}"
        page = operator.get(PAGE).content.decode()
        assert f'href="{address}"' in page and f'hx-get="{address}"' in page
        with nothing_moves():
            part, whole = (operator.get(address, headers=more).content.decode() for more in (PART, {}))
        assert "£90.00" in whole
        for shown in (part, whole):
            assert "Close this discrepancy?" in shown and 'name="words"' in shown
        assert "<html" in whole and "<html" not in part

    def test_returns_to_the_page_where_it_was_asked(self, operator: Client, discrepancy: Discrepancy) -> None:
        form = {
            "action": "close",
            "_selected_action": str(discrepancy.pk),
            "from_operations": "1",
            "confirmed": "1",
        }
        without = operator.post("/admin/payments/discrepancy/", form | {"words": ""}).content.decode()
        assert (
            "field-error" in without and 'name="from_operations"' in without and f'href="{PAGE}"' in without
        )
        answer = operator.post("/admin/payments/discrepancy/", form | {"words": "It was ours"})
        assert (answer.status_code, answer["Location"]) == (303, PAGE)
        assert Discrepancy.objects.get().note.endswith(": It was ours")

    @pytest.mark.parametrize("action", ["give_up", "delete_selected", "nothing"])
    def test_is_a_404_for_an_action_that_is_not_offered(
        self, operator: Client, discrepancy: Discrepancy, action: str
    ) -> None:
        capture = Operation.objects.get(kind="capture")
        for key in (discrepancy.pk, capture.pk):
            assert operator.get(f"{PAGE}ask/{action}/{key}").status_code == 404

    def test_requires_the_permission(self, client: Client, discrepancy: Discrepancy) -> None:
        person = User.objects.create_user("looker@example.com", is_staff=True)
        person.user_permissions.set(
            Permission.objects.filter(codename__in=["view_operation", "view_discrepancy"])
        )
        people.operate(client, person)
        assert client.get(f"{PAGE}ask/close/{discrepancy.pk}").status_code == 404


class TestAPageThatUpdatesItself:
    LIVE = PART | {"X-Live": "1"}

    def test_does_not_extend_the_session(self, operator: Client) -> None:
        operator.get(PAGE)
        soon = clock.now() + timedelta(minutes=2)
        Session.objects.update(expire_date=soon)
        key, person = operator.session.session_key, User.objects.get()
        UserSession.objects.update_or_create(session_key=key, defaults={"user": person, "ip": "10.0.0.1"})
        UserSession.objects.update(last_seen_at=clock.now() - timedelta(minutes=5))
        operator.get(PAGE, headers=self.LIVE)
        assert Session.objects.get().expire_date == soon
        operator.get(PAGE)
        assert Session.objects.get().expire_date > soon

    def test_redirects_completely_to_the_login_when_the_session_has_ended(self, operator: Client) -> None:
        Session.objects.all().delete()
        answer = operator.get(PAGE, headers=self.LIVE | {"HX-Current-URL": f"http://testserver{PAGE}"})
        assert answer["HX-Redirect"] == "/accounts/login/?next=%2Fadmin%2Foperations%2F"
        assert b"login" not in answer.content


def test_the_page_updates_its_own_part(operator: Client, discrepancy: Discrepancy) -> None:
    part = operator.get(PAGE, headers=PART).content.decode()
    assert "The provider reports a different amount" in part and "<html" not in part
    for words in (part, operator.get(PAGE).content.decode()):
        assert '<span class="by-script">. This page updates automatically</span>' in words, (
            "not said without script"
        )
