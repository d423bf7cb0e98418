"""The sender sends the right request to a well-behaved receiver, and stores the right parts of the answer."""

import asyncio

import pytest

from tests.webhooks.receivers.receiving import OK, TLS, Names, answering, free_port, posted, receiving
from webhooks import transport


class TestVerdict:
    @pytest.mark.parametrize("status", [200, 201, 204, 299])
    def test_a_2xx_has_no_error(self, status: int) -> None:
        answer, _ = posted(answering(f"HTTP/1.1 {status} Fine\r\nContent-Length: 0\r\n\r\n".encode()))
        assert (answer.http_status, answer.error_message, answer.excerpt) == (status, None, "")

    @pytest.mark.rule("delivery.bounded")
    def test_keeps_the_beginning_of_the_body(self) -> None:
        answer, _ = posted(answering(OK))
        assert answer.excerpt == "thanks"
        assert 0 <= answer.duration_ms < 5000

    def test_keeps_the_beginning_of_a_body_that_arrives_in_parts(self) -> None:
        head, body = OK.split(b"\r\n\r\n")
        assert posted(answering(head + b"\r\n\r\n", body[:2], body[2:]))[0].excerpt == "thanks"

    @pytest.mark.parametrize("status", [400, 404, 410, 429, 500, 503])
    def test_names_any_other_response_by_its_status(self, status: int) -> None:
        answer, _ = posted(answering(f"HTTP/1.1 {status} No\r\nContent-Length: 2\r\n\r\nno".encode()))
        assert (answer.http_status, answer.error_message, answer.excerpt) == (status, f"HTTP {status}", "no")

    def test_skips_interim_responses(self) -> None:
        hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        answer, _ = posted(answering(b"HTTP/1.1 100 Continue\r\n\r\n" + hints, hints + OK))
        assert (answer.http_status, answer.error_message, answer.excerpt) == (200, None, "thanks")

    def test_does_not_take_the_body_of_an_interim_response(self) -> None:
        interim = b"HTTP/1.1 199 Wait\r\nContent-Length: 4\r\n\r\nsoon"
        answer, _ = posted(answering(interim + OK))
        assert (answer.http_status, answer.error_message, answer.excerpt) == (200, None, "thanks")

    def test_without_a_listener_is_could_not_connect(self) -> None:
        async def scenario() -> transport.Answer:
            async with transport.open_pool(allow_loopback=True, tls=TLS) as pool:
                return await transport.post(pool, f"http://127.0.0.1:{free_port()}/", {}, b"{}")

        answer = transport.run(scenario())
        assert (answer.http_status, answer.error_message) == (None, "could not connect")


class TestExcerpt:
    def test_is_text_that_the_database_accepts(self) -> None:
        body = b"a\x00b\x1b[31m\xff\n" + "é".encode() * 2000
        head = f"HTTP/1.1 500 No\r\nContent-Length: {len(body)}\r\n\r\n"
        answer, _ = posted(answering(head.encode() + body))
        assert answer.excerpt.startswith("a\ufffdb\ufffd[31m\ufffd\né")
        assert len(answer.excerpt.encode()) <= 1024

    def test_keeps_the_lines_of_a_text(self) -> None:
        body = b"<h1>\r\n\tNo such hook: caf\xc3\xa9\n</h1>"
        head = f"HTTP/1.1 404 No\r\nContent-Length: {len(body)}\r\n\r\n"
        assert posted(answering(head.encode() + body))[0].excerpt == "<h1>\n\tNo such hook: café\n</h1>"

    def test_ends_where_the_body_ends(self) -> None:
        assert posted(answering(OK + OK))[0].excerpt == "thanks"


class TestRequest:
    def test_carries_the_exact_bytes_and_asks_for_no_compression(self) -> None:
        _, receiver = posted(answering(OK))
        head, body = receiver.requests[0].split(b"\r\n\r\n")
        assert head.decode().split("\r\n") == [
            "POST /hooks?x=%2F HTTP/1.1",
            f"Host: 127.0.0.1:{receiver.port}",
            "Accept: */*",
            "Accept-Encoding: identity",
            "Content-Type: application/json",
            "User-Agent: ours",
            "X-Service-Event-Id: evt_1",
            "Content-Length: 15",
        ]
        assert body == b'{"id": "evt_1"}'

    @pytest.mark.parametrize(
        ("path", "called"), [("", "/"), ("/", "/"), ("/a?b=c", "/a?b=c"), ("/%C3%A9", "/%C3%A9")]
    )
    @pytest.mark.parametrize(("host", "address"), [("shop.example.com", "127.0.0.1"), ("[::1]", "::1")])
    def test_has_path_and_host_as_in_the_url(self, host: str, address: str, path: str, called: str) -> None:
        async def scenario() -> tuple[list[bytes], int]:
            async with receiving(answering(OK), host=address) as receiver:
                names = Names([address])
                async with transport.open_pool(allow_loopback=True, tls=TLS, names=names) as pool:
                    await transport.post(pool, f"http://{host}:{receiver.port}{path}", {}, b"{}")
                return receiver.requests, receiver.port

        (request,), port = transport.run(scenario())
        assert request.decode().startswith(f"POST {called} HTTP/1.1\r\nHost: {host}:{port}\r\n")

    @pytest.mark.parametrize("ends", ["\r\n", "\n", "\r", "\0"], ids=["CRLF", "LF", "CR", "NUL"])
    @pytest.mark.parametrize("place", ["name", "value"])
    def test_with_a_header_that_ends_its_line_is_not_sent(self, ends: str, place: str) -> None:
        header = f"evt_1{ends}X-Smuggled: yes"
        headers = {header: "1"} if place == "name" else {"X-Service-Event-Id": header}

        async def scenario() -> tuple[transport.Answer, bytes]:
            sent = asyncio.get_running_loop().create_future()

            async def listen(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
                sent.set_result(await reader.read(-1))

            async with receiving(listen, reads=False) as receiver:
                async with transport.open_pool(allow_loopback=True, tls=TLS) as pool:
                    url = f"http://127.0.0.1:{receiver.port}/"
                    return await transport.post(pool, url, headers, b"{}"), await sent

        answer, sent = transport.run(scenario())
        assert (answer.http_status, answer.error_message) == (None, "the request could not be sent")
        assert sent == b""

    @pytest.mark.rule("target.redirects")
    def test_uses_no_proxy_of_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        answer, _ = posted(answering(OK))
        assert answer.http_status == 200

    @pytest.mark.rule("target.redirects")
    def test_sends_no_cookie_back(self) -> None:
        async def scenario() -> list[bytes]:
            with_cookie = OK.replace(b"\r\n\r\n", b"\r\nSet-Cookie: a=b\r\n\r\n")
            async with receiving(answering(with_cookie)) as receiver:
                names = Names(["127.0.0.1"])
                async with transport.open_pool(allow_loopback=True, tls=TLS, names=names) as pool:
                    for _ in range(2):
                        await transport.post(pool, f"http://shop.example.com:{receiver.port}/", {}, b"{}")
                return receiver.requests

        requests = transport.run(scenario())
        assert len(requests) == 2 and not any(b"cookie" in request.lower() for request in requests)
