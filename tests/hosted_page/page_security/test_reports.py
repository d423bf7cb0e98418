"""Browsers report pages that violate their policy, and the service counts the reports. Some reports are false."""

import json
import logging
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from config.schedule import HOURLY
from hosted_page import tasks
from hosted_page.models import CspReport
from hosted_page.page_security import reports
from tests.portal import people

pytestmark = [pytest.mark.django_db, pytest.mark.rule("card_page.reports")]
HOST = "http://testserver"
TOKEN = "kXcvWq_e-ZtRtmLbgAyfHw"
API, URI = "application/reports+json", "application/csp-report"


def violation(**changed: Any) -> dict[str, Any]:
    """Return a violation in the format of the Reporting API."""
    body = {
        "documentURL": f"{HOST}/pay?id=0193c0de-1111-7000-8000-00000000beef",
        "effectiveDirective": "script-src-elem",
        "blockedURL": "https://evil.example/skim.js?card=4242424242424242",
        "disposition": "enforce",
        "originalPolicy": "default-src 'none'",
        "sourceFile": None,
    }
    return {"type": "csp-violation", "age": 1, "url": body["documentURL"], "body": body | changed}


def send(body: Any, kind: str = API, **headers: str) -> Any:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Client(enforce_csrf_checks=True).post("/csp-reports", raw, content_type=kind, headers=headers)


def rows() -> list[tuple[str, str, str, int]]:
    return list(CspReport.objects.values_list("page", "directive", "blocked", "count").order_by("blocked"))


class TestStoredReports:
    def test_have_one_row_for_each_page_kind_directive_and_host(self) -> None:
        assert send([violation(), violation()]).status_code == 204
        assert send([violation(blockedURL="https://evil.example/other.js")]).status_code == 204
        assert rows() == [("hosted page", "script-src-elem", "evil.example", 3)]
        row = CspReport.objects.get()
        assert timezone.now() - row.last_seen < timedelta(minutes=1) and row.first_seen < row.last_seen

    def test_include_the_older_report_format(self) -> None:
        report = {
            "document-uri": f"{HOST}/bank/card/0193c0de-1111-7000-8000-00000000beef",
            "violated-directive": "script-src 'self'",
            "blocked-uri": "inline",
        }
        assert send({"csp-report": report}, URI).status_code == 204
        assert rows() == [("card form", "script-src", "inline", 1)]

    @pytest.mark.parametrize(
        ("path", "page"),
        [
            ("/pay/card", "card form"),
            (f"/pay/share/{TOKEN}/card", "card form"),
            (f"/pay/g/{TOKEN}/2/card", "card form"),
            (f"/pay/g/{TOKEN}", "hosted page"),
            ("/bank/challenge/x", "bank's question"),
            ("/portal/checkouts", "portal"),
            ("/admin/", "operators"),
            ("/payroll", "other"),
        ],
    )
    def test_name_the_kind_of_page_and_never_its_address(self, path: str, page: str) -> None:
        send([violation(documentURL=HOST + path)])
        assert rows()[0][0] == page

    @pytest.mark.parametrize(
        ("blocked", "host"),
        [
            ("eval", "eval"),
            ("data", "data"),
            (f"{HOST}/static/js/x.js", "this service"),
            ("https://Evil.example:8443/a?b=lea@mail.example#c", "evil.example"),
            ("https://0193c0de-1111-7000-8000-00000000beef.evil.example/", "*.evil.example"),
            (f"https://{'a1' * 30}.{'b2' * 30}.evil.example", "*.*.evil.example"),
            ("https://" + ".".join(["abcdefghij"] * 20), ".".join(["abcdefghij"] * 20)[:100]),
            ("+447700900123", "other"),
            ("https://a\x00b.example/", "other"),
            ("https://[::1", "other"),
            ("", "other"),
        ],
    )
    def test_contain_only_the_host_of_an_address(self, blocked: str, host: str) -> None:
        assert send([violation(blockedURL=blocked)]).status_code == 204
        assert [row[2] for row in rows()] == [host]

    def test_contain_no_other_text_of_the_sender(self) -> None:
        send([violation(effectiveDirective="lea@mail.example", sample="4242424242424242", referrer=TOKEN)])
        with connection.cursor() as cursor:
            cursor.execute("SELECT hosted_page_cspreport::text FROM hosted_page_cspreport")
            kept = str(cursor.fetchall())
        assert "other" in kept and not [word for word in ("lea@", "4242", TOKEN, "beef") if word in kept]

    @pytest.mark.parametrize("kind", ["chrome", "moz", "safari", "safari-web", "ms-browser"])
    def test_exclude_browser_extensions(self, kind: str) -> None:
        extension = f"{kind}-extension"
        told = [violation(blockedURL=extension), violation(blockedURL=f"{extension}://x/y.js")]
        assert send([*told, violation(sourceFile=f"{extension}://x")]).status_code == 204
        assert rows() == []

    def test_exclude_pages_of_other_sites(self) -> None:
        told = [
            violation(documentURL=url) for url in ("https://evil.example/pay", "about:blank", "http://[x")
        ]
        assert send([*told, {"type": "deprecation", "body": {}}]).status_code == 204
        assert rows() == []

    def test_are_deleted_thirty_days_after_the_last_report(self) -> None:
        send([violation(), violation(blockedURL="inline")])
        old = timezone.now() - timedelta(days=31)
        CspReport.objects.filter(blocked="inline").update(last_seen=old)
        tasks.delete_old_csp_reports()
        assert [row[2] for row in rows()] == ["evil.example"]
        assert tasks.delete_old_csp_reports.name in HOURLY


