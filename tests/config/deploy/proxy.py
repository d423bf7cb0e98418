"""The proxy of an installation: nginx with the shipped configuration, but with the ports and folders of a test."""

import os
import shutil
from pathlib import Path
from string import Template

from tests.config.deploy import package

MAIN = """
daemon off;
user nobody nogroup;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ worker_connections 4096; }}
http {{
gzip on;  # as in Debian's nginx.conf, which the shipped configuration must override
{kept}
{server}
}}
"""
KEPT = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def command(kept: Path, tls: Path, *, web: str, http: str, https: str) -> list[str]:
    """Return the command that starts nginx. Its logs are in the folder `kept`.

    `web` is the port of the web processes, or `unix:` followed by the path of their socket. `http` and `https` are the
    ports of the proxy.
    """
    given = package.compose()["services"]["proxy"]["environment"] | {
        "WEB_SERVERS": f"server {web if web.startswith('unix:') else f'127.0.0.1:{web}'};",
        "SERVER_NAME": "localhost",
        "HTTP_PORT": http,
        "HTTPS_PORT": https,
        "TLS": str(tls),
        "ACCESS_LOG": str(kept / "access.log"),
        "ERROR_LOG": str(kept / "error.log"),
    }
    conf = kept / "nginx.conf"
    places = "\n".join(f"{name}_temp_path {kept}/nginx-{name};" for name in KEPT)
    shown = Template((package.DEPLOY / "nginx.conf.template").read_text()).safe_substitute(given)
    shown = shown.replace("/var/www/acme", str(tls.parent / ".acme"))
    conf.write_text(MAIN.format(folder=kept, kept=places, server=shown))
    program = shutil.which("nginx", path=f"{os.defpath}:/usr/sbin") or "nginx"
    return [program, "-p", str(kept), "-c", str(conf)]
