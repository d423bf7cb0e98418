"""`make env`: create the files of a new installation.

The script writes environment variables with new keys, and a self-signed certificate. It makes a folder for
the challenges of certificate renewal, a folder for back-ups, and a folder for files that are not part of the
database. It does not change existing files. It runs before the installation, so it needs only the standard
library and openssl.
"""

import base64
import os
import secrets
import subprocess
import sys
from pathlib import Path

CONTAINERS_USER = 10001  # as in the Dockerfile
VARIABLES = """\
# Of this installation. docs/operate.md has the table of all. Keep it as secret as the database.
SERVER_NAME={host}
ENVIRONMENT=sandbox
BASE_URL=https://{host}
SECRET_KEY={secret_key}
LOOKUP_KEY={lookup_key}
FIELD_KEYS={field_key}
POSTGRES_PASSWORD={owner_password}
CHECKOUT_PASSWORD={password}
VALKEY_PASSWORD={valkey_password}
METRICS_TOKEN={metrics_token}
"""
CERTIFICATE = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30"


def write(folder: Path, host: str) -> None:
    """Write .env and a self-signed certificate for the host, and make the folders .acme, .backup and .kept.

    Operators replace the certificate with a real one. Containers may write only into .backup and .kept.
    """
    variables, tls = folder / ".env", folder / ".tls"
    if not variables.exists():
        variables.touch(mode=0o600)
        variables.write_text(_write_variables(host))
    if not tls.exists():
        tls.mkdir(mode=0o755)
        names = ["-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}"]
        files = ["-keyout", str(tls / "private.pem"), "-out", str(tls / "public.pem")]
        subprocess.run([*CERTIFICATE.split(), *names, *files], check=True, capture_output=True, umask=0o077)
    (folder / ".acme").mkdir(exist_ok=True)
    for name in (".backup", ".kept"):
        _make_writable(folder / name)


def _make_writable(folder: Path) -> None:
    if folder.exists():
        return
    folder.mkdir()
    if os.getuid() == 0:
        os.chown(folder, CONTAINERS_USER, CONTAINERS_USER)
    else:  # only root can change the owner: let all users write, but delete only their own files
        folder.chmod(0o1777)


def _write_variables(host: str) -> str:
    return VARIABLES.format(
        host=host,
        secret_key=secrets.token_urlsafe(48),
        lookup_key=secrets.token_urlsafe(48),
        field_key=base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        owner_password=secrets.token_urlsafe(24),
        password=secrets.token_urlsafe(24),
        valkey_password=secrets.token_urlsafe(24),
        metrics_token=secrets.token_urlsafe(24),
    )


if __name__ == "__main__":
    write(Path.cwd(), sys.argv[1])
