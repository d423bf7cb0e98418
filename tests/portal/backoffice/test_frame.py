"""The menu on the operators' pages and on the admin's pages."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from checkout.models import Checkout
from config.lib import clock
from config.lib.admin.panels import Link
from payments import operator_stops
from payments.discrepancies import kinds, reporting
from payments.models import Merchant, Operation
from portal.backoffice import frame, overview_figures
from portal.backoffice.order import format_utc
from portal.models import User
from tests import factories
from tests.portal import people
from webhooks.models import Endpoint

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.page")]
HERE = 'aria-current="page"'


def marked(page: str) -> list[str]:
    """Return the addresses that the menu marks as the current page."""
    return [line.split('href="')[1].split('"')[0] for line in page.splitlines() if HERE in line]


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("/admin/", "/admin/"),
        ("/admin/operations/", "/admin/operations/"),
        ("/admin/checkout/checkout/", "/admin/checkout/checkout/"),
        ("/admin/payments/discrepancy/", "/admin/payments/discrepancy/?state=open"),
    ],
)
def test_the_menu_marks_the_current_page(operator: Client, path: str, address: str) -> None:
    assert marked(operator.get(path).content.decode()) == [address]


def test_the_menu_marks_the_list_on_the_page_of_a_row(operator: Client, captured: Checkout) -> None:
    page = operator.get(f"/admin/checkout/checkout/{captured.pk}/change/").content.decode()
    assert marked(page) == ["/admin/checkout/checkout/"]


def test_the_menu_counts_open_rows_next_to_each_list(operator: Client, captured: Checkout) -> None:
    capture = Operation.objects.get(kind="capture")
    reporting.report_operation(capture, kinds.ANOTHER_AMOUNT)
    reporting.report_operation(capture, kinds.MISSING_THERE)
    assert overview_figures.count_waiting() == (0, 2)
    assert "2<span" in operator.get("/admin/checkout/checkout/").content.decode()


def test_the_menu_shows_only_what_the_user_can_view(client: Client, captured: Checkout) -> None:
    reporting.report_operation(Operation.objects.get(kind="capture"), kinds.ANOTHER_AMOUNT)
    person = User.objects.create_user("x@example.com", is_staff=True)
    person.user_permissions.set(Permission.objects.filter(codename="view_merchant"))
    people.operate(client, person)
    page = client.get("/admin/payments/merchant/").content.decode()
    assert "/admin/operations/" not in page and "waiting for you" not in page


def test_the_first_page_counts_open_rows_next_to_a_record(operator: Client, captured: Checkout) -> None:
    assert "1 open</span>" not in operator.get("/admin/").content.decode()
    reporting.report_operation(Operation.objects.get(kind="capture"), kinds.ANOTHER_AMOUNT)
    assert "1 open</span>" in operator.get("/admin/").content.decode()


def test_the_overview_names_stopped_merchants(operator: Client, acme: Merchant) -> None:
    assert "Stopped" not in operator.get("/admin/now").content.decode()
    operator_stops.suspend(acme, reason="Fraud")
    page = operator.get("/admin/now").content.decode()
    assert "Stopped" in page and "Acme Tickets: Fraud" in page
    assert "All merchants have been stopped" not in operator.get("/admin/").content.decode()


def test_the_overview_counts_failing_endpoints_apart_from_parked_deliveries(
    operator: Client, acme: Merchant
) -> None:
    subscription = factories.subscribe(acme, url="http://127.0.0.1:9/hooks", event_types=["*"]).subscription
    Endpoint.objects.create(subscription=subscription, failing_since=clock.now() - timedelta(hours=2))
    page = operator.get("/admin/now").content.decode()
    parked, failing = page.partition("Failing endpoints</dt>")[::2]
    parked = parked.partition("Parked today</dt>")[2]
    assert 'class="tone-done"' in parked and "endpoint" not in parked
    assert 'class="tone-held"' in failing.partition("</strong>")[0] and "Acme Tickets, for 2 hours" in failing


def test_the_overview_begins_with_the_stop_of_all_merchants(operator: Client) -> None:
    switch = operator_stops.suspend(None, reason="Outage")
    assert switch is not None
    page = operator.get("/admin/").content.decode()
    assert f"All merchants have been stopped since {format_utc(switch.changed_at)} UTC: Outage" in page
    assert f'href="/admin/payments/switch/{switch.pk}/change/">End this stop<' in page
    assert page.index("End this stop") < page.index("Needs attention")
    now = operator.get("/admin/now").content.decode()
    assert "All merchants</strong>" in now and "Outage" in now


def test_the_overview_names_the_oldest_job_of_the_queues(operator: Client, held: Checkout) -> None:
    page = operator.get("/admin/now").content.decode()
    assert "Oldest job in a queue" in page and "None late</strong>" in page and "late means over 5 s" in page
    factories.make_late(held)
    assert "Holds to release: not late</span>" in operator.get("/admin/now").content.decode()


def test_sms_messages_are_labelled_texts(operator: Client) -> None:
    page = operator.get("/admin/").content.decode()
    assert ">Texts</a>" in page and "SMS messages" not in page
    assert "<h1>Texts</h1>" in operator.get("/admin/hosted_page/smsmessage/").content.decode()


def test_links_are_ordered_by_topic_as_on_the_overview() -> None:
    links = [Link(title, "/") for title in ("Bills", "Disputes", "Events", "Payments", "Refunds")]
    found = [(topic, [link.title for link in rows]) for topic, rows in frame.group_by_topic(links)]
    assert found == [
        ("Orders", ["Refunds"]),
        ("Money", ["Payments", "Disputes"]),
        ("Webhooks and messages", ["Events"]),
        ("Other", ["Bills"]),
    ]


@pytest.mark.parametrize("path", ["/admin/nowhere/", "/admin/payments/nothing/", "/admin/operations/ask/x"])
def test_an_unknown_page_is_shown_in_the_frame(operator: Client, path: str) -> None:
    answer = operator.get(path)
    page = answer.content.decode()
    assert answer.status_code == 404 and "<h1>No page at this address</h1>" in page
    assert 'id="side-nav"' in page and "Go to the overview" in page and "message or shop" not in page


def test_an_unknown_page_shows_no_menu_to_people_who_are_not_operators(
    client: Client, acme: Merchant
) -> None:
    people.join(acme)
    people.log_in(client)
    answer = client.get("/admin/nowhere/")
    assert "side-nav" not in answer.content.decode()


def test_a_refusal_names_whom_an_operator_can_ask(client: Client) -> None:
    people.operate(client, User.objects.create_user("x@example.com", is_staff=True))
    page = client.get("/admin/portal/invitation/").content.decode()
    assert (
        "Your account cannot do this. Ask an administrator." in page and "owner of your account" not in page
    )


@pytest.mark.parametrize("query", ["merchant__name=x", "status=lost", "_to_field=amount"])
def test_a_wrong_filter_is_explained_in_the_frame(operator: Client, query: str) -> None:
    answer = operator.get(f"/admin/payments/payment/?{query}")
    page = answer.content.decode()
    assert answer.status_code == 400 and "<h1>No such filter</h1>" in page and 'id="side-nav"' in page
    assert 'href="/admin/payments/payment/">Clear the filters</a>' in page and "cut off" not in page
