"""`manage.py check_provider` lists everything that still has to be set up at Stripe to take payments."""

from collections.abc import Callable
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from pytest_django.fixtures import Settings

from payments.models import Merchant
from payments.providers.stripe import books, readiness
from tests.payments.providers.conformance.stripe import StripeDesk

pytestmark = [pytest.mark.django_db, pytest.mark.rule("provider.check")]
HOOK = "https://checkout.example/provider/notifications"
CONNECTED = "acct_connected1"


@pytest.fixture(autouse=True)
def _host(settings: Settings) -> None:
    settings.BASE_URL = "https://checkout.example"
    settings.CHECKOUT_PAGE_URL = "https://pay.example/pay"


@pytest.fixture
def set_up(desk: StripeDesk) -> Callable[..., None]:
    """Return a function that sets up Stripe as the README instructs an operator to do."""

    def create_objects(
        events: list[str] | None = None, host: str = "pay.example", account: str | None = None
    ) -> None:
        event_types = list(books.EVENTS) if events is None else events
        if event_types:
            desk.dashboard.v1.webhook_endpoints.create({"url": HOOK, "enabled_events": event_types})  # type: ignore[typeddict-item]
        of = desk.peer.client(account=account)
        of.v1.payment_method_domains.create({"domain_name": host})

    return create_objects


def test_nothing_is_missing_after_a_complete_setup(set_up: Callable[..., None]) -> None:
    set_up()
    printed = StringIO()
    call_command("check_provider", stdout=printed)
    assert printed.getvalue() == "Nothing is missing. Payments can be taken.\n"


def test_a_subscription_to_all_events_is_enough(set_up: Callable[..., None]) -> None:
    set_up(events=["*"])
    assert list(readiness.missing_parts()) == []


def test_each_missing_part_is_printed_with_a_remedy_and_the_command_fails(desk: StripeDesk) -> None:
    printed = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("check_provider", stdout=printed)
    webhook, wallets = printed.getvalue().splitlines()
    assert ended.value.code == 1
    assert (
        HOOK in webhook and "Create one for the events payment_intent.amount_capturable_updated," in webhook
    )
    assert wallets.startswith("Wallets are not shown. Register pay.example ")


def test_events_that_are_not_sent_are_named(set_up: Callable[..., None]) -> None:
    set_up(events=[name for name in books.EVENTS if name != "refund.failed"])
    assert list(readiness.missing_parts()) == [
        f"The webhook endpoint for {HOOK} lacks the events refund.failed. Add them."
    ]


def test_a_wallet_that_is_not_shown_is_named_with_the_reason(
    set_up: Callable[..., None], settings: Settings
) -> None:
    settings.CHECKOUT_PAGE_URL = "https://unverified.example/pay"
    set_up(host="unverified.example")
    assert list(readiness.missing_parts()) == [
        "apple_pay is not shown on unverified.example: The file was not found."
    ]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"charges_enabled": False}, "cannot take payments yet"),
        ({"capabilities": {"card_payments": "pending"}}, "cannot take cards (card_payments is pending)"),
        ({"capabilities": {}}, "cannot take cards (card_payments is not requested)"),
    ],
)
def test_each_merchants_account_is_checked(
    desk: StripeDesk, set_up: Callable[..., None], acme: Merchant, fields: dict[str, object], said: str
) -> None:
    Merchant.objects.filter(pk=acme.pk).update(provider_account=CONNECTED)
    set_up(account=CONNECTED)
    desk.peer.switch("lacks", account=CONNECTED, fields=fields)
    (found,) = readiness.missing_parts()
    assert found.startswith(f"The account {CONNECTED} ") and said in found


def test_an_invalid_key_is_reported(desk: StripeDesk, settings: Settings) -> None:
    settings.STRIPE_SECRET_KEY = "sk_test_other"
    (said,) = readiness.missing_parts()
    assert "does not know STRIPE_SECRET_KEY" in said


def test_an_unreachable_provider_is_reported(desk: StripeDesk, settings: Settings) -> None:
    settings.STRIPE_API = "http://127.0.0.1:1"
    with pytest.raises(CommandError, match="The provider does not answer"):
        call_command("check_provider")


def test_the_sandbox_bank_needs_no_setup() -> None:
    printed = StringIO()
    call_command("check_provider", stdout=printed)
    assert "Nothing is missing" in printed.getvalue()
