"""Builds the error responses of the peer in Stripe's format."""

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

REQUEST = "invalid_request_error"
CARD = "card_error"
IDEMPOTENCY = "idempotency_error"
API = "api_error"


@dataclass
class Refusal(Exception):
    """An error response. (Reference: "Errors", https://docs.stripe.com/api/errors)"""

    message: str
    code: str = ""
    param: str = ""
    status: int = HTTPStatus.BAD_REQUEST
    type: str = REQUEST
    extra_fields: dict[str, Any] = field(default_factory=dict)

    @property
    def as_json(self) -> dict[str, Any]:
        """Return the `error` object of the response, without empty fields."""
        fields = {"code": self.code, "message": self.message, "param": self.param, "type": self.type}
        link = {"doc_url": f"https://stripe.com/docs/error-codes/{self.code.replace('_', '-')}"}
        return (
            {name: value for name, value in fields.items() if value}
            | self.extra_fields
            | (link if self.code else {})
        )


def missing(kind: str, object_id: str, param: str = "id") -> Refusal:
    """Return the error for an id that this account does not have. (Reference: error code `resource_missing`)

    The status is 404 for an id in the path, and 400 for an id in a parameter.
    """
    status = HTTPStatus.NOT_FOUND if param in ("id", "intent") else HTTPStatus.BAD_REQUEST
    return Refusal(f"No such {kind}: '{object_id}'", "resource_missing", param, status)


def unexpected_state(message: str, **extra_fields: Any) -> Refusal:
    """Return the error for a PaymentIntent whose status does not allow the request.

    (`payment_intent_unexpected_state`)
    """
    return Refusal(message, "payment_intent_unexpected_state", extra_fields=extra_fields)
