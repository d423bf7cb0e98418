"""A deployment behind the nginx proxy that is part of the product. The proxy terminates TLS."""

import contextlib
import dataclasses
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from config.deploy import make_env
from config.local import children
from tests.config.deploy import proxy
from tests.journeys import deployment, polling
from tests.journeys import service as services
from tests.journeys.deployment import Deployment
from tests.journeys.service import Service


@contextlib.contextmanager
def running(
    folder: Path, variables: Mapping[str, str], **of_part: Mapping[str, str]
) -> Iterator[tuple[Deployment, Service]]:
    """Run a deployment behind nginx for the duration of the block.

    All parts (web, worker and beat) get the environment variables in `variables`. `of_part` maps the name of
    a part to further variables for this part only.
    """
    make_env.write(folder, "localhost")
    http, https = services.free_ports()
    address = {"BASE_URL": f"https://localhost:{https}", "TRUSTED_PROXY_COUNT": "1"}
    with deployment.running(folder) as (whole, service):
        command = proxy.command(folder, folder / ".tls", web=whole.variables["PORT"], http=http, https=https)
        nginx = subprocess.Popen(
            children.tie_to_parent(command, by=signal.SIGTERM), stderr=subprocess.DEVNULL
        )
        try:
            whole.restart_all({**variables, **address}, **of_part)
            polling.until((folder / "nginx.pid").exists, within=10, what="nginx")
            ca = str(folder / ".tls" / "public.pem")
            yield whole, dataclasses.replace(service, base_url=address["BASE_URL"], ca=ca)
        finally:
            nginx.terminate()
            nginx.wait(10)
