"""Simulates a device with one passkey. It answers as a browser does, and can falsify each part of the answer."""

import hashlib
import json
import os
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from django.test import Client
from fido2.cose import ES256
from fido2.utils import websafe_encode
from fido2.webauthn import AttestationObject, AttestedCredentialData, AuthenticatorData, CollectedClientData

from portal.models import User
from tests.portal import people

HOST = "localhost"
THERE = {"Host": HOST}  # passkeys only work on this host
HOST_HASH = hashlib.sha256(HOST.encode()).digest()
ORIGIN = "http://localhost:8000"
ADD = "/accounts/2fa/passkeys/add/"
LOG_IN = "/accounts/login/passkey/"
AGAIN = "/accounts/2fa/passkeys/reauthenticate/"
FLAG = AuthenticatorData.FLAG
PERSON_IS_THERE = FLAG.UP | FLAG.UV


class Device:
    """A device with one passkey. Its credentials claim `origin`, `host` and `flags`."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.credential_id = os.urandom(32)
        self.origin, self.host, self.flags = ORIGIN, HOST, PERSON_IS_THERE
        self.user_handle = ""

    def create(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the credential that a browser sends after navigator.credentials.create."""
        asked = options["publicKey"]
        self.user_handle = asked["user"]["id"]
        point = self.key.public_key().public_numbers()
        public = ES256({1: 2, 3: -7, -1: 1, -2: point.x.to_bytes(32, "big"), -3: point.y.to_bytes(32, "big")})
        made = AttestedCredentialData.create(bytes(16), self.credential_id, public)
        data = AuthenticatorData.create(self._host_hash(), self.flags | FLAG.AT, 0, made)
        statement = AttestationObject.create("none", data, {})
        client_data = CollectedClientData.create("webauthn.create", asked["challenge"], self.origin)
        return self._answer(clientDataJSON=client_data, attestationObject=statement)

    def get(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the credential that a browser sends after navigator.credentials.get."""
        client_data = CollectedClientData.create(
            "webauthn.get", options["publicKey"]["challenge"], self.origin
        )
        data = AuthenticatorData.create(self._host_hash(), self.flags, 1)
        signature = self.key.sign(data + client_data.hash, ec.ECDSA(hashes.SHA256()))
        answer = self._answer(clientDataJSON=client_data, authenticatorData=data, signature=signature)
        answer["response"]["userHandle"] = self.user_handle
        return answer

    def add(self, client: Client, name: str = "Laptop") -> Any:
        """Add the passkey in the browser of a person who is logged in, and return the response."""
        options = client.get(ADD, headers=THERE).context["js_data"]["creation_options"]
        return client.post(ADD, {"name": name, "credential": json.dumps(self.create(options))}, headers=THERE)

    def log_in(self, client: Client, **more: str) -> Any:
        """Log in with only this passkey, and return the response."""
        options = challenge(client).json()["request_options"]
        return client.post(LOG_IN, {"credential": json.dumps(self.get(options)), **more}, headers=THERE)

    def prove(self, client: Client, page: str) -> Any:
        """Send the passkey to a page that asks for it, and return the response."""
        options = client.get(page, headers=THERE).context["js_data"]["request_options"]
        return client.post(page, {"credential": json.dumps(self.get(options))}, headers=THERE)

    def _host_hash(self) -> bytes:
        return hashlib.sha256(self.host.encode()).digest()

    def _answer(self, **parts: bytes) -> dict[str, Any]:
        own = websafe_encode(self.credential_id)
        response: dict[str, Any] = {name: websafe_encode(part) for name, part in parts.items()}
        return {"id": own, "rawId": own, "type": "public-key", "response": response}


def challenge(client: Client) -> Any:
    """Request the challenge for a login, as the login page's script does."""
    return client.get(LOG_IN, headers={**THERE, "Accept": "application/json"})


def give(user: User) -> Device:
    """Add a passkey and recovery codes for a person, and return the device."""
    client, device = Client(), Device()
    client.force_login(user)
    people.prove(client, user)
    device.add(client)
    return device
