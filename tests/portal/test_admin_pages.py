"""Every page of the admin opens and runs few SQL statements, with rows of every kind."""

import html
import itertools
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from uuid_utils.compat import uuid7

from checkout import cancellations, captures, refunds, tasks
from checkout.models import Checkout, PaymentRequest, Prefill, ReplacedLink
from checkout.proof import proof_runs
from config.lib import clock
from config.lib.admin import columns, lists
from hosted_page import payer
from hosted_page.models import (
    CardTry,
    CspReport,
    KnownBrowser,
    ShareTake,
    SignInCode,
    SmsDay,
    SmsMessage,
    SmsStop,
)
from payments import bookings
from payments.discrepancies import kinds, reporting
from payments.inquiring import inquiries, reconciliation
from payments.models import LastBackup, LedgerSum, Logo, Merchant, Operation, Payment
from payments.providers.sandbox import client as bank_client
from payments.providers.sandbox import fault_injection
from payments.providers.sandbox.models import BankNotification, BrokenKey, Call
from portal.accounts import login_limits
from portal.mail import outbox
from portal.models import (
    AuditEntry,
    CheckoutNote,
    DeliveryHour,
    Invitation,
    LastWrite,
    Membership,
    PaymentHour,
    PreviousPassword,
    Trial,
    User,
)
from tests import factories
from tests.conftest import Api
from tests.factories import CAUSE
from tests.portal import people, stage
from webhooks.models import Attempt, Delivery, Endpoint, Event, EventType, Subscription

pytestmark = pytest.mark.django_db
MAXIMUM = 21  # SQL statements per page; one of them counts rows for the menu
ROWS = 3  # rows that are opened from each list
# The texts to search for. The admin searches for each word of a text separately.
ODD = ("a%00b", "+".join(("%27%25-1", "x" * 5000, "0" * 32)))


