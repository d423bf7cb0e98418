"""The API's OpenAPI document, generated from the views, serializers, and the error table."""

from typing import Any


def settings(base_url: str) -> dict[str, Any]:
    """Return drf-spectacular's settings for the document of the API at this address."""
    return {
        "TITLE": "Merchant Checkout Service",
        "VERSION": "1",
        "OAS_VERSION": "3.1.1",
        "SERVERS": [{"url": base_url}],
        "PREPROCESSING_HOOKS": ["config.openapi.schema.select_described"],
        "POSTPROCESSING_HOOKS": ["config.openapi.schema.complete_document"],
        "PATH_CONVERTER_OVERRIDES": {"api_uuid": {"type": "string", "format": "uuid"}},
        "SORT_OPERATIONS": False,
        "SORT_OPERATION_PARAMETERS": False,
        "DISABLE_DOCSTRING_DESCRIPTIONS": True,
        "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
        "GENERIC_ADDITIONAL_PROPERTIES": None,
        "ENABLE_DJANGO_DEPLOY_CHECK": False,
    }
