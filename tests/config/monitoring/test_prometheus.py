"""A real Prometheus watches the service. Without a fault, no alert fires. Each fault makes its alerts fire.

To keep the test short, the durations in the rules are divided by twenty while there are faults. The service's own times
are not changed. For example, the service reads its figures every five seconds, and counts an operation as unresolved
only after a minute. The alert about a hold whose merchant was not notified can fire only in the hold's last 30 s.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from tests.config.deploy import backups
from tests.config.monitoring import rules, watched
from tests.config.monitoring.watched import Prometheus, World
from tests.journeys import polling
from tests.journeys.merchant import seconds_until

pytestmark = [pytest.mark.journey, pytest.mark.long, pytest.mark.rule("environment.alerts")]
FAST = 1 / 20
CALM_SECONDS = 600
FIRES_WITHIN, ENDS_WITHIN = 75.0, 90.0
# Seconds until the webhook about a hold is parked. Its last attempt starts 75 s after the event.
GIVEN_UP_WITHIN = 100.0
AGE_OPERATIONS = """
from datetime import timedelta
from django.db.models import F
from payments.models import Operation
Operation.objects.filter(payment__checkout_uuid="{}").update(created_at=F("created_at") - timedelta(minutes=20))
"""
GIVE_UP = """
from time import sleep
from checkout.remedies import giving_up
from checkout.remedies.status_check import NotAllowed
from payments.cause import PUMP
from payments.models import Operation
for _ in range(40):
    for found in Operation.objects.filter(kind="authorize", state="unknown"):
        try:
            giving_up.give_up(found.pk, note="It never arrived.", cause=PUMP)
        except NotAllowed:  # the pump is asking about it just now
            sleep(0.5)
"""
MARK = """
from payments.models import DatabaseMark
DatabaseMark.objects.update(server={})
"""
LOSE_A_PARTITION = """
from datetime import timedelta
from django.db import connection
from config.lib import clock
from webhooks import retention
table = retention.PARTITIONED[0]
connection.cursor().execute(f"DROP TABLE {table.named(clock.now().date() + timedelta(days=3))}")
"""
MISS_A_BACKUP = """
from datetime import timedelta
from config.lib import clock
from payments.models import LastBackup
LastBackup.objects.update_or_create(pk=1, defaults={"made_at": clock.now() - timedelta(hours=27)})
"""
QUEUE_A_TEXT = """
from datetime import timedelta
from checkout.models import Checkout
from config.lib import clock
from hosted_page.models import SmsMessage
now = clock.now()
checkout = Checkout.objects.order_by("pk").last()
SmsMessage.objects.create(
    kind="receipt", merchant=checkout.merchant, checkout_uuid=checkout.pk, subject=checkout.pk,
    phone="+447700900123", body="Thanks", due_at=now, ends_at=now + timedelta(minutes=10), created_at=now,
)
"""
# The mail server refuses these mails, because their subject has two lines.
QUEUE_MAILS = """
from config.lib import clock
from portal.models import OutboundEmail
for number in range(5):
    OutboundEmail.objects.create(
        kind="login", key=f"fault-{number}", text="lea@acme.example\\nOne\\rTwo\\nText", next_try_at=clock.now()
    )
