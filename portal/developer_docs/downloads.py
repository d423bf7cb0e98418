"""The documentation's downloads: quick starts, webhook receivers, test vectors, listen.py and mcp.py."""

import functools
import re
from pathlib import Path
from typing import NamedTuple

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from portal.developer_docs import quickstart
from webhooks import receivers

QUICK_STARTS, RECEIVERS = Path(quickstart.__file__).parent, Path(receivers.__file__).parent
LANGUAGES = {
    ".sh": "curl",
    ".py": "Python",
    ".mjs": "Node",
    ".ts": "TypeScript",
    ".php": "PHP",
    ".go": "Go",
    ".rb": "Ruby",
}
KINDS = {".json": "application/json", ".py": "text/x-python; charset=utf-8"}
RUN_BY = {
    ".sh": "bash {name}",
    ".py": "python3 {name}",
    ".mjs": "node {name}",
    ".ts": "node {name}  # Node 22.18 or newer",
    ".php": "php {name}",
    ".go": "go run {name}",
    ".rb": "ruby {name}",
}
SERVED_BY = RUN_BY | {".php": "php -S 127.0.0.1:3000 {name}\nphp {name}  # in a second terminal: catches up"}
FILES = {
    path.name: path
    for path in (
        *(QUICK_STARTS / f"quickstart{suffix}" for suffix in LANGUAGES),
        *(RECEIVERS / f"receiver{suffix}" for suffix in LANGUAGES if suffix != ".sh"),
        RECEIVERS / "vectors.json",
        Path(__file__).with_name("listen.py"),
        Path(__file__).with_name("mcp.py"),
    )
}

# Matches the function catch_up in a receiver: in Python, in Ruby, or in a language with braces.
_CATCHES_UP = re.compile(
    r"^def catch_up\(.*?(?=\n\n\n)"
    r"|^# [^\n]*\ndef catch_up\n.*?^end"
    r"|^(?://|/\*\*)[^\n]*\n(?:async function|function|func) catchUp\(.*?^}",
    re.M | re.S,
)


class Program(NamedTuple):
    """A program in one language: its file name, the commands that download and run it, and its code."""

    language: str
    name: str
    commands: str
    code: str


def quick_starts() -> list[Program]:
    """Return the quick starts, in the order of the languages."""
    return _programs_of("quickstart", RUN_BY)


def receiver_programs() -> list[Program]:
    """Return the webhook receivers, in the order of the languages."""
    return _programs_of("receiver", SERVED_BY)


def catch_up_parts() -> list[Program]:
    """Return the webhook receivers, reduced to the code that fetches events whose delivery failed."""
    return [
        program._replace(code=match.group())
        for program in receiver_programs()
        if (match := _CATCHES_UP.search(program.code))
    ]


def _programs_of(stem: str, run_by: dict[str, str]) -> list[Program]:
    return [
        Program(LANGUAGES[path.suffix], name, _command_to_run(name, run_by[path.suffix]), path.read_text())
        for name, path in FILES.items()
        if path.stem == stem
    ]


def _command_to_run(name: str, run_by: str) -> str:
    return f"curl -O {settings.BASE_URL}{reverse('api_docs_file', args=[name])}\n{run_by.format(name=name)}"


def count_vectors() -> int:
    """Return how many signed requests the test vectors contain."""
    vectors_file = orjson.loads(FILES["vectors.json"].read_bytes())
    return len(vectors_file["x_service_signature"]) + len(vectors_file["standard_webhooks"])


@functools.cache
def _read_content(name: str) -> bytes:
    return FILES[name].read_bytes()


@csrf_exempt  # without this, a POST would get 403 for its missing CSRF token instead of 405
@require_safe
def download(_request: HttpRequest, name: str) -> HttpResponse:
    """Serve one of FILES unchanged, GET /api/docs/<name> (rules docs.downloads, listen.file)."""
    kind = KINDS.get(FILES[name].suffix, "text/plain; charset=utf-8")
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "public, max-age=300",
    }
    return HttpResponse(_read_content(name), content_type=kind, headers=headers)
