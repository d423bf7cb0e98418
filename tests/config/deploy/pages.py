"""Runs the commands of docs/install.md, docs/operate.md and docs/upgrade.md in the tests of these pages."""

import os
import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import psycopg

from config.local import engines
from tests.config.deploy.package import ROOT

BLOCK = re.compile(r"^( *)```(?:sh)?\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def text(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def block(name: str, words: str) -> str:
    """Return the commands of the code block that contains these words.

    Fail unless the page has exactly one such block.
    """
    (found,) = [typed for _, typed in BLOCK.findall(text(name)) if words in typed]
    return textwrap.dedent(found)


def heredoc(typed: str, word: str) -> str:
    return typed.split(f"<<{word}\n")[1].split(f"\n{word}\n", maxsplit=1)[0]


def run(typed: str, **variables: str) -> str:
    """Run commands in a shell that stops at the first error; return their output."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", typed],
        env={"PATH": os.environ["PATH"]} | variables,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def installed(own: engines.Engines, folder: Path) -> Path:
    """Create the roles, the database and the environment file of docs/install.md; return the file's path."""
    sockets = own.database_url.partition("host=")[2]
    sql = heredoc(block("install.md", "CREATE ROLE"), "SQL").replace("$OWNER", "a" * 48)
    sql = sql.replace("$SERVICE", "b" * 48)
    # The local PostgreSQL already has a role `checkout`.
    sql = sql.replace("CREATE ROLE checkout LOGIN", "CREATE ROLE service LOGIN")
    with psycopg.connect(f"postgresql://checkout@/postgres?host={sockets}", autocommit=True) as connection:
        connection.execute("DROP DATABASE checkout")
        for statement in filter(None, map(str.strip, sql.split(";\n"))):
            connection.execute(statement.rstrip(";"))
    written = heredoc(block("install.md", "/etc/checkout.env"), "ENV")
    typed = run(f"cat <<ENV\n{written}\nENV", SERVICE="b" * 48)
    for name, value in {
        "ENVIRONMENT": "sandbox",
        "DATABASE_URL": f"postgresql://service@/checkout?host={sockets}",
        "REDIS_URL": own.redis_url,
    }.items():
        typed = re.sub(rf"^{name}=.*$", f"{name}={value}", typed, flags=re.MULTILINE)
    variables = folder / "checkout.env"
    variables.write_text(typed)
    owner = f"postgresql://checkout_owner@/checkout?host={sockets}"
    (folder / "checkout-owner.env").write_text(f"DATABASE_OWNER_URL={owner}\n")
    return variables


def manage(variables: Path, *words: str) -> str:
    """Run checkout-manage as in the docs, but as root, because this machine has no user for the service."""
    given = {"PATH": os.environ["PATH"], "CHECKOUT_ENV": str(variables), "CHECKOUT_USER": "root"}
    script = str(ROOT / "config" / "deploy" / "checkout_manage.py")
    done = subprocess.run(
        [shutil.which("python3") or "python3", script, *words],
        env=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
