"""The collection's purchase, from the token to the settled refund. Each request checks its answer."""

from typing import Any

Schema = dict[str, Any]
TITLE = "A purchase, from top to bottom"
ABOUT = (
    "Run this folder: it gets a token, creates a checkout, pays it as the customer does on the page, captures it and "
    "gives the money back. The helpers of the sandbox stand in for the customer and for time."
)
# The calls in order, each with the status of its answer and the state of the checkout in it.
STEPS = (
    ("get_token", 200, ""),
    ("create_checkout", 201, "created"),
    ("sandbox_pay", 200, "authorized"),
    ("read_checkout", 200, "authorized"),
    ("capture_checkout", 200, "captured"),
    ("refund_checkout", 204, ""),
    ("sandbox_advance", 200, "refunded"),
    ("read_checkout", 200, "refunded"),
)
WAITED = "sandbox_advance"  # repeated until the provider has confirmed
MAX_ASKED = 20
# Scripts that keep values of an answer, for later calls, in the collection's variables.
KEPT = {
    "get_token": "if (pm.response.code === 200) "
    "pm.collectionVariables.set('access_token', pm.response.json().access_token)",
    "create_checkout": "if (pm.response.code === 201) "
    "pm.collectionVariables.set('checkout_uuid', pm.response.json().data.checkout_uuid)",
}


def folder(requests: Schema) -> Schema:
    """Return the folder. `requests` holds every call by its name."""
    items = [_step(requests[name], name, status, state) for name, status, state in STEPS]
    return {"name": TITLE, "description": ABOUT, "item": items}


def kept_by(name: str) -> list[Schema]:
    """Return the script that keeps a value of the named call's answer, if later calls need it."""
    return [_script("test", [KEPT[name]])] if name in KEPT else []


def _step(item: Schema, name: str, status: int, state: str) -> Schema:
    lines = [KEPT[name]] if name in KEPT else []
    wanted = [f"pm.test('answers {status}', () => pm.response.to.have.status({status}))"]
    if state:
        seen = "pm.response.json().data.status"
        wanted += [f"pm.test('is {state}', () => pm.expect({seen}).to.eql('{state}'))"]
    if name == WAITED:
        wanted = _asked_again(state, wanted)
    return item | {"event": [_script("test", lines + wanted)], "response": []}


def _asked_again(state: str, wanted: list[str]) -> list[str]:
    """Return the lines that repeat the request after a second, until the checkout has this state."""
    return [
        "const answer = pm.response.json()",
        "const asked = Number(pm.collectionVariables.get('asked') || 0) + 1",
        f"const done = (answer.data && answer.data.status === '{state}') || asked >= {MAX_ASKED}",
        "pm.collectionVariables.set('asked', done ? 0 : asked)",
        "if (!done) {",
        "  pm.execution.setNextRequest(pm.info.requestId)",
        "  setTimeout(() => {}, 1000)",
        "} else {",
        *(f"  {line}" for line in wanted),
        "}",
    ]


def _script(listen: str, lines: list[str]) -> Schema:
    return {"listen": listen, "script": {"type": "text/javascript", "exec": lines}}
