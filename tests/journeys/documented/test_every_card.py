"""Every quick start and every receiver is run with every test card of the sandbox."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import requests

from payments.providers.sandbox.cards import CARDS
from tests.journeys.documented.test_quick_start import QUICK_STARTS, RECEIVERS, by_suffix, is_in, variables
from tests.journeys.merchant import Merchant
from tests.serving import Reply, serving
from tests.waiting import wait_for
from tests.webhooks.foreign import programs
from tests.webhooks.foreign.programs import Running

pytestmark = [pytest.mark.journey, pytest.mark.long]
DECLINED = {number for number, card in CARDS.items() if card.decline_reason}
IN_DOUBT = {number for number, card in CARDS.items() if card.loses_capture_answer or card.gets_no_capture}
UNCAPTURED = {number for number, card in CARDS.items() if card.gets_no_capture}
DISPUTED = {number for number, card in CARDS.items() if card.disputed_in}
# For each card that is not simply approved: the last line and the error in the output of a quick start.
ENDS = {
    **dict.fromkeys(DECLINED, ("created", "card_declined")),
    **dict.fromkeys(IN_DOUBT, ("authorized", "outcome_unknown")),
    **dict.fromkeys(DISPUTED, ("captured", "not_refundable")),
    "4000000000005126": ("captured 0", ""),
}


@contextmanager
def paying_with(card: str, merchant: Merchant) -> Iterator[str]:
    """Run a server that forwards each call to the service, and adds the card to calls of the helper `pay`.

    If the card leads to a dispute, the server forwards the refund only after the dispute is open.
    """

    def forward(asked: BaseHTTPRequestHandler, body: bytes) -> Reply:
        content = json.dumps({"card": card}).encode() if asked.path.endswith("/pay") else body
        if card in DISPUTED and asked.path.endswith("/refund"):
            order = asked.path.split("/")[-2]
            wait_for(lambda: "disputes" in merchant.read(order), within=20)
        names = ("Authorization", "Content-Type", "Idempotency-Key")
        headers = {name: asked.headers[name] for name in names if name in asked.headers}
        answer = requests.request(
            asked.command, merchant.base_url + asked.path, data=content, headers=headers, timeout=20
        )
        return Reply(answer.status_code, answer.content, {"Content-Type": "application/json"})

    with serving(forward) as address:
        yield address


def run_with(card: str, program: Path, merchant: Merchant, folder: Path) -> "CompletedProcess[str]":
    (folder / card).mkdir()
    with paying_with(card, merchant) as address:
        given = variables(merchant) | {"CHECKOUT_BASE_URL": address}
        return programs.run(program, folder / card, given)


@pytest.mark.rule("docs.every_card")
@pytest.mark.parametrize("program", QUICK_STARTS, ids=by_suffix)
def test_a_quick_start_ends_as_each_card_says(program: Path, merchant: Merchant, tmp_path: Path) -> None:
    # The first program is run separately, so that it is compiled before the others start.
    done = {card: run_with(card, program, merchant, tmp_path) for card in list(CARDS)[:1]}
    with ThreadPoolExecutor(4) as pool:
        run = partial(run_with, program=program, merchant=merchant, folder=tmp_path)
        done |= zip(list(CARDS)[1:], pool.map(run, list(CARDS)[1:]), strict=True)
    for card, ended in done.items():
        last, error = ENDS.get(card, ("refunded 2250", ""))
        assert ended.stdout.splitlines()[-1].startswith(last), (card, ended.stdout)
        assert (error in ended.stderr) if error else ended.stderr == "", (card, ended.stderr)
        assert (ended.returncode != 0) == bool(error), card


@pytest.mark.rule("docs.every_card")
@pytest.mark.parametrize("receiver", RECEIVERS, ids=by_suffix)
def test_a_receiver_fulfils_exactly_what_is_captured(
    receiver: Path, merchant: Merchant, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        port = programs.held_port(stack)
        secret = merchant.subscribe(f"http://127.0.0.1:{port}/webhooks")
        given = variables(merchant) | {"SIGNING_SECRETS": secret}
        running = programs.start(receiver, tmp_path, given, stack, port=port)
        orders = {card: merchant.held(card) for card in CARDS if card not in DECLINED | UNCAPTURED}
        for order in orders.values():
            assert merchant.awaited(order, "captured", within=40)["status"] == "captured"
            wait_for(partial(is_in, running, order), within=40)
        for card in UNCAPTURED:
            ask_again_about(merchant.held(card), merchant, running)
        # After all these cards, the receiver still captures an order.
        wait_for(partial(is_in, running, merchant.held()), within=40)


def ask_again_about(unresolved: str, merchant: Merchant, running: Running) -> None:
    """Fail unless the receiver retries an unresolved capture during the same delivery, and never fulfils the order."""
    begun = len(running.output())
    wait_for(lambda: "a delivery is answered 500" in running.output()[begun:], within=40)
    tried = running.output()[begun:].partition("a delivery is answered 500")[0]
    assert "504" in tried and "409" in tried.partition("504")[2], tried
    assert merchant.advanced(unresolved, "voided", within=90)["void_reason"] == "auth_expired"
    assert not is_in(running, unresolved)
