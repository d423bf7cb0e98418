"""Does the same as `make run`, with small stubs as its services: `stand_in.py FOLDER [MORE_STUBS]`."""

import sys
from pathlib import Path

from config.local import run

SEED = """
import json, os, sys
print("seeding", os.environ["DATABASE_URL"].partition(":")[0])
people = ["portal_email", "portal_password", "admin_username", "admin_password"]
clients = ["client_id", "client_secret", "shop_client_id", "shop_client_secret"]
with open(sys.argv[1], "w") as file:
    json.dump({key: f"the {key}" for key in people + clients}, file)
"""
SERVER = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == sys.argv[2] else 404)
        self.end_headers()
    def log_message(self, *args):
        print("answered", self.path, flush=True)
http.server.HTTPServer(("127.0.0.1", int(os.environ[sys.argv[1]])), Handler).serve_forever()
"""
OTHERS = {
    "mortal": "import sys, time; time.sleep(1); sys.exit(3)",
    "stubborn": "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)",
}


def plan(folder: Path, port: str) -> run.Plan:
    python = (sys.executable, "-c")
    return run.Plan(
        seed=(*python, SEED, str(folder / run.CREDENTIALS)),
        services={
            "web": (*python, SERVER, "PORT", "/readyz"),
            "shop": (*python, SERVER, "SHOP_PORT", "/"),
            **{name: (*python, OTHERS[name]) for name in sys.argv[2:]},
        },
        ready={"PORT": "/readyz", "SHOP_PORT": "/"},
    )


if __name__ == "__main__":
    sys.exit(run.main(Path(sys.argv[1]), plan))
