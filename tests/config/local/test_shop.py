import hashlib
import hmac
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode
from uuid import uuid4

import pytest

from tests.config.local import living
from tests.config.local.shop_world import CHECKOUTS, Customer, authorized, open_shop, serving
from webhooks import signing


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Customer]:
    with serving() as service, open_shop(service, tmp_path_factory.mktemp("shop")) as customer:
        yield customer


@pytest.fixture
def customer(opened: Customer) -> Customer:
    opened.service.calls.clear()
    opened.service.refusals.clear()
    opened.service.status = "created"
    return opened


def signature_of(secret: str, body: bytes, at: str) -> str:
    """Return a webhook signature. Unlike our signer, it accepts any value for the time `at`."""
    digest = hmac.new(secret.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


class TestSignature:
    BODY = b'{"id": "the marked body"}'

    @pytest.mark.parametrize(
        "reason", ["malformed_header", "no_matching_signature", "timestamp_out_of_tolerance", "invalid_json"]
    )
    def test_a_webhook_without_proof_is_answered_400_with_the_reason(
        self, customer: Customer, reason: str
    ) -> None:
        secret, now = customer.service.secret, int(time.time())
        body = self.BODY[:-1] if reason == "invalid_json" else self.BODY
        headers = {
            "malformed_header": "v1=1",
            "no_matching_signature": signature_of(signing.new_secret(), body, str(now)),
            "timestamp_out_of_tolerance": signature_of(secret, body, str(now - 301)),
            "invalid_json": signature_of(secret, body, str(now)),
        }

        assert customer.deliver(body, headers[reason]) == (400, reason)

        assert customer.service.calls == []
        assert "the marked body" not in customer.dumped_database() + customer.log()
        assert f"webhook refused: {reason}\n" in customer.log()


class TestWebhook:
    def test_a_held_payment_is_captured_and_its_order_fulfilled_once(self, customer: Customer) -> None:
        event = authorized(customer.buy()["merchant_order_id"])

        assert customer.deliver(event) == (200, "done")
        assert customer.deliver(event) == (200, "known already")

        assert customer.service.bodies_sent_to("/capture") == [{}]

    def test_a_capture_that_is_too_late_is_not_repeated(self, customer: Customer) -> None:
        event = authorized(customer.buy()["merchant_order_id"])
        customer.service.refusals["/capture"] = [(409, "not_capturable")]

        assert customer.deliver(event) == (200, "done")
        assert customer.deliver(event) == (200, "known already")

        assert len(customer.service.bodies_sent_to("/capture")) == 1

    @pytest.mark.parametrize("refusal", [(409, "operation_in_progress"), (504, "outcome_unknown")])
    def test_a_capture_that_is_unresolved_is_tried_again_at_once_and_when_the_event_comes_again(
        self, customer: Customer, refusal: tuple[int, str]
    ) -> None:
        event = authorized(customer.buy()["merchant_order_id"])
        customer.service.refusals["/capture"] = [refusal] * 3

        assert customer.deliver(event) == (500, refusal[1])
        tried = len(customer.service.bodies_sent_to("/capture"))
        assert tried in (2, 3), "a slow machine has time for only one repetition"
        assert customer.deliver(event) == (200, "done")

        assert len(customer.service.bodies_sent_to("/capture")) == 4

    def test_a_hold_for_an_unknown_order_is_cancelled(self, customer: Customer) -> None:
        assert customer.deliver(authorized("stranger")) == (200, "done")
        assert customer.service.bodies_sent_to("/cancel") == [{}]
        assert customer.service.bodies_sent_to("/capture") == []

    def test_an_order_of_the_portals_checklist_is_captured(self, customer: Customer) -> None:
        assert customer.deliver(authorized("trial-twice-0a1b2c3d")) == (200, "done")
        assert (
            customer.service.bodies_sent_to("/capture") == [{}]
            and customer.service.bodies_sent_to("/cancel") == []
        )

    def test_other_events_cause_no_call(self, customer: Customer) -> None:
        event = {"id": str(uuid4()), "type": "webhook.test", "data": {}}
        assert customer.deliver(json.dumps(event).encode()) == (200, "done")
        assert customer.service.calls == []


class TestOrderPage:
    @pytest.mark.parametrize("status", ["authorized", "captured"])
    def test_captures_an_order_whose_event_or_response_was_lost(
        self, customer: Customer, status: str
    ) -> None:
        page = f"/orders/{customer.buy()['merchant_order_id']}"
        assert "Tickets issued" not in customer.send("GET", page)[2]

        customer.service.status = status

        assert "Tickets issued" in customer.send("GET", page)[2]
        assert len(customer.service.bodies_sent_to("/capture")) == 1

    def test_refreshes_while_the_service_does_not_answer(self, customer: Customer) -> None:
        order_id = customer.buy()["merchant_order_id"]
        customer.service.refusals[""] = [(503, "service_unavailable")]
        status, _, page = customer.send("GET", f"/orders/{order_id}")
        assert (status, 'http-equiv="refresh"' in page) == (502, True)

    def test_of_an_unknown_order_is_a_404(self, customer: Customer) -> None:
        assert customer.send("GET", f"/orders/{uuid4()}")[0] == 404


def test_the_shop_is_ready_once_it_is_subscribed(tmp_path: Path) -> None:
    """The shop reports that it is ready only after it has subscribed to webhooks.

    `make run` waits for this report before it prints its addresses.
    """
    with serving() as service:
        service.refusals["/subscription"] = [(503, "service_unavailable")]
        with open_shop(service, tmp_path, until="not subscribed to webhooks yet") as customer:
            assert customer.send("GET", "/ready")[0] == 503
            assert living.within(10, lambda: customer.send("GET", "/ready")[0] == 200)
            customer.buy()


class TestBuying:
    def test_requests_the_sum_of_tickets_and_fees(self, customer: Customer) -> None:
        request = customer.buy(quantity=3)
        assert request["total_amount"] == 3 * 2250 + 3 * 175
        assert [item["category"] for item in request["items"]] == ["ticket", "fee"]
        assert request["items"][0]["custom_data"].keys() == {"event_id", "event_start", "time_zone"}

    def test_a_create_without_an_answer_is_repeated_under_the_same_key(self, customer: Customer) -> None:
        customer.service.refusals[CHECKOUTS] = [(503, "service_unavailable")]
        customer.buy()
        creates = [(body, key) for path, body, key in customer.service.calls if path == CHECKOUTS]
        assert len(creates) == 2
        assert creates[0] == creates[1]
        assert creates[0][1] == creates[0][0]["merchant_order_id"]

    def test_one_token_serves_many_calls(self, customer: Customer) -> None:
        customer.buy()
        customer.buy()
        assert customer.service.bodies_sent_to("/oauth/token") == []

    def test_a_token_that_is_refused_is_replaced(self, customer: Customer) -> None:
        customer.service.refusals[CHECKOUTS] = [(401, "invalid_token")]
        customer.buy()
        assert len(customer.service.bodies_sent_to("/oauth/token")) == 1


class TestRefunding:
    @pytest.fixture
    def page(self, customer: Customer) -> str:
        """Create a captured order; return the path of its page in the shop."""
        order_id = customer.buy()["merchant_order_id"]
        customer.deliver(authorized(order_id))
        customer.service.status = "captured"
        return f"/orders/{order_id}"

    def test_two_clicks_use_the_same_refund_reference(self, customer: Customer, page: str) -> None:
        found = re.search(r'name="form_token" value="([^"]+)"', customer.send("GET", page)[2])
        assert found
        form = urlencode({"form_token": found[1]}).encode()

        assert customer.send("POST", f"{page}/refund", form)[:2] == (303, page)
        assert customer.send("POST", f"{page}/refund", form)[:2] == (303, page)

        first, second = customer.service.bodies_sent_to("/refund")
        assert first == second
        assert first["merchant_refund_ref"]

    def test_refuses_a_form_from_another_site(self, customer: Customer, page: str) -> None:
        assert customer.send("POST", f"{page}/refund", b"form_token=guessed")[0] == 403
        assert customer.service.bodies_sent_to("/refund") == []


class TestStart:
    def test_a_lost_secret_is_replaced_and_the_old_one_revoked(self, tmp_path: Path) -> None:
        with serving() as service:
            service.is_subscribed = True
            with open_shop(service, tmp_path) as customer:
                assert service.bodies_sent_to("/rotate") == [{"revoke_previous": True}]
                assert customer.deliver(authorized("stranger"))[0] == 200

    def test_logs_no_secret(self, customer: Customer) -> None:
        customer.deliver(authorized(customer.buy()["merchant_order_id"]))
        customer.deliver(b"{}", "t=1,v1=1")
        for secret in (customer.service.secret, "the client secret", "the token"):
            assert secret not in customer.log()
