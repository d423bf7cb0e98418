"""The API's document and error table, as the documentation page gets them.

`config` builds both and passes them to the page, because only `config` knows all calls and errors.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

Schema: TypeAlias = dict[str, Any]
WRAPPED = "Response"  # the suffix in the names of response envelopes


class ErrorCode(NamedTuple):
    """An error code of the API, with an example of its body.

    If many calls can return it, `returned_by` describes them. Otherwise it is "".
    """

    status: int
    message: str
    example: Schema
    returned_by: str


class Reference(NamedTuple):
    """The API's OpenAPI document, the order of its operations by their ids, and its error codes."""

    document: Schema
    operations: list[str]
    errors: dict[str, ErrorCode]


ReadReference: TypeAlias = Callable[[], Reference]
