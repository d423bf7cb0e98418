"""mcp.py runs in a separate process. The protocol's official client calls mcp.py, which calls a stub of the API."""

import asyncio
import http.server
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from mcp import Client as McpClient
from mcp import StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, TextContent

from portal.developer_docs import mcp
from tests.portal.developer_docs.test_listen import only_imports_old_standard_modules
from tests.serving import Reply, serving

SOURCE = mcp.__file__
UUID = "0193c2a1-7e44-7b0c-9d1f-5a6e0c41b2d8"
Json = dict[str, Any]


class Stub:
    """A stub of the API. It records each request, and returns the request's data as its answer."""

    def __init__(self) -> None:
        self.environment = "sandbox"
        self.moved = ""  # the address to which the API's document redirects
        self.calls: list[tuple[str, str, Json]] = []
        self.replies: list[Reply] = []  # the first answers of the API, after the token

    def answer(self, asked: http.server.BaseHTTPRequestHandler, content: bytes) -> Reply:
        body: Json = json.loads(content or b"{}")
        self.calls.append((asked.command, asked.path, body))
        if asked.path == "/api/schema" and self.moved:
            return reply(302, {}, Location=self.moved)
        if asked.path == "/api/schema":
            return reply(200, {"info": {"x-environment": self.environment}})
        if asked.path == "/elsewhere":
            return reply(200, {"info": {"x-environment": "sandbox"}})
        if asked.path == "/oauth/token":
            assert body == {
                "grant_type": "client_credentials",
                "client_id": "client",
                "client_secret": "sk_1",
            }
            tokens = sum(path == "/oauth/token" for _, path, _ in self.calls)
            return reply(200, {"access_token": f"token-{tokens}", "expires_in": 3600})
        if self.replies:
            return self.replies.pop(0)
        return reply(200, {"data": {"token": asked.headers["Authorization"]}})

    @property
    def last(self) -> tuple[str, str, Json]:
        return self.calls[-1]

    @property
    def paths(self) -> list[str]:
        return [path for _, path, _ in self.calls]


def reply(status: int, content: Json, **headers: str) -> Reply:
    return Reply(status, json.dumps(content).encode(), headers)


@pytest.fixture
def stub() -> Iterator[tuple[Stub, str]]:
    stub = Stub()
    with serving(stub.answer) as address:
        yield stub, address


def variables(url: str) -> dict[str, str]:
    return {
        "CHECKOUT_BASE_URL": url,
        "CHECKOUT_CLIENT_ID": "client",
        "CHECKOUT_CLIENT_SECRET": "sk_1",
        "HTTP_PROXY": "http://127.0.0.1:9",  # mcp.py must not use this proxy for an address on this machine
    }


def with_client(url: str, act: Callable[[McpClient], Awaitable[None]], mode: str = "auto") -> None:
    """Start mcp.py as an editor does, connect the official client, and call the function with this client."""

    async def connect() -> None:
        server = StdioServerParameters(command=sys.executable, args=[SOURCE], env=variables(url))
        async with McpClient(server, mode=mode, read_timeout_seconds=20) as client:
            await act(client)

    asyncio.run(connect())


