"""The programs that merchants download from the documentation, run against the service."""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from portal.developer_docs import downloads
from tests.journeys.merchant import Merchant
from tests.waiting import wait_for
from tests.webhooks.foreign import programs
from tests.webhooks.foreign.programs import Running

pytestmark = [pytest.mark.journey, pytest.mark.long]
QUICK_STARTS, RECEIVERS = (
    [path for path in downloads.FILES.values() if path.stem == stem] for stem in ("quickstart", "receiver")
)


def by_suffix(path: Path) -> str:
    return path.suffix[1:]


def variables(merchant: Merchant) -> dict[str, str]:
    known = merchant.credentials
    return programs.variables(merchant.base_url, known.client_id, known.client_secret)


def is_in(running: Running, order: str) -> bool:
    return order in running.paid()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.rule("docs.quick_start")
@pytest.mark.parametrize("program", QUICK_STARTS, ids=by_suffix)
def test_a_quick_start_pays_captures_and_refunds(program: Path, merchant: Merchant, tmp_path: Path) -> None:
    done = programs.run(program, tmp_path, variables(merchant))
    assert (done.returncode, done.stderr) == (0, "")
    created, held, captured, refunded = done.stdout.splitlines()
    word, url = created.split()
    assert (word, captured, refunded) == ("created", "captured", "refunded 2250")
    assert held.startswith("authorized until 20")
    read = merchant.read(url.partition("?id=")[2])
    assert (read["status"], read["refunded_amount"]) == ("refunded", 2250)


@pytest.mark.long
@pytest.mark.parametrize("program", QUICK_STARTS, ids=by_suffix)
def test_a_quick_start_says_why_it_failed(program: Path, merchant: Merchant, tmp_path: Path) -> None:
    done = programs.run(program, tmp_path, variables(merchant) | {"CHECKOUT_CLIENT_SECRET": "sk_wrong"})
    assert done.returncode != 0 and done.stdout == ""
    assert "invalid_client" in done.stderr


@pytest.mark.rule("docs.receivers")
@pytest.mark.parametrize("receiver", RECEIVERS, ids=by_suffix)
def test_a_receiver_captures_what_customers_pay(
    receiver: Path, merchant: Merchant, tmp_path: Path, stack: ExitStack
) -> None:
    port = programs.held_port(stack)
    secret = merchant.subscribe(f"http://127.0.0.1:{port}/webhooks")
    given = variables(merchant) | {"SIGNING_SECRETS": f"whsec_old {secret}"}
    running = programs.start(receiver, tmp_path, given, stack, port=port)
    for card in (
        "4242424242424242",
        # With this card, the bank takes three seconds to confirm the capture.
        "4000000000000077",
        # With this card, the bank's answer to the capture is lost (504). The service asks for the answer later.
        "4000000000006975",
    ):
        order = merchant.held(card)
        assert merchant.awaited(order, "captured", within=20)["status"] == "captured"
        wait_for(partial(is_in, running, order), within=15)
