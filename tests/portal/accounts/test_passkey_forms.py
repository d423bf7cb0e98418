"""The service limits the size of a passkey credential, and refuses all invalid credentials in the same way."""

import json
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.test import Client
from fido2 import cbor
from fido2.utils import websafe_encode
from fido2.webauthn import AttestationObject, AuthenticatorData

from portal.accounts import passkey_forms
from portal.models import User
from tests.portal import people
from tests.portal.accounts import device as devices
from tests.portal.accounts.device import ADD, AGAIN, LOG_IN, THERE, Device

pytestmark = [pytest.mark.django_db, pytest.mark.rule("portal.passkeys")]
REFUSED = "This passkey did not work."
NESTED = websafe_encode(b"\x81" * 5_000)  # CBOR: deeply nested lists
NOT_JSON = [
    "",
    "{",
    "[]",
    "null",
    "1",
    '"x"',
    "[" * 8_000,
    '{"id":1,"id":2}',
    '{"id": "\\ud800"}',
    "\x00",
    "{}" * 9_000,
]
ODD: list[Any] = ["", "x", "é", "\x00", None, 1, [], {}, True, "AAAA", "A" * 4_000, NESTED]


def odd_ones(good: dict[str, Any]) -> list[dict[str, Any]]:
    """Return copies of a valid credential. In each copy, one part is missing or has an unusual value."""
    found = [{**good, name: odd} for name in good for odd in ODD]
    found += [{name: part for name, part in good.items() if name != missing} for missing in good]
    inner = good["response"]
    found += [
        {**good, "response": {**inner, name: odd}} for name in inner for odd in ODD if name != "userHandle"
    ]
    found += [{**good, "response": {**inner, "clientDataJSON": websafe_encode(text)}} for text in CLIENT_DATA]
    return found


CLIENT_DATA = [b"", b"{", b"[]", b'{"type": []}', b"[" * 5_000, b'{"type": "x", "challenge": 1, "origin": 1}']


ANY_OPTIONS = {"publicKey": {"challenge": "AAAA"}}


def is_enough(odd: dict[str, Any], good: dict[str, Any]) -> bool:
    """Return whether an unusual credential has all parts that a login needs."""
    same_id = odd.get("id", good["id"]) == good["id"]
    return same_id and all(odd.get(part) == good[part] for part in ("rawId", "response"))


class TestAdding:
    def options(self, client: Client) -> Any:
        return client.get(ADD, headers=THERE).context["js_data"]["creation_options"]

    def send(self, client: Client, credential: str) -> Any:
        return client.post(ADD, {"name": "Laptop", "credential": credential}, headers=THERE)

    def test_refuses_invalid_json(self, client: Client, lea: User) -> None:
        people.log_in(client)
        for text in NOT_JSON:
            assert REFUSED in self.send(client, text).content.decode(), text[:40]

    def test_refuses_every_malformed_part(self, client: Client, lea: User) -> None:
        people.log_in(client)
        for odd in odd_ones(Device().create(self.options(client))):
            answer = self.send(client, json.dumps(odd))
            if (
                answer.status_code == 302
            ):  # the service accepts it, because logins do not need the unusual part
                stored = Authenticator.objects.get(type="webauthn")
                assert stored.wrap().authenticator_data.credential_data
                Authenticator.objects.all().delete()
            else:
                assert REFUSED in answer.content.decode(), odd

    @pytest.mark.parametrize("key", [{}, {3: 0}, {3: -65535}, {1: 2, 3: -7, -1: 1}, {1: 2, 3: "x"}, [], "x"])
    def test_refuses_a_key_that_it_cannot_verify(self, client: Client, lea: User, key: Any) -> None:
        people.log_in(client)
        device = Device()
        good = device.create(self.options(client))
        head = devices.HOST_HASH + bytes([devices.PERSON_IS_THERE | devices.FLAG.AT]) + bytes(4)
        data = head + bytes(16) + (32).to_bytes(2, "big") + device.credential_id + cbor.encode(key)
        whole = cbor.encode({"fmt": "none", "authData": data, "attStmt": {}})
        good["response"]["attestationObject"] = websafe_encode(whole)
        answer = self.send(client, json.dumps(good))
        assert REFUSED in answer.content.decode()
        assert not Authenticator.objects.exists()

    def test_refuses_an_answer_without_a_key(self, client: Client, lea: User) -> None:
        people.log_in(client)
        good = Device().create(self.options(client))
        data = AuthenticatorData.create(devices.HOST_HASH, devices.PERSON_IS_THERE, 0)
        good["response"]["attestationObject"] = websafe_encode(AttestationObject.create("none", data, {}))
        assert REFUSED in self.send(client, json.dumps(good)).content.decode()

    def test_stores_only_what_logins_need(self, client: Client, lea: User) -> None:
        people.log_in(client)
        good = Device().create(self.options(client)) | {"clientExtensionResults": {"note": "\x00" * 500}}
        assert self.send(client, json.dumps(good)).status_code == 302
        stored = Authenticator.objects.get(type="webauthn").data["credential"]
        assert set(stored) == {"id", "rawId", "type", "response"}
        assert set(stored["response"]) == {"clientDataJSON", "attestationObject"}


class TestProving:
    @pytest.fixture
    def device(self, lea: User) -> Device:
        return devices.give(lea)

    def test_refuses_every_malformed_part_of_a_login(self, device: Device) -> None:
        for number, _ in enumerate(odd_ones(device.get(ANY_OPTIONS))):
            client = Client(REMOTE_ADDR=f"10.1.0.{number}")
            good = device.get(devices.challenge(client).json()["request_options"])
            odd = odd_ones(good)[number]
            answer = client.post(LOG_IN, {"credential": json.dumps(odd)}, headers=THERE)
            assert answer["Location"] == ("/portal" if is_enough(odd, good) else "/accounts/login/"), odd

    @pytest.mark.parametrize("text", NOT_JSON, ids=range(len(NOT_JSON)))
    def test_refuses_invalid_json(self, device: Device, text: str) -> None:
        client = Client()
        assert client.post(LOG_IN, {"credential": text}, headers=THERE)["Location"] == "/accounts/login/"
        device.log_in(client)
        page = client.post(AGAIN, {"credential": text}, headers=THERE)
        assert REFUSED in page.content.decode()

    @pytest.mark.parametrize("handle", ODD, ids=range(len(ODD)))
    def test_refuses_a_login_of_a_malformed_user_handle(
        self, client: Client, device: Device, handle: Any
    ) -> None:
        device.user_handle = handle
        assert device.log_in(client)["Location"] == "/accounts/login/"


def test_the_size_limit_is_far_above_a_real_credential(client: Client, lea: User) -> None:
    people.log_in(client)
    options = client.get(ADD, headers=THERE).context["js_data"]["creation_options"]
    assert len(json.dumps(Device().create(options))) * 10 < passkey_forms.LONGEST
