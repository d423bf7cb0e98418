"""The API's document and the error table, in the form that the documentation page uses.

`config` builds both and passes them to the page, because only `config` knows all calls and errors.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

Schema: TypeAlias = dict[str, Any]
WRAPPED = "Response"  # the names of response envelopes end with it


class ErrorCode(NamedTuple):
    """An error code of the API, with an example of its body.

    If many calls can return the code, `returned_by` describes these calls. Otherwise it is "".
    """

    status: int
    message: str
    example: Schema
    returned_by: str


class Reference(NamedTuple):
    """The API's OpenAPI document, the ids of its operations in order, and its error codes."""

    document: Schema
    operations: list[str]
    errors: dict[str, ErrorCode]


ReadReference: TypeAlias = Callable[[], Reference]
