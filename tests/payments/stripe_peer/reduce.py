"""Reduces the definitions of the Stripe requests that we use to names, types and enumerations.

`python -m tests.payments.stripe_peer.reduce` reads the parameters from the installed `stripe` library and
writes `parameters.json`. Stripe generates this library from the OpenAPI document of one API version. The file
does not contain Stripe's descriptions.
"""

import json
import sys
import types
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import stripe
from stripe import RequestOptions
from typing_extensions import is_typeddict  # recognises the library's types; the one in `typing` does not

FILE = Path(__file__).with_name("parameters.json")
PATHS = {
    "POST /v1/payment_intents": "payment_intent_create",
    "GET /v1/payment_intents": "payment_intent_list",
    "GET /v1/payment_intents/{id}": "payment_intent_retrieve",
    "POST /v1/payment_intents/{id}": "payment_intent_update",
    "POST /v1/payment_intents/{id}/confirm": "payment_intent_confirm",
    "POST /v1/payment_intents/{id}/capture": "payment_intent_capture",
    "POST /v1/payment_intents/{id}/cancel": "payment_intent_cancel",
    "POST /v1/refunds": "refund_create",
    "GET /v1/refunds": "refund_list",
    "GET /v1/refunds/{id}": "refund_retrieve",
    "POST /v1/refunds/{id}": "refund_update",
    "GET /v1/charges": "charge_list",
    "GET /v1/charges/{id}": "charge_retrieve",
    "GET /v1/disputes": "dispute_list",
    "GET /v1/disputes/{id}": "dispute_retrieve",
    "POST /v1/disputes/{id}": "dispute_update",
    "POST /v1/disputes/{id}/close": "dispute_close",
    "GET /v1/events": "event_list",
    "GET /v1/events/{id}": "event_retrieve",
    "GET /v1/balance_transactions": "balance_transaction_list",
    "GET /v1/balance_transactions/{id}": "balance_transaction_retrieve",
    "GET /v1/payouts": "payout_list",
    "POST /v1/payment_methods": "payment_method_create",
    "GET /v1/payment_methods/{id}": "payment_method_retrieve",
    "GET /v1/confirmation_tokens/{id}": "confirmation_token_retrieve",
    "POST /v1/test_helpers/confirmation_tokens": "test_helpers.confirmation_token_create",
    "GET /v1/account": "account_retrieve_current",
    "POST /v1/webhook_endpoints": "webhook_endpoint_create",
    "GET /v1/webhook_endpoints": "webhook_endpoint_list",
    "POST /v1/payment_method_domains": "payment_method_domain_create",
    "GET /v1/payment_method_domains": "payment_method_domain_list",
}
PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", Any: "any"}
Reduced = dict[str, Any]
# These names occur in the type hints of RequestOptions, which is part of each request's parameters.
_NAMES = {"StripeContext": str, "Mapping": Mapping}


def reduce() -> Reduced:
    """Return the requests in `PATHS` and, by name, all types that they use."""
    kinds_by_name: Reduced = {}
    paths = {path: _add(_parameters(name), kinds_by_name) for path, name in PATHS.items()}
    source = f"stripe {version('stripe')} (Python), parameters generated from Stripe's OpenAPI document"
    return {"source": source, "version": stripe.api_version, "paths": paths, "types": kinds_by_name}


def _parameters(name: str) -> Any:
    *folder, last = name.split(".")
    module = import_module(".".join(["stripe.params", *folder, f"_{last}_params"]))
    return getattr(module, "".join(map(str.capitalize, last.split("_"))) + "Params")


def _add(kind: Any, kinds_by_name: Reduced) -> str:
    name: str = kind.__name__
    if name not in kinds_by_name:
        kinds_by_name[name] = {}
        hints = get_type_hints(kind, _NAMES | vars(sys.modules[kind.__module__]))
        own = {field: hint for field, hint in hints.items() if field not in RequestOptions.__annotations__}
        kinds_by_name[name]["required"] = sorted(kind.__required_keys__ & set(own))
        kinds_by_name[name]["fields"] = {field: _type(own[field], kinds_by_name) for field in sorted(own)}
    return name


def _type(hint: Any, kinds_by_name: Reduced) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in PLAIN:
        return PLAIN[hint]
    if is_typeddict(hint):
        return {"type": _add(hint, kinds_by_name)}
    if origin in (Union, types.UnionType):
        return _one_of([_type(argument, kinds_by_name) for argument in arguments])
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (list, dict):
        return {"list" if origin is list else "map": _type(arguments[-1], kinds_by_name)}
    # All other kinds of type were handled above. The remaining type is the library's own class for metadata.
    return {"map": "string"}


def _one_of(kinds: list[Any]) -> Any:
    """Return a single type, or an `any` of several types.

    For an enumeration, the library also allows any string, because values can be added in future. This
    possibility is left out.
    """
    listed = any(isinstance(kind, dict) and kind.get("enum", [""]) != [""] for kind in kinds)
    left = [kind for kind in kinds if not (listed and kind == "string")]
    single = [kind for number, kind in enumerate(left) if kind not in left[:number]]
    return single[0] if len(single) == 1 else {"any": single}


def written(reduced: Reduced) -> str:
    """Return the requests and types as JSON, with one type per line, so that diffs are readable."""
    head = {name: reduced[name] for name in ("source", "version", "paths")}
    lines = [f"  {json.dumps(name)}: {json.dumps(kind)}" for name, kind in sorted(reduced["types"].items())]
    return json.dumps(head, indent=1)[:-2] + ',\n "types": {\n' + ",\n".join(lines) + "\n }\n}\n"


if __name__ == "__main__":
    FILE.write_text(written(reduce()))
