"""The commands of docs/install.md work. Commands that need systemd or a domain are not tested here."""

import re
import subprocess
from functools import partial
from pathlib import Path

import psycopg
import pytest

from config.local import engines
from tests.config.deploy import pages
from tests.config.deploy.pages import heredoc, manage
from tests.journeys.service import ROOT

pytestmark = pytest.mark.journey
PAGE = pages.text("install.md")
block = partial(pages.block, "install.md")
SETTINGS = set(re.findall(r"^\| `([A-Z0-9_]+)`", pages.text("operate.md"), re.MULTILINE))
PLAIN = {"EMAIL_HOST", "EMAIL_HOST_USER", "EMAIL_HOST_PASSWORD", "DEFAULT_FROM_EMAIL"}


def test_the_page_names_only_existing_files_targets_and_commands() -> None:
    for path in re.findall(r"config/deploy/[\w.@*-]+", PAGE):
        assert list(ROOT.glob(path)), path
    targets = set(re.findall(r"make ((?:[a-z]+ ?)+)", block("make install")))
    makefile = (ROOT / "Makefile").read_text()
    assert all(f"\n{name}:" in makefile for names in targets for name in names.split() if name != "git")
    ours = {
        path.stem
        for app in ("checkout", "config", "hosted_page", "payments", "portal")
        for path in (ROOT / app / "management" / "commands").glob("*.py")
    }
    for command in re.findall(r"checkout-manage (\w+)", PAGE):
        assert command in ours | {"check", "createsuperuser", "version"}, command
    template = (ROOT / "config/deploy/nginx.conf.template").read_text()
    assert set(re.findall(r"\$\{(\w+)\}", template)) == set(re.findall(r"\$([A-Z_]+)", block("envsubst"))) - {
        "SERVICE"
    }


def test_the_page_sets_only_variables_that_the_service_reads() -> None:
    names = {line.partition("=")[0] for line in heredoc(block("/etc/checkout.env"), "ENV").splitlines()}
    assert names - PLAIN - {"REDIS_URL", "DATABASE_URL"} <= SETTINGS
    assert set(re.findall(r"^([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE)) >= PLAIN


@pytest.mark.long
@pytest.mark.rule("docs.compressed")
def test_the_proxy_compresses_nothing() -> None:
    """Debian's nginx.conf has `gzip on` for all servers, so our configuration must switch it off."""
    template = (ROOT / "config/deploy/nginx.conf.template").read_text()
    assert re.findall(r"^  gzip (\w+);", template, re.M) == ["off"]


@pytest.mark.long  # needs nginx
def test_makes_a_proxy_that_nginx_understands(tmp_path: Path) -> None:
    """The commands before `nginx -t` run in a test folder instead of the root folder."""
    typed = block("envsubst").partition("rm -f ")[0].partition("mkdir -p")[2]
    typed = re.sub(r" (/(?:etc/nginx|var/www)[\w/.-]*)", rf" {tmp_path}\1", f"mkdir -p{typed}")
    typed = re.sub(r"(TLS|_LOG)=/", rf"\1={tmp_path}/", typed)
    for folder in ("etc/nginx/conf.d", "var/log/nginx"):
        (tmp_path / folder).mkdir(parents=True)
    pages.run(typed)
    whole = tmp_path / "nginx.conf"
    whole.write_text(
        f"pid {tmp_path}/pid; events {{}} http {{ include {tmp_path}/etc/nginx/conf.d/checkout.conf; }}"
    )
    done = subprocess.run(["nginx", "-t", "-c", whole], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "pay.example" in (tmp_path / "etc/nginx/conf.d/checkout.conf").read_text()
    assert (tmp_path / "etc/nginx/tls/private.pem").read_text().startswith("-----BEGIN PRIVATE KEY-----")


@pytest.mark.long
@pytest.mark.rule("environment.roles")
def test_makes_two_roles_with_which_migrate_and_the_service_work(tmp_path: Path) -> None:
    """As in docs/install.md, the owner is not a superuser, and the service's role owns no tables."""
    with engines.running(tmp_path / "engines", durable=False) as own:
        variables = pages.installed(own, tmp_path)
        manage(variables, "migrate", "--verbosity", "0")
        manage(variables, "check")
        made = manage(variables, "create_merchant", "Acme Tickets", "--email", "owner@acme.example", "--json")
        assert "client_secret" in made
        manage(variables, "prove_ledger")
        address = re.search(r"^DATABASE_URL=(.*)$", variables.read_text(), re.MULTILINE)
        with psycopg.connect(address[1] if address else "", autocommit=True) as connection:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("DELETE FROM checkout_change")
            assert connection.execute("SHOW lock_timeout").fetchone() == ("3s",)
