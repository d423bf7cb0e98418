"""Helpers that read the API's OpenAPI document."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from django.test import Client
from jsonschema_rs import Draft202012Validator

from tests.config import addresses, starting

METHODS = {"get", "post", "put", "patch", "delete"}


def document() -> dict[str, Any]:
    """Return the document as the service serves it."""
    answer = Client().get("/api/schema")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/json"
    made: dict[str, Any] = answer.json()
    return made


def validator(
    document: dict[str, Any], part: dict[str, Any], *, closed: bool = False
) -> Draft202012Validator:
    """Return a validator for a part of the document.

    If `closed` is true, the validator refuses fields that the document does not define.
    """
    components = json.loads(json.dumps(document["components"]))
    for described in components["schemas"].values() if closed else ():
        described.setdefault("additionalProperties", False)
    return Draft202012Validator(part | {"components": components}, validate_formats=True)


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def response_schema(document: dict[str, Any], name: str, status: int) -> dict[str, Any]:
    """Return the schema of the named operation's response with this status."""
    (operation,) = (found for _, _, found in operations(document) if found["operationId"] == name)
    media: dict[str, Any] = operation["responses"][str(status)]["content"]["application/json"]
    described: dict[str, Any] = media["schema"]
    return described


def routes(patterns: list[Any], prefix: str = "/") -> Iterator[tuple[str, str]]:
    """Yield the path and the method of every API view in the URLconf."""
    for path, pattern in addresses.below(patterns, prefix):
        if hasattr(pattern.callback, "cls"):
            template = re.sub(r"<\w+:(\w+)>", r"{\1}", path)
            yield from ((template, method) for method in METHODS if hasattr(pattern.callback.cls, method))


def of_production(statement: str) -> str:
    """Run a statement under production's settings, and return its output."""
    environment = os.environ | starting.PRODUCTION | {"DJANGO_SETTINGS_MODULE": "config.settings"}
    modules = "from config.openapi import schema; from portal.developer_docs import page"
    code = f"import django, json; django.setup(); {modules}; {statement}"
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout
