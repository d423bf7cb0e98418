from collections.abc import Callable, Iterator

import pytest

from checkout import cancellations, captures, operation_recovery, refunds
from checkout.models import Checkout
from config.lib import clock
from payments import models, operation_queue
from payments.models import Operation
from payments.providers.sandbox import fault_injection
from tests import factories
from tests.factories import CAUSE
from tests.journeys import service as services
from tests.journeys.merchant import Merchant
from tests.journeys.service import Service

pytest.register_assert_rewrite("tests.races.rivals")
CHALLENGED = "4000002500003155"


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Start the whole service as `make run` does."""
    with services.running(tmp_path_factory.mktemp("service")) as started:
        yield started


@pytest.fixture
def merchant(service: Service) -> Iterator[Merchant]:
    """Create a merchant for this test only. Prove the ledger after the test."""
    yield service.new_merchant()
    service.prove_ledger()


@pytest.fixture
def fresh(acme: models.Merchant, pay: Callable[..., Checkout]) -> Callable[[str], Checkout]:
    """Return a function that creates a checkout for Acme, in any state from which a race can start."""

    def in_doubt(mode: str) -> Checkout:
        """Capture a checkout. Neither the capture nor its look-up gets a clear response."""
        checkout = pay(factories.checkout(acme))
        fault_injection.set_fault(verb="capture", mode=mode, times=1)
        fault_injection.set_fault(verb="look_up", mode="down", times=1)
        with pytest.raises(captures.OutcomeUnknown):
            captures.capture(acme, checkout.pk, cause=CAUSE)
        return checkout

    def payment_in_doubt() -> Checkout:
        """Create a checkout that is held at the bank. The bank's response was lost more than a minute ago."""
        fault_injection.set_fault(verb="authorize", mode="done_then_reset", times=1)
        checkout = pay(factories.checkout(acme))
        rows = Operation.objects.filter(payment__checkout_uuid=checkout.pk)
        rows.update(created_at=clock.now() - operation_queue.MAX_PAYER_WAIT)
        return checkout

    def captured() -> Checkout:
        return captures.capture(acme, pay(factories.checkout(acme)).pk, cause=CAUSE)

    def refunding(*, is_accepted: bool) -> Checkout:
        checkout = captured()
        refunds.accept(acme, checkout.pk, ref=f"r-{checkout.pk}", cause=CAUSE)
        if is_accepted:
            operation_recovery.finish_due_operations(checkout.pk)
        return checkout

    def cancelled() -> Checkout:
        return cancellations.cancel(acme, pay(factories.checkout(acme)).pk, cause=CAUSE)

    makers: dict[str, Callable[[], Checkout]] = {
        "created": lambda: factories.checkout(acme),
        "challenged": lambda: pay(factories.checkout(acme), CHALLENGED),
        "payment in doubt": payment_in_doubt,
        "held": lambda: pay(factories.checkout(acme)),
        "taken, in doubt": lambda: in_doubt("done_then_reset"),
        "not taken, in doubt": lambda: in_doubt("down"),
        "captured": captured,
        "cancelled": cancelled,
        "refund planned": lambda: refunding(is_accepted=False),
        "refund pending": lambda: refunding(is_accepted=True),
    }
    return lambda state: Checkout.objects.select_related("merchant", "payment").get(pk=makers[state]().pk)
