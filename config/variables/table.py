"""The table of all environment variables, and their values.

`make variables` uses it to write `.env.example` and the table in docs/operate.md.
"""

from dataclasses import dataclass, fields

from config.variables.basics import Basics
from config.variables.operation import Operation
from config.variables.partners import Partners
from config.variables.variable import Variable


@dataclass(frozen=True)
class Variables(Operation, Partners, Basics):
    """The values of all variables, by variable name. `reading.read` makes it."""


TABLE: dict[str, Variable] = {field.name: field.metadata["variable"] for field in fields(Variables)}

# Variables in the environment that other programs read: Docker Compose, the proxy, PgBouncer, `make run`, AWS.
OTHERS = {
    *("COMMIT", "PORT", "SERVER_NAME", "POSTGRES_PASSWORD", "CHECKOUT_PASSWORD", "VALKEY_PASSWORD"),
    *("NGINX_IMAGE", "POSTGRES_IMAGE", "VALKEY_IMAGE"),
    *("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "CHECKOUT_ENV", "CHECKOUT_USER"),
}