"""
DROP_MAILS = """
from portal.models import OutboundEmail
OutboundEmail.objects.filter(key__startswith="fault-").delete()
"""
MISS_A_NIGHT = """
from datetime import timedelta
from config.lib import clock
from payments.models import Reconciled
Reconciled.objects.update_or_create(pk=1, defaults={"until": clock.now() - timedelta(hours=27)})
"""


def kill(part: str) -> Callable[[World], None]:
    return lambda world: world.whole.kill(part)


def whole_again(world: World) -> None:
    world.whole.make_whole()


def stop_a_thread(world: World) -> None:
    """Make a thread of the worker hang before it calls the bank.

    Redis is stopped, so that one of the worker's own threads runs the pump and hangs.
    """
    world.whole.stop_redis()
    (Path(world.whole.parts["worker"].variables["FAIL_POINTS"]) / "before_call.refund").write_text("sleep 20")


def close_the_database(world: World) -> None:
    world.open_database(False)


def refuse_writes(world: World) -> None:
    """Make the database accept only reads, and let a merchant create an order."""
    world.set_read_only(True)
    world.call_in_parallel(3, "merchant/v1/checkouts")


def accept_writes(world: World) -> None:
    world.send_callers_away()
    world.set_read_only(False)


def open_the_database(world: World) -> None:
    world.open_database(True)


def fill_the_pool(world: World) -> None:
    """Lock a table, and start more callers than the pool has connections, all of which wait for the table."""
    world.hold("payments_merchant")
    world.call_in_parallel(24, "merchant/v1/checkouts")


def let_callers_go(world: World) -> None:
    world.send_callers_away()
    world.let_go()


def silence_the_bank(world: World) -> None:
    world.set_fault("error")


def repair_the_bank(world: World) -> None:
    world.set_fault("error", times=0)


def hang_the_bank(world: World) -> None:
    """Make the bank hang, and start more payments than the service has slots for calls to the bank."""
    uuids = [world.merchant.create() for _ in range(12)]
    world.set_fault("hang", "authorize")
    for uuid in uuids:
        world.call_in_parallel(1, f"sandbox/v1/checkouts/{uuid}/pay", {"card": "4242424242424242"})


def repair_the_hanging_bank(world: World) -> None:
    world.send_callers_away()
    world.set_fault("hang", "authorize", times=0)


def delay_the_notification(world: World) -> None:
    """Kill the worker, then advance a hold to its last half minute."""
    world.whole.kill("worker")
    world.merchant.advance(world.merchant.held(), 92)


def refuse_with(status: int) -> Callable[[World], None]:
    """Return a function that makes the merchant answer every webhook with this status.

    The function waits until the webhook about a hold is parked. It then advances the hold to its last half minute.
    """

    def refuse(world: World) -> None:
        world.shop.answer_with(status)
        uuid = world.merchant.held()
        polling.until(lambda: world.is_parked(uuid), within=GIVEN_UP_WITHIN, what="a parked delivery")
        ends_at = world.merchant.read(uuid)["capture_before"]
        world.merchant.advance(uuid, seconds_until(ends_at) - 28)

    return refuse


def bring_another_server(world: World) -> None:
    """Set the database's mark to a different server, as in a restored database."""
    world.service.command("shell", "--command", MARK.format("'another'"))


def repair(world: World) -> None:
    world.service.command("reconcile", "--repair")


def leave_in_doubt(world: World) -> None:
    world.set_fault("error")
    uuid = world.merchant.create()
    world.merchant.call("POST", f"sandbox/v1/checkouts/{uuid}/pay", {"card": "4242424242424242"})
    world.service.command("shell", "--command", AGE_OPERATIONS.format(uuid))


def give_up(world: World) -> None:
    """Repair the bank, and give up the operations that would otherwise remain unresolved for a day."""
    repair_the_bank(world)
    world.service.command("shell", "--command", GIVE_UP)


def forge_a_notification(world: World) -> None:
    requests.post(f"{world.merchant.base_url}/provider/notifications", json={"id": "x"}, timeout=10)


def close_discrepancies(world: World) -> None:
    world.service.command(
        "shell", "--command", "from payments.models import Discrepancy\nDiscrepancy.objects.all().delete()"
    )


def lose_a_partition(world: World) -> None:
    world.service.command("shell", "--command", LOSE_A_PARTITION)


def make_partitions(world: World) -> None:
    world.service.command(
        "shell", "--command", "from webhooks import retention\nretention.create_partitions()"
    )


def miss_a_night(world: World) -> None:
    world.service.command("shell", "--command", MISS_A_NIGHT)


def reconcile(world: World) -> None:
    world.service.command(
        "shell", "--command", "from payments.inquiring import reconciliation\nreconciliation.run()"
    )


def miss_a_backup(world: World) -> None:
    world.service.command("shell", "--command", MISS_A_BACKUP)


def back_up(world: World) -> None:
    backups.run(world.whole.engines, world.host.trusted.parent)


def break_the_archive(world: World) -> None:
    world.archive_with("false")


def mend_the_archive(world: World) -> None:
    world.archive_with("true")


def serve_an_old_certificate(world: World) -> None:
    world.host.set_certificate(days=13)


def renew_the_certificate(world: World) -> None:
    world.host.set_certificate(days=60)


def put_the_clock_ahead(world: World) -> None:
    world.set_clock("worker", "30s")


def set_the_clock(world: World) -> None:
    world.whole.kill("worker")
    world.whole.make_whole()


def lose_the_carrier(world: World) -> None:
    """Queue texts, and make each call to the carrier fail."""
    point = Path(world.whole.parts["worker"].variables["FAIL_POINTS"]) / "sms_claimed"
    for _ in range(5):
        point.write_text("raise")
        world.service.command("shell", "--command", QUEUE_A_TEXT)
        polling.until(lambda: not point.exists(), within=20, what="a text that fails")


def send_texts(world: World) -> None:
    """Let the carrier accept texts again."""
    for _ in range(5):
        world.service.command("shell", "--command", QUEUE_A_TEXT)


def queue_mails_that_fail(world: World) -> None:
    world.service.command("shell", "--command", QUEUE_MAILS)


def drop_mails(world: World) -> None:
    world.service.command("shell", "--command", DROP_MAILS)


