#!/usr/bin/env python3
"""An MCP (Model Context Protocol) server over stdio that lets a model test an integration in the sandbox.

It needs only Python 3.9 or later. A client, such as an editor, starts it as `python3 mcp.py` with the variables
CHECKOUT_BASE_URL, CHECKOUT_CLIENT_ID and CHECKOUT_CLIENT_SECRET. It refuses to run against
production. Rules mcp.*
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import json
import os
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from typing import Any, NamedTuple

TEST_ENVIRONMENTS = ("local", "sandbox")
NEEDED = ("CHECKOUT_BASE_URL", "CHECKOUT_CLIENT_ID", "CHECKOUT_CLIENT_SECRET")
API_SECONDS, MAX_READ = 30.0, 16 * 1024 * 1024
# Clients with one of the older versions start with `initialize`. Clients with STATELESS name their version in
# each request.
STATELESS = "2026-07-28"
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", STATELESS)
VERSION_FIELD = "io.modelcontextprotocol/protocolVersion"
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, OTHER_VERSION = (
    -32700,
    -32600,
    -32601,
    -32602,
    -32022,
)
SERVER = {"name": "merchant-checkout-sandbox", "title": "Merchant Checkout sandbox", "version": "1.0.0"}
INSTRUCTIONS = (
    "Tests a shop's integration with the Merchant Checkout Service in its sandbox. Create a checkout, pay it as "
    "the customer, and see with list_deliveries and list_events what the shop's server was sent and answered. "
    "The shop's own server must capture within two minutes. Amounts are integers in minor units."
)
HTTP_ERRORS = (OSError, http.client.HTTPException)


class Stop(Exception):
    """Raised if the server cannot work with these settings. The message names the remedy."""


class ApiError(Exception):
    """Raised if the API refused a call or did not answer. The message is for the model."""


class InvalidCall(Exception):
    """Raised for a JSON-RPC request that the server cannot answer."""

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}


# The tools


class Tool(NamedTuple):
    """A tool, and the API call that it makes. `fields` are the JSON Schemas of its arguments."""

    description: str
    method: str
    path: str
    fields: dict[str, dict[str, Any]]
    changes_state: bool = True

    @property
    def path_fields(self) -> list[str]:
        """Return the arguments in the path. All of them are required."""
        return re.findall(r"{(\w+)}", self.path)


def text_field(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


MERCHANT, SANDBOX = "/api/merchant/v1", "/api/sandbox/v1"
CHECKOUT = {"checkout_uuid": text_field("The checkout's id, from create_checkout.")}
PAGE: dict[str, dict[str, Any]] = {
    "limit": {
        "type": "integer",
        "minimum": 1,
        "maximum": 200,
        "description": "Entries a page; 50 by default.",
    },
    "cursor": text_field("`next_cursor` of the previous page."),
}
TOOLS = {
    "create_checkout": Tool(
        "Create a checkout, as the shop's server does. Takes the fields of the API's request. Without any, it makes "
        "an order of one ticket for 22.50 GBP.",
        "POST",
        f"{MERCHANT}/checkouts",
        {
            "merchant_order_id": text_field("The shop's own reference. By default a new one."),
            "total_amount": {
                "type": "integer",
                "minimum": 1,
                "description": "In minor units: 2250 is 22.50.",
            },
            "currency": text_field("ISO 4217 code in upper case; GBP by default."),
            "items": {
                "type": "array",
                "items": {"type": "object"},
                "description": "Lines with item_ref, name, quantity, unit_price and currency, which add up to "
                "total_amount. By default one ticket.",
            },
            "return_url": text_field("An absolute https address."),
            "cancel_url": text_field("An absolute https address."),
            "metadata": {"type": "object", "description": "Up to 50 keys with strings, which reads return."},
        },
    ),
    "pay_checkout": Tool(
        "Pay a checkout as the customer, with a test card. The funds are then held for two minutes, and the "
        "service sends checkout.authorized to the shop's server. A declined card is an error card_declined.",
        "POST",
        f"{SANDBOX}/checkouts/{{checkout_uuid}}/pay",
        {
            **CHECKOUT,
            "card": text_field(
                "A test card; 4242424242424242 by default. The docs' page test-cards.md lists them."
            ),
            "phone": text_field("The customer's mobile number, such as +447700900123."),
            "challenge": {
                "type": "string",
                "enum": ["pass", "fail"],
                "description": "The result of 3-D Secure.",
            },
            "name": text_field("The customer's name."),
            "shares": {
                "type": "array",
                "items": {"type": "object"},
                "description": "Friends who pay a part later, each with name and amount.",
            },
        },
    ),
    "advance_clock": Tool(
        "Let time pass for one checkout: 121 seconds after the payment, an uncaptured hold lapses; 3601 seconds after "
        "its creation, an unpaid checkout expires. Deliveries that become due are sent again.",
        "POST",
        f"{SANDBOX}/checkouts/{{checkout_uuid}}/advance",
        {
            **CHECKOUT,
            "seconds": {"type": "integer", "minimum": 1, "maximum": 864_000, "description": "How long."},
        },
    ),
    "read_checkout": Tool(
        "Read a checkout: its status (created, authorized, captured, voided, refunding, refunded or expired), "
        "amounts, times, refunds and disputes.",
        "GET",
        f"{MERCHANT}/checkouts/{{checkout_uuid}}",
        CHECKOUT,
        changes_state=False,
    ),
    "list_deliveries": Tool(
        "List the attempts to deliver events to the shop's server, newest first: when, what it answered, and when "
        "the next attempt is.",
        "GET",
        f"{MERCHANT}/webhooks/deliveries",
        {
            "event_id": text_field("Only the attempts of this event."),
            "event_type": text_field("Such as checkout.authorized."),
            "status": {"type": "string", "enum": ["delivered", "failed"]},
            **PAGE,
        },
        changes_state=False,
    ),
    "list_events": Tool(
        "List events in the order in which they were written, each with the status of its delivery. An event is "
        "listed about a second after it happened. If a list is empty, ask again.",
        "GET",
        f"{MERCHANT}/events",
        {
            "checkout_uuid": text_field("Only the events of this checkout."),
            "type": text_field("Such as checkout.authorized."),
            "created_after": text_field("A timestamp with an offset. By default 24 hours ago."),
            **PAGE,
        },
        changes_state=False,
    ),
}


def describe_tools() -> list[dict[str, Any]]:
    """Return the tools in the protocol's format."""
    return [
        {
            "name": name,
            "description": tool.description,
            "inputSchema": {"type": "object", "properties": tool.fields, "required": tool.path_fields},
            "annotations": {"readOnlyHint": not tool.changes_state, "openWorldHint": False},
        }
        for name, tool in TOOLS.items()
    ]


