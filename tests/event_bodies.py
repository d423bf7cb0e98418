"""Checks the bodies of events against the JSON Schemas that the service publishes (rule event.schemas)."""

import functools
import json
from collections.abc import Sequence
from typing import Any

from jsonschema_rs import Draft202012Validator

import checkout.events
from config.openapi import event_schemas
from hosted_page.opt_in import consent
from webhooks import endpoint_tests, outbox
from webhooks.models import Event, EventType

# The modules that emit the service's events.
EMITTERS = (checkout.events, consent, endpoint_tests)


@functools.cache
def _validator(kind: EventType) -> Draft202012Validator:
    """Return a validator that also refuses fields that are missing from the schema."""
    schema = json.loads(json.dumps(event_schemas.event_schema(kind)))
    for described in (schema, *schema["$defs"].values()):
        described["additionalProperties"] = False
    return Draft202012Validator(schema, validate_formats=True)


def problems(envelope: dict[str, Any]) -> list[str]:
    """Return a message for each fault of an event's body."""
    kind = envelope["type"]
    return [f"{kind}: {fault.message}" for fault in _validator(EventType(kind)).iter_errors(envelope)]


def install() -> None:
    """From now on in this process, check each event that the service emits."""
    for emitter in EMITTERS:
        emitter.outbox = CheckedOutbox()  # type: ignore[attr-defined]


class CheckedOutbox:
    """A replacement for the module `webhooks.outbox` in the modules that emit the service's events.

    The replacement checks the body of each event. Queue tests use the module `webhooks.outbox` itself, so they can emit
    invented events.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(outbox, name)

    def emit(self, *args: Any, **kwargs: Any) -> Event:
        return _checked([outbox.emit(*args, **kwargs)])[0]

    def emit_all(self, *args: Any, **kwargs: Any) -> Sequence[Event]:
        return _checked(outbox.emit_all(*args, **kwargs))


def _checked(events: Sequence[Event]) -> Sequence[Event]:
    for event in events:
        assert problems(json.loads(event.plain_body)) == []
    return events