@pytest.fixture
def operator(client: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    # The sidebar is the same on hundreds of pages, and rendering it each time would be slow.
    monkeypatch.setattr(admin.site, "enable_nav_sidebar", False)
    people.operate(client)
    return client


@pytest.fixture
def all_events(acme: Merchant) -> Subscription:
    """Subscribe Acme to every event type."""
    return factories.subscribe(acme, url="http://127.0.0.1:9/hooks", event_types=["*"]).subscription


@pytest.fixture
def shared(acme: Merchant, all_events: Subscription, at: Callable[[str], Checkout]) -> Checkout:
    """Return a split order in which a mate has paid a share."""
    return at("shared")


@pytest.fixture
def world(
    acme: Merchant, all_events: Subscription, shared: Checkout, pay: Callable[..., Checkout], api: Api
) -> Merchant:
    """Create a row of almost every model, in addition to the split order and its events."""
    refunded = captures.capture(acme, pay(factories.checkout(acme)).pk, cause=CAUSE)
    refunds.accept(acme, refunded.pk, ref="r-1", cause=CAUSE)
    cancellations.cancel(acme, pay(factories.checkout(acme)).pk, cause=CAUSE)
    api.post(f"checkouts/{pay(factories.checkout(acme)).pk}/capture")
    reporting.report_operation(Operation.objects.earliest("pk"), kinds.ANOTHER_AMOUNT, told=1)
    bank_client.call_bank("dispute", payment=refunded.payment_id)
    inquiries.open_inquiries([refunded.payment_id] if refunded.payment_id else [])
    tasks.answer_inquiries()
    part = Operation.objects.select_related("payment").get(kind="refund", payment=refunded.payment_id)
    bookings.settle_outside(part, part.amount, note="By bank transfer", now=clock.now(), cause=CAUSE)
    in_doubt = pay(factories.checkout(acme))
    fault_injection.set_fault(verb="capture", mode="down", times=1)
    BrokenKey.objects.create(key=uuid7())
    with pytest.raises(captures.OutcomeUnknown):
        captures.capture(acme, in_doubt.pk, cause=CAUSE)
    ticked = {"email": "lea@mail.example"}
    path = f"/api/sandbox/v1/checkouts/{shared.pk}/opt-in"
    Merchant.objects.filter(pk=acme.pk).update(opt_in_enabled=True, provider_account="acct_acme")
    answer = api.client.post(path, ticked, content_type="application/json", headers=api.headers({}))
    assert answer.status_code == 200
    assert api.post("checkouts", factories.order(), Idempotency_Key="k-1").status_code == 201
    proof_runs.begin_run()
    reconciliation.run()
    LastBackup.objects.create(made_at=clock.now())
    Logo.objects.create(merchant=acme, version=2, mark=b"png", card=b"png")
    LastWrite.objects.create(whose=acme.pk, position=1)
    today = clock.now().date()
    LedgerSum.objects.create(
        merchant=acme,
        account="merchant",
        currency="GBP",
        begin=today,
        end=today + timedelta(days=1),
        amount=1,
    )
    _create_people(acme, shared)
    _create_deliveries(acme, all_events)
    factories.stop(acme)
    stage.payout(acme)
    return acme


def _create_people(acme: Merchant, shared: Checkout) -> None:
    now, lea = clock.now(), User.objects.create_user("lea@acme.example")
    Membership.objects.create(merchant=acme, user=lea, role="owner")
    PreviousPassword.objects.create(user=lea, encoded="unspoken")
    Invitation.objects.create(
        merchant=acme,
        email="finn@acme.example",
        role="viewer",
        token_digest="unspoken",
        invited_by=lea,
        expires_at=now,
    )
    AuditEntry.objects.create(merchant=acme, user=lea, action="refund")
    CheckoutNote.objects.create(merchant=acme, user=lea, checkout_uuid=shared.pk, text="unspoken")
    Trial.objects.create(merchant=acme, user=lea, case="twice", created_at=now, next_look_at=now)
    SmsStop.objects.create(number="n" * 30, stopped_at=now)
    LogEntry.objects.create(user=lea, object_repr="a pump", action_flag=CHANGE)
    login_limits.count_attempt("password", account="lea@acme.example", address="203.0.113.7")
    outbox.queue_once(acme, "refund_failed", key=str(shared.pk), secret="unspoken")
    PaymentHour.objects.create(merchant=acme, hour=now, currency="GBP", captured_amount=9000)
    DeliveryHour.objects.create(merchant=acme, hour=now)
    about = {"subject": shared.pk, "phone": "+447700900123", "created_at": now}
    KnownBrowser.objects.create(token_digest="unspoken", phone="+447700900123", proven_at=now)
    payer.begin_sign_in(shared.pk, shared.lead_id or shared.pk, is_proven=True)
    SignInCode.objects.create(browser_digest="unspoken", code_digest="unspoken", expires_at=now, **about)
    SmsMessage.objects.create(
        kind="code",
        merchant=acme,
        body="unspoken",
        phone_digest="unspoken",
        range_digest="unspoken",
        ends_at=now,
        checkout_uuid=shared.pk,
        address_digest="unspoken",
        **about,
    )
    CardTry.objects.create(
        subject=shared.pk,
        card_token="unspoken",
        phone_digest="unspoken",
        address_digest="unspoken",
        created_at=now,
    )
    ShareTake.objects.create(address_digest="unspoken", created_at=now)
    CspReport.objects.create(
        page="card form",
        directive="img-src",
        blocked="x.example",
        first_seen=now,
        last_seen=now,
        count=1,
    )
    replaced = shared.payment_requests.earliest("position")
    ReplacedLink.objects.create(share=replaced, token_digest="0" * 64, replaced_at=clock.now())
    Prefill.objects.create(checkout=shared, phone="+447700900123", name="unspoken")
    SmsDay.objects.create(day=now.date(), merchant=acme, count=1)
    Group.objects.create(name="Support")


def _create_deliveries(acme: Merchant, all_events: Subscription) -> None:
    common = {"merchant": acme, "event_type": EventType.VOIDED, "started_at": clock.now()}
    for number, delivery in enumerate(Delivery.objects.all()):
        attempt = clock.new_id_of_same_time(delivery.pk)
        Attempt.objects.create(id=attempt, delivery=delivery, number=number + 1, **common)
    Endpoint.objects.create(subscription=all_events, failing_since=clock.now(), last_error="HTTP 500")
    BrokenKey.objects.create(key=acme.pk)
    BankNotification.objects.create(
        call=Call.objects.earliest("created_at"), verdict="succeeded", due_at=clock.now()
    )
    Delivery.objects.filter(pk=Delivery.objects.values("pk")[:1]).update(
        status="parked", next_attempt_at=None, ended_at=clock.now()
    )


def opened(client: Client, address: str) -> str:
    """Open a page and return its HTML. Fail unless it exists and runs at most MAXIMUM SQL statements."""
    with CaptureQueriesContext(connection) as asked:
        answer = client.get(address, follow=True)
    assert answer.status_code == 200, address
    assert len(asked) <= MAXIMUM, (address, [query["sql"] for query in asked])
    return str(answer.content.decode())


def lists_of() -> Iterator[tuple[str, Any]]:
    for shown in admin.site._registry.values():
        yield f"/admin/{shown.opts.app_label}/{shown.opts.model_name}/", shown


class TestEveryPage:
    @pytest.mark.long
    def test_opens_with_few_statements_and_shows_no_secret(
        self, operator: Client, world: Merchant, shared: Checkout
    ) -> None:
        secrets = {share.token for share in shared.payment_requests.all()}
        secrets |= {payment.card_token for payment in Payment.objects.all()}
        secrets |= {"unspoken", "whsec_", "+447700", "lea@mail.example"}
        for address, shown in lists_of():
            pages = [opened(operator, address)]
            for row in shown.model._default_manager.all()[:ROWS]:
                pages += [opened(operator, f"{address}{row.pk}/{page}/") for page in ("change", "history")]
            assert not [secret for secret in secrets for page in pages if secret in page], address

    def test_has_rows_in_this_test(self, operator: Client, world: Merchant) -> None:
        empty = {shown.opts.label for _, shown in lists_of() if not shown.model._default_manager.exists()}
        assert empty <= {
            "bank.CardSession",
            "mfa.Authenticator",
            "payments.LedgerClosing",
            "usersessions.UserSession",
        }

    @pytest.mark.long
    def test_opens_for_users_who_can_only_view(self, client: Client, world: Merchant) -> None:
        person = User.objects.create_user("looker@example.com", is_staff=True)
        person.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
        people.operate(client, person)
        for address, shown in lists_of():
            opened(client, address)
            for row in shown.model._default_manager.all()[:1]:
                opened(client, f"{address}{row.pk}/change/")
        assert "/admin/operations/run" not in opened(client, "/admin/operations/")

    @pytest.mark.long
    def test_accepts_unusual_search_terms(self, operator: Client, world: Merchant) -> None:
        for address, shown in lists_of():
            for word in ODD if shown.search_fields else ():
                opened(operator, f"{address}?q={word}")

    @pytest.mark.long
    def test_filters_by_everything_it_offers(self, operator: Client, world: Merchant) -> None:
        """Each request sets every filter to one of its choices. No choice causes an error in the list."""
        for address, _ in lists_of():
            listed = operator.get(address).context["cl"]
            offered = [list(spec.choices(listed)) for spec in listed.filter_specs]
            for chosen in itertools.zip_longest(*offered):
                queries = [choice["query_string"].lstrip("?") for choice in chosen if choice]
                opened(operator, f"{address}?{'&'.join(query for query in queries if query)}")

    def test_links_only_to_existing_pages(self, operator: Client, world: Merchant) -> None:
        seen: set[str] = set()
        for model in (Merchant, Checkout, Operation, PaymentRequest, User):
            row = model._default_manager.order_by("pk").first()
            assert row is not None
            page = operator.get(columns.page_address(model._meta.label_lower, row.pk)).content.decode()
            seen |= {
                html.unescape(found) for found in re.findall(r'href="(/admin/[^"]+__exact=[^"]+)"', page)
            }
        assert len(seen) > 30
        for address in seen:
            opened(operator, address)


class TestList:
    CHECKOUTS = "/admin/checkout/checkout/"

    def test_finds_a_checkout_by_its_id_and_its_order(
        self, operator: Client, shared: Checkout, rival: Merchant
    ) -> None:
        other = factories.checkout(rival, merchant_order_id="B-1")
        for word in (shared.pk, shared.merchant_order_id):
            page = opened(operator, f"{self.CHECKOUTS}?q={word}")
            assert str(shared.pk) in page and str(other.pk) not in page

    def test_of_one_merchant_says_so(self, operator: Client, shared: Checkout, rival: Merchant) -> None:
        other = factories.checkout(rival)
        page = opened(operator, f"{self.CHECKOUTS}?merchant__exact={rival.pk}")
        assert str(other.pk) in page and str(shared.pk) not in page and "Merchant</h3>" in page

    @pytest.mark.parametrize(
        "lookup", ["card_token__startswith=t", "amount__gt=1", "merchant__name__contains=A"]
    )
    def test_refuses_other_lookups(self, operator: Client, lookup: str) -> None:
        assert operator.get(f"/admin/payments/payment/?{lookup}").status_code == 400

    def test_counts_no_further_than_its_pages(
        self, operator: Client, acme: Merchant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for _ in range(4):
            factories.checkout(acme)
        monkeypatch.setattr(lists, "MAXIMUM", 3)
        assert operator.get(self.CHECKOUTS).context["cl"].result_count == 3

    def test_searches_for_rare_rows_among_the_newest_only(
        self, operator: Client, at: Callable[[str], Checkout], acme: Merchant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        old = at("voided")
        address = f"{self.CHECKOUTS}?status__exact=voided"
        assert str(old.pk) in opened(operator, address)
        factories.checkout(acme)
        monkeypatch.setattr(lists, "NEWEST_SEARCHED", 1)
        assert str(old.pk) not in opened(operator, address)
        assert str(old.pk) in opened(operator, self.CHECKOUTS)

    def test_is_always_in_the_order_of_its_index(self, operator: Client, acme: Merchant) -> None:
        first, second = factories.checkout(acme), factories.checkout(acme)
        for address in (
            self.CHECKOUTS,
            f"{self.CHECKOUTS}?o=4",
            f"{self.CHECKOUTS}?merchant__exact={acme.pk}&o=4",
        ):
            rows = list(operator.get(address).context["cl"].result_list)
            assert rows == [second, first], address


class TestPage:
    def test_of_a_checkout_links_to_all_related_rows(
        self, operator: Client, world: Merchant, shared: Checkout
    ) -> None:
        page = opened(operator, f"/admin/checkout/checkout/{shared.pk}/change/")
        payments = Payment.objects.filter(checkout_uuid=shared.pk)
        around: list[Any] = [world, *payments, *Operation.objects.filter(payment__in=payments)]
        around += [*shared.payment_requests.all(), *shared.changes.all()]
        around += Delivery.objects.filter(event__checkout_uuid=shared.pk)
        assert len(around) > 12
        for row in around:
            assert columns.page_address(row._meta.label_lower, row.pk) in page, row
        assert "£90.00" in page and "9,000" not in page
        assert "Standing ticket" in page, "what was ordered is on the page itself"

    def test_of_a_merchant_leads_to_its_lists(self, operator: Client, acme: Merchant) -> None:
        page = opened(operator, f"/admin/payments/merchant/{acme.pk}/change/")
        for label in ("checkout.checkout", "payments.payment", "webhooks.subscription", "payments.switch"):
            assert columns.list_address(label, merchant__exact=acme.pk) in page

    def test_of_an_event_shows_what_was_sent_unless_it_is_personal(
        self, operator: Client, world: Merchant
    ) -> None:
        sent, personal = (
            Event.objects.filter(type=kind).latest("pk") for kind in ("checkout.voided", EventType.OPTED_IN)
        )
        page = opened(operator, f"/admin/webhooks/event/{sent.pk}/change/")
        assert "\n  &quot;type&quot;: &quot;checkout.voided&quot;,\n" in page, "one value a line"
        assert "The body has personal data and is not shown." in opened(
            operator, f"/admin/webhooks/event/{personal.pk}/change/"
        )

    def test_says_which_environment_it_is_of(self, operator: Client, settings: Any) -> None:
        page = opened(operator, "/admin/")
        assert "Merchant Checkout · Operators</title>" in page and "No real money moves" in page
        settings.SANDBOX = False
        page = opened(operator, "/admin/")
        assert "Live" in page and "No real money moves" not in page