def complete_order(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the body for a new checkout: the given fields, and defaults for the other required fields."""
    currency = fields.get("currency", "GBP")
    amount = fields.get("total_amount", 2250)
    item = {"item_ref": "ticket", "name": "Ticket", "quantity": 1, "unit_price": amount, "currency": currency}
    return {
        "merchant_order_id": f"mcp-{uuid.uuid4()}",
        "total_amount": amount,
        "currency": currency,
        "items": [item],
        "return_url": "https://shop.example/thanks",
        "cancel_url": "https://shop.example/basket",
        **fields,
    }


# The API


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A handler that does not follow redirects, so that secrets and tokens reach only the intended address."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def is_loopback(host: str | None) -> bool:
    """Return whether a host name or address is this machine."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host or "").is_loopback
    return host == "localhost"


def opener_for(base_url: str) -> urllib.request.OpenerDirector | None:
    """Return an opener for the service's address, or None if the secret must not be sent there."""
    with contextlib.suppress(ValueError):
        parts = urllib.parse.urlsplit(base_url)
        is_here = is_loopback(parts.hostname)
        is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_here)
        if is_safe and parts.hostname and "@" not in parts.netloc:
            proxies = [urllib.request.ProxyHandler({})] if is_here else []
            return urllib.request.build_opener(NoRedirects(), *proxies)
    return None


