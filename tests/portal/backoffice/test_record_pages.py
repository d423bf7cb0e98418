"""Admin pages of single records, and the messages for addresses that have no record or no list."""

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.test import Client
from uuid_utils.compat import uuid7

from checkout.models import Checkout
from config.lib import clock
from payments.models import Merchant
from portal.models import ApiClient, AuditEntry, Trial, User
from tests.conftest import Api
from tests.portal import people

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.page")]


def opened(operator: Client, address: str) -> str:
    answer = operator.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


class TestFilter:
    @pytest.mark.parametrize(
        ("address", "value", "words"),
        [
            ("/admin/checkout/checkout/", "merchant__exact=nonsense", "Merchant has no value “nonsense”"),
            ("/admin/checkout/checkout/", "trouble=lost", "Needs attention has no value “lost”"),
            ("/admin/checkout/checkout/", "status__exact=lost", "State has no value “lost”"),
            ("/admin/payments/discrepancy/", "state=lost", "State has no value “lost”"),
            ("/admin/payments/operation/", "payment__exact=lost", "Payment has no value “lost”"),
            ("/admin/portal/user/", "is_staff__exact=lost", "Operator has no value “lost”"),
        ],
    )
    def test_names_a_value_that_its_filter_does_not_have(
        self, operator: Client, address: str, value: str, words: str
    ) -> None:
        answer = operator.get(f"{address}?{value}", follow=True)
        page = answer.content.decode()
        assert answer.status_code == 400 and "<h1>No such value</h1>" in page
        assert f"The filter {words}." in page and f'href="{address}"' in page


class TestRecordPage:
    def test_of_a_record_that_does_not_exist_says_so(self, operator: Client) -> None:
        for view in ("change", "history"):
            answer = operator.get(f"/admin/checkout/checkout/{uuid7()}/{view}/")
            page = answer.content.decode()
            assert answer.status_code == 404 and "<h1>No page at this address</h1>" in page

    def test_links_to_what_operators_did(self, operator: Client, captured: Checkout) -> None:
        address = f"/admin/checkout/checkout/{captured.pk}/"
        page = opened(operator, f"{address}history/")
        assert (
            "<h1>Operators’ actions on this record</h1>" in page
            and "No operator has changed this record" in page
        )
        assert f'href="{address}change/"' in page and "change history" not in page
        LogEntry.objects.create(
            user=User.objects.get(is_superuser=True),
            action_flag=CHANGE,
            content_type=ContentType.objects.get_for_model(Checkout),
            object_id=str(captured.pk),
            change_message="Cancelled: The customer called.",
        )
        assert "Cancelled: The customer called.</td>" in opened(operator, f"{address}history/")

    def test_of_a_bill_lists_its_items(self, operator: Client, captured: Checkout) -> None:
        page = opened(operator, f"/admin/checkout/bill/{captured.pk}/change/")
        item = captured.bill[0]
        assert f"<p>{item.quantity} × £" in page and item.name in page and "[[" not in page

    def test_of_an_audit_entry_says_who_did_what(self, operator: Client, acme: Merchant) -> None:
        person = people.join(acme)
        entry = AuditEntry.objects.create(
            merchant=acme, user=person, action="cancelled", facts={"order": "A-1"}, address="192.0.2.7"
        )
        page = opened(operator, f"/admin/portal/auditentry/{entry.pk}/change/")
        assert f"{person.email} did this for {acme}" in page and ", from 192.0.2.7. Entries" in page
        assert "cancelled</" not in page and "{&quot;" not in page
        assert '<th scope="col">State</th>' not in opened(operator, "/admin/portal/auditentry/")

    def test_of_a_case_of_the_checklist_has_its_title_and_its_evidence(
        self, operator: Client, acme: Merchant
    ) -> None:
        line = {
            "at": "2026-11-30T12:38:54.221Z",
            "href": "/",
            "tone": "",
            "words": "Order A-1 paid, and held",
        }
        now = clock.now()
        ended = {"created_at": now, "ended_at": now, "has_passed": True}
        person = people.join(acme)
        trial = Trial.objects.create(merchant=acme, user=person, case="retry", evidence=[line], **ended)
        page = opened(operator, f"/admin/portal/trial/{trial.pk}/change/")
        assert f"<h1>Case “Recover from a failed delivery” of {acme}</h1>" in page
        assert "<p>12:38:54 Order A-1 paid, and held</p>" in page and "&quot;" not in page

    def test_of_a_key_has_no_fields_of_the_oauth_library(self, operator: Client, api: Api) -> None:
        page = opened(operator, f"/admin/portal/apiclient/{ApiClient.objects.get().pk}/change/")
        assert "Client ID" in page and "Skip authorization" not in page and "RFC 7591" not in page

    def test_that_adds_a_row_has_no_icons_of_other_windows(self, operator: Client) -> None:
        page = opened(operator, "/admin/portal/membership/add/")
        assert "related-widget-wrapper" not in page and 'name="merchant"' in page

    def test_of_a_log_entry_says_what_an_operator_did(self, operator: Client, captured: Checkout) -> None:
        phone = str(captured.lead and captured.lead.phone)
        operator.get("/admin/find", {"q": phone})
        entry = LogEntry.objects.get()
        page = opened(operator, f"/admin/admin/logentry/{entry.pk}/change/")
        assert f"<h1>Search for a number ending {phone[-4:]}: Found 1 order</h1>" in page
        listed = opened(operator, "/admin/admin/logentry/")
        assert "<h1>Operators’ actions</h1>" in listed and "1 operators’ action</span>" not in listed
        assert "What operators changed, and the phone numbers that they searched for. Newest first." in listed
        assert ">ID of the record</label>" in listed and 'class="field-what_happened"' in listed
        for words in (page, listed):
            assert "Found 1 order." in words and "What happened" in words and "Action" not in words

    def test_of_a_log_entry_links_to_the_record(self, operator: Client, captured: Checkout) -> None:
        kind = ContentType.objects.get_for_model(Checkout)
        about = {"content_type": kind, "object_id": str(captured.pk), "object_repr": "A-1"}
        chief = User.objects.get(is_superuser=True)
        entry = LogEntry.objects.create(user=chief, action_flag=CHANGE, **about)
        page = opened(operator, f"/admin/admin/logentry/{entry.pk}/change/")
        address = f"/admin/checkout/checkout/{captured.pk}/change/"
        assert f'<a href="{address}"><code>{captured.pk}</code></a>' in page
        assert "Changed.</td>" in opened(operator, "/admin/admin/logentry/")
        assert "Checkout | checkout" not in page and "Object id" not in page
        assert "Operators’ actions on this record" not in page, "it is one of them"

    def test_of_a_session_ends_it(self, operator: Client, acme: Merchant) -> None:
        lea = Client()
        person = people.join(acme)
        people.operate(lea, person)
        session = UserSession.objects.create(user=person, session_key=lea.session.session_key, ip="10.0.0.1")
        page = opened(operator, f"/admin/usersessions/usersession/{session.pk}/change/")
        assert ">End this session</a>" in page and ">Close</a>" not in page and ">Delete</a>" not in page
