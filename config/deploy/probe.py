"""A container's health check. It exits with 0 if the process answers that it is alive.

Run it with `python -m config.deploy.probe`.
"""

import os
import urllib.request

PORT_OF_WEB = "8000"

if __name__ == "__main__":
    port = os.environ.get("PROBE_PORT") or PORT_OF_WEB
    urllib.request.urlopen(f"http://127.0.0.1:{port}/livez", timeout=3).close()
