#!/usr/bin/env python3
"""Runs `manage.py` as the service's user with the service's environment variables.

For the command `migrate`, it adds the variables of the role that owns the tables. The script is installed as
`checkout-manage` and needs only the standard library.

It reads the environment files as systemd does. A line has a name, "=", and a value that extends to the end of
the line. A line that begins with # is a comment.
"""

import os
import pwd
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
VARIABLES = Path(os.environ.get("CHECKOUT_ENV", "/etc/checkout.env"))
OWNER_VARIABLES_FILE = VARIABLES.with_name(f"{VARIABLES.stem}-owner.env")
USER = os.environ.get("CHECKOUT_USER", "checkout")
KEPT = ("PATH", "LANG", "TERM", "DJANGO_SUPERUSER_PASSWORD")  # the shell's variables that the command gets


def read_variables(path: Path) -> dict[str, str]:
    """Return the variables that an environment file sets. Empty values count as not set."""
    lines = (line.strip() for line in path.read_text().splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name.strip(): value.strip().strip("\"'") for name, _, value in pairs if value.strip()}


def main(arguments: list[str]) -> None:
    """Switch to the service's user, and replace this process with `manage.py` and these arguments."""
    variables = read_variables(VARIABLES)
    if arguments[:1] == ["migrate"]:
        variables |= read_variables(OWNER_VARIABLES_FILE)
    if os.geteuid() == 0:
        user = pwd.getpwnam(USER)
        os.initgroups(USER, user.pw_gid)
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    os.chdir(PROJECT)
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    command = [str(PROJECT / ".venv/bin/python"), "manage.py", *arguments]
    os.execve(command[0], command, kept | {"PYTHONDONTWRITEBYTECODE": "1"} | variables)  # noqa: S606 - no shell


if __name__ == "__main__":
    main(sys.argv[1:])