def text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def run(url: str, *lines: str, **changes: str) -> tuple[int, list[Json], str]:
    """Run mcp.py with these lines as its input. Return its exit code, its answers and its errors."""
    done = subprocess.run(
        [sys.executable, SOURCE],
        input="".join(f"{line}\n" for line in lines),
        env={name: value for name, value in (variables(url) | changes).items() if value},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


class TestTheFile:
    @pytest.mark.rule("mcp.file")
    def test_is_served_and_needs_only_the_standard_library(self) -> None:
        answer = Client().get("/api/docs/mcp.py")
        assert answer.status_code == 200 and answer["Content-Type"] == "text/x-python; charset=utf-8"
        with open(SOURCE, "rb") as file:
            assert answer.content == file.read()
        only_imports_old_standard_modules(answer.content.decode())

    def test_is_documented_with_its_address_and_the_path_for_the_setting(self) -> None:
        chapter = Client().get("/api/docs/for-machines.md").content.decode()
        command = f'curl --remote-name {settings.BASE_URL}/api/docs/mcp.py\necho "$PWD/mcp.py"\n'
        assert f"[{settings.BASE_URL}/api/docs/mcp.py]" in chapter and command in chapter
        assert '"args": ["<PATH>"]' in chapter and "Replace `<PATH>`" in chapter


@pytest.mark.rule("mcp.file")
class TestTools:
    @pytest.mark.parametrize(("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
    def test_are_listed_in_the_old_and_the_new_protocol(
        self, stub: tuple[Stub, str], mode: str, version: str
    ) -> None:
        async def look(client: McpClient) -> None:
            assert client.protocol_version == version
            assert client.instructions and "sandbox" in client.instructions
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert list(tools) == list(mcp.TOOLS)
            assert tools["advance_clock"].input_schema["required"] == ["checkout_uuid"]
            reading = {
                name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint
            }
            assert reading == {"read_checkout", "list_deliveries", "list_events"}

        with_client(stub[1], look, mode)

    def test_call_the_api_and_return_its_answers(self, stub: tuple[Stub, str]) -> None:
        api, url = stub
        order = f"/api/merchant/v1/checkouts/{UUID}"

        async def act(client: McpClient) -> None:
            made = await client.call_tool("create_checkout", {"total_amount": 900, "metadata": {"a": "b"}})
            assert made.structured_content == {"token": "Bearer token-1"} and not made.is_error
            method, path, body = api.last
            assert (method, path) == ("POST", "/api/merchant/v1/checkouts")
            assert body["items"][0]["unit_price"] == 900 and body["metadata"] == {"a": "b"}
            for name, arguments, call in (
                (
                    "pay_checkout",
                    {"card": "4000000000000002"},
                    ("POST", f"/api/sandbox/v1/checkouts/{UUID}/pay"),
                ),
                ("advance_clock", {"seconds": 121}, ("POST", f"/api/sandbox/v1/checkouts/{UUID}/advance")),
            ):
                await client.call_tool(name, {"checkout_uuid": UUID, **arguments})
                assert api.last == (*call, arguments)
            await client.call_tool("read_checkout", {"checkout_uuid": "a/b?c"})
            assert api.last[:2] == ("GET", order.replace(UUID, "a%2Fb%3Fc"))
            await client.call_tool("list_deliveries", {"event_type": "checkout.voided", "limit": 5})
            assert api.last[1] == "/api/merchant/v1/webhooks/deliveries?event_type=checkout.voided&limit=5"
            await client.call_tool("list_events", {"checkout_uuid": UUID})
            assert api.last[1] == f"/api/merchant/v1/events?checkout_uuid={UUID}"
            assert api.paths.count("/oauth/token") == api.paths.count("/api/schema") == 1

        with_client(url, act)

    def test_show_refusals_and_ignored_fields_to_the_model(self, stub: tuple[Stub, str]) -> None:
        api, url = stub

        async def act(client: McpClient) -> None:
            api.replies = [reply(409, {"error": {"code": "not_payable", "message": "It is paid."}})]
            refused = await client.call_tool("pay_checkout", {"checkout_uuid": UUID})
            assert refused.is_error and "HTTP 409" in text_of(refused) and "It is paid." in text_of(refused)
            headers = {"X-Ignored-Fields": "customr", "X-Suggested-Fields": "customr=customer"}
            api.replies = [reply(401, {}), reply(201, {"data": {}}, **headers)]
            made = await client.call_tool("create_checkout", {"customr": {}})
            assert not made.is_error and "ignored these fields: customr." in text_of(made)
            assert "probably meant: customr=customer." in text_of(made)
            assert api.paths.count("/oauth/token") == 2, "after a 401, it gets a new token once"
            missing = await client.call_tool("read_checkout", {})
            assert missing.is_error and "needs checkout_uuid" in text_of(missing)
            with pytest.raises(MCPError, match="The tools are create_checkout"):
                await client.call_tool("capture", {})

        with_client(url, act)

    def test_are_all_described_by_the_api(self) -> None:
        document = Client().get("/api/schema").json()
        for name, tool in mcp.TOOLS.items():
            operation = document["paths"][tool.path][tool.method.lower()]
            parameters = {found.get("name") for found in operation["parameters"]}
            body = (
                operation.get("requestBody", {})
                .get("content", {})
                .get("application/json", {})
                .get("schema", {})
            )
            schema = document["components"]["schemas"].get(body.get("$ref", "").rpartition("/")[2], {})
            assert set(tool.fields) <= parameters | set(schema.get("properties", {})), name


@pytest.mark.rule("mcp.where")
class TestWhere:
    @pytest.mark.parametrize("environment", ["production", "staging", ""])
    def test_refuses_production_before_it_sends_the_secret(
        self, stub: tuple[Stub, str], environment: str
    ) -> None:
        api, url = stub
        api.environment = environment
        code, answers, errors = run(url, '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}')
        assert (code, answers) == (2, [])
        assert errors.startswith(f"{url} is {environment}. These tools are for the sandbox")
        assert api.paths == ["/api/schema"]

    def test_checks_a_service_that_was_down_before_the_first_call(self, stub: tuple[Stub, str]) -> None:
        api, url = stub
        api.environment = "production"
        checked = mcp.Api(url, "client", "sk_1")
        for _ in range(2):
            result = mcp.run_tool(checked, "read_checkout", {"checkout_uuid": UUID})
            assert result["isError"] and "is production" in result["content"][0]["text"]
        assert set(api.paths) == {"/api/schema"}

    def test_follows_no_redirect(self, stub: tuple[Stub, str]) -> None:
        api, url = stub
        api.moved = f"{url}/elsewhere"
        code, _, errors = run(url)
        assert code == 2 and "is not the API of this service" in errors and api.paths == ["/api/schema"]

    @pytest.mark.parametrize(
        "url", ["http://sandbox.example", "ftp://127.0.0.1", "https://a@b.example", "http://[", "nonsense"]
    )
    def test_sends_nothing_unencrypted(self, url: str) -> None:
        code, answers, errors = run(url)
        assert (code, answers) == (2, []) and "must be the sandbox's https address" in errors

    def test_names_missing_variables(self) -> None:
        code, _, errors = run("http://127.0.0.1:9", CHECKOUT_CLIENT_ID="", CHECKOUT_CLIENT_SECRET="")
        assert code == 2 and errors.startswith("Set CHECKOUT_CLIENT_ID, CHECKOUT_CLIENT_SECRET.")

    def test_starts_while_the_service_is_down_and_says_so(self) -> None:
        call = {"name": "read_checkout", "arguments": {"checkout_uuid": UUID}}
        line = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call})
        code, (answer,), _ = run("http://127.0.0.1:9", line)
        assert code == 0 and answer["result"]["isError"]
        assert "does not answer" in answer["result"]["content"][0]["text"]


class TestLines:
    def test_that_are_no_request_get_an_error_or_no_answer(self, stub: tuple[Stub, str]) -> None:
        meta = {mcp.VERSION_FIELD: "2031-01-01"}
        code, answers, errors = run(
            stub[1],
            "nonsense",
            "[" * 100_000,
            "[1]",
            "",
            '{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []}',
            '{"jsonrpc": "2.0", "method": "notifications/initialized"}',
            '{"jsonrpc": "2.0", "id": 2, "result": {}}',
            '{"jsonrpc": "2.0", "id": "b", "method": "prompts/list"}',
            json.dumps({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"_meta": meta}}),
            '{"jsonrpc": "2.0", "id": 4, "method": "initialize", "params": {"protocolVersion": "2031-01-01"}}',
            '{"jsonrpc": "2.0", "id": 5, "method": "ping"}',
        )
        assert (code, errors) == (0, "")
        found = [(answer["id"], answer.get("error", {}).get("code")) for answer in answers]
        assert found == [
            *((None, mcp.PARSE_ERROR), (None, mcp.PARSE_ERROR), (None, mcp.INVALID_REQUEST)),
            *(
                (None, mcp.INVALID_REQUEST),
                ("b", mcp.NO_METHOD),
                (3, mcp.OTHER_VERSION),
                (4, None),
                (5, None),
            ),
        ]
        assert answers[-2]["result"]["protocolVersion"] == "2025-11-25"
