"""The demo shop's client for the merchant API. It gets access tokens, and raises errors with the API's error code."""

import contextlib
import json
import time
import urllib.request
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError

DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy: the service is local


class CallFailed(Exception):
    """Raised if a call failed. The text is the service's error code, or no_answer."""


class Api:
    """The service's API for one client. The client reuses its access token until shortly before the token expires."""

    def __init__(self, base_url: str, client_id: str, client_secret: str) -> None:
        self.client_id, self._base_url, self._client_secret = client_id, base_url, client_secret
        self._token, self._renew_at = "", 0.0

    def call(self, method: str, path: str, body: object = None, *, key: str = "") -> Any:
        """Call the API; return the `data` of the response, or None for a 204. Raises CallFailed.

        `key` is the Idempotency-Key.
        """
        if time.monotonic() >= self._renew_at:
            self._renew_token()
        headers = {"Authorization": f"Bearer {self._token}"} | ({"Idempotency-Key": key} if key else {})
        try:
            return self._send(method, f"/api/merchant/v1{path}", body, headers, seconds=10).get("data")
        except CallFailed as failure:
            if str(failure) == "invalid_token":
                self._renew_at = 0.0
            raise

    def _renew_token(self) -> None:
        # The token request takes at most 3 s, and a capture at most 10 s. A webhook must be answered within 15
        # s.
        client = {"client_id": self.client_id, "client_secret": self._client_secret}
        body = {"grant_type": "client_credentials", **client}
        answer = self._send("POST", "/oauth/token", body, {}, seconds=3)
        self._token, self._renew_at = answer["access_token"], time.monotonic() + answer["expires_in"] * 0.9

    def _send(self, method: str, path: str, body: object, headers: dict[str, str], *, seconds: int) -> Any:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} | headers
        request = urllib.request.Request(self._base_url + path, content, headers, method=method)
        try:
            with DIRECTLY.open(request, timeout=seconds) as answer:
                return json.loads(answer.read() or "{}")
        except HTTPError as refused:
            code = f"http_{refused.code}"
            with contextlib.suppress(ValueError, LookupError, TypeError):
                code = json.load(refused)["error"]["code"]
            raise CallFailed(code) from None
        except (OSError, HTTPException, ValueError):
            raise CallFailed("no_answer") from None