class Answer(NamedTuple):
    """The JSON of an answer, and its two headers about ignored request fields. A missing header is ""."""

    content: Any
    ignored: str
    suggested: str


class Api:
    """A client for the sandbox's API. Before it sends the secret, it checks that the service is a sandbox."""

    def __init__(self, base_url: str, client_id: str, client_secret: str) -> None:
        """Keep the credentials. Raises Stop if the address would receive them unencrypted."""
        opener = opener_for(base_url)
        if opener is None:
            words = "the sandbox's https address, or the http address of `make run`"
            raise Stop(f"CHECKOUT_BASE_URL must be {words}.")
        self.base_url, self._opener = base_url.rstrip("/"), opener
        self._grant = {
            "grant_type": "client_credentials",
            "client_id": client_id,
            "client_secret": client_secret,
        }
        self._token, self._renew_at, self._is_checked = "", 0.0, False

    def require_sandbox(self) -> None:
        """Raise Stop unless the service says that it is a sandbox, and ApiError if it does not answer."""
        if self._is_checked:
            return
        try:
            environment = str(self._request("GET", "/api/schema").content["info"]["x-environment"])
        except (urllib.error.HTTPError, KeyError, TypeError):
            raise Stop(
                f"{self.base_url} is not the API of this service. Look at CHECKOUT_BASE_URL."
            ) from None
        if environment not in TEST_ENVIRONMENTS:
            raise Stop(
                f"{self.base_url} is {environment}. These tools are for the sandbox, and for `make run`."
            )
        self._is_checked = True

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        """Return the answer to a call. Raises Stop outside the sandbox, and ApiError for a refusal."""
        self.require_sandbox()
        for is_last in (False, True):
            try:
                return self._request(method, path, body, Authorization=f"Bearer {self._fresh_token()}")
            except urllib.error.HTTPError as refused:
                if refused.code != 401 or is_last:
                    raise ApiError(error_text(refused)) from None
                self._token = ""
        raise AssertionError("unreachable")

    def _fresh_token(self) -> str:
        if not self._token or time.monotonic() > self._renew_at:
            try:
                granted = self._request("POST", "/oauth/token", self._grant).content
            except urllib.error.HTTPError as refused:
                raise ApiError(f"No token for this client. {error_text(refused)}") from None
            self._token = granted["access_token"]
            self._renew_at = time.monotonic() + granted["expires_in"] - 60
        return self._token

    def _request(
        self, method: str, path: str, body: dict[str, Any] | None = None, **more_headers: str
    ) -> Answer:
        """Return the answer to a request. Raises HTTPError for a refusal, and ApiError if there is no answer."""
        sent = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "mcp.py", **more_headers}
        # `__init__` has checked that the address is http or https.
        request = urllib.request.Request(self.base_url + path, sent, headers, method=method)  # noqa: S310
        try:
            with self._opener.open(request, timeout=API_SECONDS) as answer:
                content = json.loads(answer.read(MAX_READ) or b"{}")
                ignored, suggested = (
                    answer.headers.get(f"X-{name}-Fields", "") for name in ("Ignored", "Suggested")
                )
                return Answer(content, ignored, suggested)
        except urllib.error.HTTPError:
            raise
        except (*HTTP_ERRORS, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise ApiError(f"{self.base_url} does not answer: {reason}. Try again later.") from None


def error_text(refused: urllib.error.HTTPError) -> str:
    """Return the text of an error response: its status and its body, which says what to do."""
    with contextlib.suppress(*HTTP_ERRORS):
        return f"HTTP {refused.code}: {refused.read(MAX_READ).decode(errors='replace')}"
    return f"HTTP {refused.code}"


# The protocol


def run_tool(api: Api, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a tool. A refusal is also returned as a result, so that the model can read it."""
    tool, fields = TOOLS[name], dict(arguments)
    missing = [field for field in tool.path_fields if not isinstance(fields.get(field), str)]
    try:
        if missing:
            raise ApiError(f"{name} needs {missing[0]}, which is a string.")
        path = tool.path.format(
            **{key: urllib.parse.quote(fields.pop(key), safe="") for key in tool.path_fields}
        )
        if tool.method == "POST":
            answer = api.call("POST", path, complete_order(fields) if name == "create_checkout" else fields)
        else:
            answer = api.call("GET", path + (f"?{urllib.parse.urlencode(fields)}" if fields else ""))
    except (ApiError, Stop) as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}
    shown = answer.content.get("data", answer.content)
    texts = [json.dumps(shown, ensure_ascii=False, indent=2)]
    texts += [f"The service ignored these fields: {answer.ignored}."] if answer.ignored else []
    texts += [f"These fields were probably meant: {answer.suggested}."] if answer.suggested else []
    blocks = [{"type": "text", "text": text} for text in texts]
    return {"content": blocks, "structuredContent": shown, "isError": False}


def answer_request(api: Api, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request. Raises InvalidCall."""
    check_version(params)
    cacheable = {"ttlMs": 3_600_000, "cacheScope": "public"}
    about = {"capabilities": {"tools": {}}, "instructions": INSTRUCTIONS}
    if method == "initialize":
        wanted = params.get("protocolVersion")
        version = wanted if wanted in VERSIONS and wanted != STATELESS else VERSIONS[-2]
        return {"protocolVersion": version, "serverInfo": SERVER, **about}
    if method == "server/discover":
        named = {"io.modelcontextprotocol/serverInfo": SERVER}
        return {"supportedVersions": list(VERSIONS), "_meta": named, **about, **cacheable}
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": describe_tools(), **cacheable}
    if method != "tools/call":
        raise InvalidCall(NO_METHOD, f"This server has no method {method}.")
    name, arguments = params.get("name"), params.get("arguments") or {}
    if name not in TOOLS or not isinstance(arguments, dict):
        raise InvalidCall(
            INVALID_PARAMS, f"Unknown tool or invalid arguments. The tools are {', '.join(TOOLS)}."
        )
    return run_tool(api, name, arguments)


def check_version(params: dict[str, Any]) -> None:
    """Raise InvalidCall if the request names a version of the protocol that this server does not support."""
    meta = params.get("_meta")
    version = meta.get(VERSION_FIELD, STATELESS) if isinstance(meta, dict) else STATELESS
    if version not in VERSIONS:
        data = {"supported": list(VERSIONS), "requested": version}
        raise InvalidCall(OTHER_VERSION, "Unsupported protocol version.", data)


def answer_line(api: Api, line: bytes) -> dict[str, Any] | None:
    """Return the response to a line of JSON-RPC. For a notification or a response, return None."""
    number = None
    try:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            raise InvalidCall(PARSE_ERROR, "The line is not JSON.") from None
        if not isinstance(message, dict) or not isinstance(message.get("params", {}), dict):
            raise InvalidCall(INVALID_REQUEST, "A line is one JSON-RPC request, whose params are an object.")
        number = message.get("id")
        if number is None or "method" not in message:
            return None
        result = answer_request(api, str(message["method"]), message.get("params", {}))
        return {"jsonrpc": "2.0", "id": number, "result": {"resultType": "complete", **result}}
    except InvalidCall as invalid:
        return {"jsonrpc": "2.0", "id": number, "error": invalid.error}


def serve(api: Api) -> None:
    """Answer each line from the standard input on the standard output, until the input ends."""
    for line in sys.stdin.buffer:
        if line.strip() and (response := answer_line(api, line)) is not None:
            sys.stdout.buffer.write(json.dumps(response).encode() + b"\n")
            sys.stdout.buffer.flush()


def main() -> int:
    """Return the exit code: 0 at the end of the input, 2 if the settings are wrong."""
    try:
        missing = [name for name in NEEDED if not os.environ.get(name)]
        if missing:
            raise Stop(f"Set {', '.join(missing)}. Keys of the sandbox are in its portal, under Keys.")
        api = Api(*(os.environ[name] for name in NEEDED))
        with contextlib.suppress(
            ApiError
        ):  # if the service does not answer now, it is checked before the first call
            api.require_sandbox()
        serve(api)
    except Stop as stopped:
        print(stopped, file=sys.stderr)
        return 2
    except (KeyboardInterrupt, BrokenPipeError):  # the client has ended
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
