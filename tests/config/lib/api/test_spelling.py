"""The service suggests the name, path or address that a caller probably meant."""

from uuid import uuid4

import pytest

from config.lib.api import spelling
from tests.conftest import Api
from tests.refusals import refused

NAMES = ["total_amount", "customer", "items", "sort", "amount", "checkout.authorized", "checkout.voided", "*"]
ROUTES = [["checkouts"], ["checkouts", "<id>", "capture"], ["checkouts", "<id>", "cancel"]]


@pytest.mark.rule("api.query")
@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("amout", "amount"),
        ("amuont", "amount"),
        ("Amount", "amount"),
        ("custmer", "customer"),
        ("customers", "customer"),
        ("itmes", "items"),
        ("srot", "sort"),
        ("totalAmuont", "total_amount"),
        ("checkout.captured", ""),
        ("colour", ""),
        ("order", ""),
        ("id", ""),
        ("", ""),
        ("customer" + "r" * 60, ""),
    ],
)
def test_a_name_is_similar_to_the_known_name_that_is_probably_meant(sent: str, meant: str) -> None:
    assert spelling.similar_name(sent, NAMES) == meant


@pytest.mark.rule("api.unknown_fields")
def test_only_names_that_were_not_sent_are_probably_meant() -> None:
    assert spelling.other_spellings(["amout", "customer", "custmer"], NAMES) == {"amount": "amout"}
    assert spelling.other_spellings(["x"] * 50 + ["totalAmount"], NAMES) == {"total_amount": "totalAmount"}


@pytest.mark.rule("api.unknown_fields")
def test_of_thousands_of_names_only_ten_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def compare(name: str, _known: object, **_: object) -> list[str]:
        compared.append(name)
        return []

    monkeypatch.setattr(spelling, "get_close_matches", compare)
    spelling.other_spellings([f"total_amount_{number}" for number in range(5_000)], NAMES)
    assert len(compared) == 10
    spelling.similar_name("x" * 65, NAMES)
    assert len(compared) == 10, "a long name is not compared"


@pytest.mark.rule("api.not_found")
@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        (["checkout"], ["checkouts"]),
        (["checkouts", "x", "captures"], ["checkouts", "x", "capture"]),
        (["checkout", "x", "cancell"], ["checkouts", "x", "cancel"]),
        (["checkouts", "x"], []),
        (["checkouts", "x", "void"], []),
        ([""], []),
    ],
)
def test_a_path_is_similar_to_the_known_path_that_is_probably_meant(
    sent: list[str], meant: list[str]
) -> None:
    assert list(spelling.similar_path(sent, ROUTES)) == meant


@pytest.mark.rule("api.not_found")
@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/api/merchant/v2/checkouts", "/api/merchant/v1/checkouts"),
        ("/api/merchant/v1/checkouts/", "/api/merchant/v1/checkouts"),
        ("/api/merchant/v1/checkouts/{uuid}/capture/", "/api/merchant/v1/checkouts/{uuid}/capture"),
        ("/api/v1/checkouts", "/api/merchant/v1/checkouts"),
        ("/api/webhooks/deliveries/", "/api/merchant/v1/webhooks/deliveries"),
        ("/api/oauth/token", "/oauth/token"),
        ("/oauth/token/", "/oauth/token"),
        ("/checkouts/", "/api/merchant/v1/checkouts"),
        ("/checkouts/{uuid}", "/api/merchant/v1/checkouts/{uuid}"),
        ("/v1/checkouts", "/api/merchant/v1/checkouts"),
        ("/v2/checkouts", "/api/merchant/v1/checkouts"),
        ("/merchant/v1/events", "/api/merchant/v1/events"),
        ("/api/merchant/checkouts", "/api/merchant/v1/checkouts"),
        ("/api/v1/oauth/token", "/oauth/token"),
        ("/api/token", "/oauth/token"),
        ("/token", "/oauth/token"),
        ("/oauth2/token", "/oauth/token"),
        ("/api/sandbox/checkouts/{uuid}/pay", "/api/sandbox/v1/checkouts/{uuid}/pay"),
        ("/sandbox/v1/checkouts/{uuid}/pay", "/api/sandbox/v1/checkouts/{uuid}/pay"),
        ("/api/v1/checkout", "/api/merchant/v1/checkouts"),
        ("/api/v1/checkouts/{uuid}/captures", "/api/merchant/v1/checkouts/{uuid}/capture"),
        ("/api/merchant/v1/checkout/{uuid}/refnd/", "/api/merchant/v1/checkouts/{uuid}/refund"),
        ("/api/merchant/v1/Checkouts", "/api/merchant/v1/checkouts"),
        ("/api/merchant/v1//checkouts", "/api/merchant/v1/checkouts"),
        ("/api/merchant/v1/webhooks/subscriptions", "/api/merchant/v1/webhooks/subscription"),
        ("/api/merchant/v1/webhook/secrets/rotate", "/api/merchant/v1/webhooks/secret/rotate"),
        ("/api/sandbox/v1/checkouts/{uuid}/payshare", "/api/sandbox/v1/checkouts/{uuid}/pay-share"),
        ("/api/merchant/v1/checkouts/{uuid}/pay", "/api/sandbox/v1/checkouts/{uuid}/pay"),
        ("/checkout/{uuid}", "/api/merchant/v1/checkouts/{uuid}"),
        ("/oauth/tokens", "/oauth/token"),
        ("/api/shema", "/api/schema"),
    ],
)
def test_an_address_that_is_nearly_right_gets_the_right_one(api: Api, path: str, meant: str) -> None:
    uuid = uuid4()
    answer = api.client.get(path.format(uuid=uuid))
    message = refused(answer, 404, "not_found")["message"]
    assert message == f"No such address. Did you mean {meant.format(uuid=uuid)}?"


@pytest.mark.rule("api.not_found")
@pytest.mark.parametrize("path", ["/v2", "/v1/", "/api", "/api/v2/", "/api/merchant", "/api/merchant/v2"])
def test_an_address_that_is_only_a_beginning_gets_the_right_beginning(api: Api, path: str) -> None:
    message = refused(api.client.get(path), 404, "not_found")["message"]
    assert message == (
        "No such address. The calls of the API begin with /api/merchant/v1/, as in /api/merchant/v1/checkouts."
    )


@pytest.mark.rule("api.not_found")
@pytest.mark.parametrize(
    "path",
    [
        "/api/merchant/v1/orders",
        "/api/nope/",
        "/api/merchant/v1/checkouts/x/void",
        "/api/docs/checkout.md",
        "/api/merchant/v1/checkouts/" + "x" * 200 + "/",
    ],
)
def test_an_address_that_is_like_no_other_gets_no_other(api: Api, path: str) -> None:
    message = api.client.get(path).json()["error"]["message"]
    assert message == "No such address. Check the path."