class TestBounds:
    def test_rows_are_few_and_further_hosts_are_counted_as_other(self) -> None:
        found = [
            reports.Violation("card form", "img-src", f"h{n}.example") for n in range(reports.MAX_ROWS + 7)
        ]
        reports.record(found, timezone.now())
        send([violation()])
        assert CspReport.objects.count() == reports.MAX_ROWS + 1
        assert CspReport.objects.get(blocked="other").count == 8

    def test_invented_hosts_do_not_displace_real_hosts(self) -> None:
        """A host that is reported many times keeps its row, even if many invented hosts are reported."""
        real = reports.Violation("card form", "script-src", "evil.example")
        for first in range(0, 3 * reports.MAX_ROWS, reports.MAX_ROWS):
            invented = range(first, first + reports.MAX_ROWS)
            reports.record([real, real], timezone.now())
            hosts = [reports.Violation("card form", "img-src", f"h{n}.example") for n in invented]
            reports.record(hosts, timezone.now())
        assert CspReport.objects.get(blocked="evil.example").count == 6

    def test_of_a_body_only_the_first_reports_are_read(self) -> None:
        short = {
            name: violation()["body"][name] for name in ("documentURL", "effectiveDirective", "blockedURL")
        }
        send([{"type": "csp-violation", "body": short} for _ in range(50)])
        assert rows()[0][3] == reports.MAX_REPORTS

    def test_body_has_a_maximum_size(self) -> None:
        assert send(b"[" + b" " * (16 * 1024 - 2) + b"]").status_code == 204
        assert send(b"[" + b" " * (16 * 1024 - 1) + b"]").status_code == 413
        assert send(b" " * 100_000).status_code == 413

    def test_each_network_has_a_rate_limit(self, settings: Settings) -> None:
        settings.LIMITS = settings.LIMITS | {"csp_reports": "2/minute"}
        statuses = [send([violation()]).status_code for _ in range(3)]
        refused = send([violation()])
        assert statuses == [204, 204, 429] and refused["Retry-After"] == "60"
        other = Client(REMOTE_ADDR="192.0.2.7").post("/csp-reports", b"[]", content_type=API)
        assert other.status_code == 204 and rows()[0][3] == 2


class TestRefusals:
    @pytest.mark.parametrize(
        ("body", "kind", "status"),
        [
            (b"{", API, 400),
            (b"\xff", API, 400),
            (b'"x"', API, 400),
            (b"{}", API, 400),
            (b"[1]", API, 400),
            (b'[{"type": "csp-violation"}]', API, 400),
            (b'[{"type": "csp-violation", "body": 1}]', API, 400),
            (b"[" * 5000, API, 400),
            (b"[]", URI, 400),
            (b"{}", URI, 400),
            (b'{"csp-report": 1}', URI, 400),
            (b"{}", "application/json", 415),
            (b"a=b", "application/x-www-form-urlencoded", 415),
            (b"{}", "", 415),
            (b"[]", API, 204),
            (b'[{"type": "csp-violation", "body": {}}]', API, 204),
            (b'[{"type": "csp-violation", "body": {"documentURL": 1, "blockedURL": [], "x": {}}}]', API, 204),
            (b'{"csp-report": {"document-uri": null}}', URI, 204),
        ],
    )
    def test_say_what_to_send_instead(self, body: bytes, kind: str, status: int) -> None:
        answer = send(body, kind)
        assert answer.status_code == status and rows() == []
        assert (b" " in answer.content) == (status != 204)

    def test_only_posts_are_accepted(self) -> None:
        assert Client().get("/csp-reports").status_code == 405

    def test_no_report_is_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        send([violation(blockedURL="https://unheard.example/")])
        send(b'[{"type": "unheard.example"')
        assert caplog.records and "unheard" not in caplog.text


class TestPages:
    @pytest.mark.parametrize("path", ["/pay?id=x", "/portal", "/api/docs", "/"])
    def test_name_the_collector_in_their_policy(self, path: str) -> None:
        answer = Client().get(path)
        assert "report-uri /csp-reports" in answer["Content-Security-Policy"]
        assert "Reporting-Endpoints" not in answer, "without https browsers ignore it"

    def test_have_one_order_of_directives_in_all_processes(self) -> None:
        policy = Client().get("/pay?id=x")["Content-Security-Policy"].split("; ")
        assert policy == sorted(policy), "else the daily check would find a difference between two of them"

    def test_name_an_endpoint_where_there_is_https(self, settings: Settings) -> None:
        directives = settings.CONTENT_SECURITY_POLICY["DIRECTIVES"] | {"report-to": ["csp"]}
        settings.CONTENT_SECURITY_POLICY = {"DIRECTIVES": directives}
        assert Client().get("/portal")["Reporting-Endpoints"] == 'csp="/csp-reports"'


def test_operators_read_the_reports(client: Client) -> None:
    people.operate(client)
    send([violation()])
    listed = client.get("/admin/hosted_page/cspreport/").content.decode()
    assert "evil.example" in listed and "script-src-elem" in listed and "Add CSP report" not in listed