def refuse_webhooks(world: World) -> None:
    world.shop.answer_with(500)


def take_webhooks(world: World) -> None:
    world.shop.answer_with(200)


# Each fault, the alerts that it must cause, and its repair. This test has only one version and no replica, so the
# alerts about versions and replicas are tested only with promtool.
FAULTS: dict[str, tuple[Callable[[World], None], set[str], Callable[[World], None]]] = {
    "web dead": (kill("web"), {"WebDown"}, whole_again),
    "worker dead": (kill("worker"), {"WorkerDown", "QueueStuck"}, whole_again),
    "beat gone": (kill("beat"), {"BeatGone"}, whole_again),
    "thread stands still": (stop_a_thread, {"WorkerStandsStill"}, whole_again),
    "database away": (close_the_database, {"DatabaseAway", "RequestsFail"}, open_the_database),
    "database read-only": (refuse_writes, {"WritesFail"}, accept_writes),
    "database restored": (bring_another_server, {"Closed"}, repair),
    "pool full": (fill_the_pool, {"PoolFull", "RequestsSlow"}, let_callers_go),
    "bank silent": (silence_the_bank, {"ProviderSilent"}, repair_the_bank),
    "bank hangs": (hang_the_bank, {"SlotsRefused"}, repair_the_hanging_bank),
    "nobody tells": (delay_the_notification, {"HoldsUnheard"}, whole_again),
    "endpoint fails": (refuse_with(500), {"HoldsUnheard"}, take_webhooks),
    "endpoint refuses": (refuse_with(400), {"HoldsUnheard"}, take_webhooks),
    "an operation that stays in doubt": (leave_in_doubt, {"OutcomeUnknown"}, give_up),
    "a forged notification": (forge_a_notification, {"Discrepancies"}, close_discrepancies),
    "a partition missing": (lose_a_partition, {"PartitionsMissing"}, make_partitions),
    "a night without reconciliation": (miss_a_night, {"ReconciliationLate"}, reconcile),
    "a night without a back-up": (miss_a_backup, {"BackupLate"}, back_up),
    "archive away": (break_the_archive, {"ArchiveFails"}, mend_the_archive),
    "certificate old": (serve_an_old_certificate, {"CertificateExpires"}, renew_the_certificate),
    "clock ahead": (put_the_clock_ahead, {"ClockWrong"}, set_the_clock),
    "carrier away": (lose_the_carrier, {"TextsFail"}, send_texts),
    "mails refused": (queue_mails_that_fail, {"MailsFail"}, drop_mails),
    "webhooks refused": (refuse_webhooks, {"DeliveriesFail"}, take_webhooks),
}


@pytest.fixture(scope="module")
def watching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, Prometheus, Prometheus]]:
    """Yield the service, a Prometheus with the original rules, and a Prometheus with shortened durations."""
    folder = tmp_path_factory.mktemp("watched")
    with (
        watched.running(folder / "service") as (world, ports),
        watched.prometheus(folder / "real", ports, 1.0, "15s") as real,
        watched.prometheus(folder / "fast", ports, FAST, "1s") as fast,
    ):
        yield world, real, fast


def test_no_alert_fires_in_ten_calm_minutes(watching: tuple[World, Prometheus, Prometheus]) -> None:
    """This test must run first, before any fault is caused."""
    _, real, _ = watching
    time.sleep(CALM_SECONDS)
    assert real.ever_fired() == set()
    orders = real.value(
        'increase(checkout_provider_call_seconds_count{kind="capture",outcome="succeeded"}[9m])'
    )
    assert orders is not None and orders > 60, "there was something to watch"
    assert real.value("count(up == 1)") == 3


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_fires_its_alerts(watching: tuple[World, Prometheus, Prometheus], fault: str) -> None:
    world, _, fast = watching
    make, expected, mend = FAULTS[fault]
    polling.until(lambda: not fast.firing() & expected, within=ENDS_WITHIN, what="calm before it")
    seen, runbooks = set[str](), set[str]()

    def fires() -> bool:
        seen.update(fast.firing())
        runbooks.update(fast.runbooks())
        return expected <= seen

    try:
        make(world)
        polling.until(fires, within=FIRES_WITHIN, what=f"{expected} of {seen}")
    finally:
        mend(world)
    polling.until(lambda: not fast.firing() & expected, within=ENDS_WITHIN, what="calm after it")
    assert all(link.startswith("https://git.example/checkout/docs/operate.md#") for link in runbooks)


def test_every_alert_is_tested_with_a_fault() -> None:
    made = set[str]().union(*(expected for _, expected, _ in FAULTS.values()))
    assert made == set(rules.NAMES) - {"VersionsMixed", "ReplicaLate"}
