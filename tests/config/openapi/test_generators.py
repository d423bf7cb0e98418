"""The API's document contains no construct that breaks a client of openapi-generator, in any language."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.config import described
from tests.journeys.generated import making, openapi_generator

# Classes that the generators add to a client. Some generators put them next to the classes of the document's schemas.
OWN_CLASSES = {
    "ApiAbstractions", "ApiBase", "ApiCallback", "ApiClient", "ApiError", "ApiException", "ApiModelBase", "ApiResponse",
    "Configuration", "FormDataProcessor", "GenericOpenAPIError", "HeaderSelector", "ObjectSerializer", "Pair",
    "ServerConfiguration", "ServerVariable",
}  # fmt: skip
# Look-around, `\u`, `\p`, and bytes of UTF-8 sequences.
NOT_PORTABLE = re.compile(r"\(\?|\\[up]|\\x[89A-Fa-f]")
FORM = "application/x-www-form-urlencoded"
# The endings of the generated files, by generator. These clients are not recommended, so no test compiles them.
UNRECOMMENDED = {"java": ".java", "kotlin": ".kt", "csharp": ".cs"}
COMMENT = re.compile(r"^\s*(\*|//|/\*).*$", re.MULTILINE)
IMPORTED_MODEL = re.compile(r"^import org\.openapitools\.client\.models?\.(\w+);?$", re.MULTILINE)
TYPE_OF_NULL = re.compile(r"(:\s*|\b(?:public|private)\s+)(Model|Json)?Null\b")
TIME_PATTERN = r"\d{4}-\d{2}-\d{2}T"


@pytest.fixture
def document() -> dict[str, Any]:
    return described.document()


def parts_of(value: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each object in the document, with its position."""
    if isinstance(value, dict):
        yield place, value
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for name, member in members:
        yield from parts_of(member, f"{place}/{name}")


@pytest.mark.rule("api.clients")
def test_patterns_are_on_plain_strings_and_mean_the_same_in_every_language(document: dict[str, Any]) -> None:
    with_pattern = {place: part for place, part in parts_of(document) if isinstance(part.get("pattern"), str)}
    assert len(with_pattern) > 10
    formats = {part.get("format") for part in with_pattern.values()}
    assert formats <= {
        None,
        "uri",
    }  # generators match a pattern against the parsed time, not against the text
    refused = [place for place, part in with_pattern.items() if NOT_PORTABLE.search(part["pattern"])]
    assert refused == []


@pytest.mark.rule("api.clients")
def test_no_property_is_always_null(document: dict[str, Any]) -> None:
    schemas = parts_of(document["components"]["schemas"])
    properties = [
        (f"{place}/{name}", shown)
        for place, part in schemas
        if isinstance(part.get("properties"), dict)
        for name, shown in part["properties"].items()
    ]
    assert len(properties) > 200
    assert [place for place, shown in properties if shown.get("type") == "null"] == []


@pytest.mark.rule("api.clients")
def test_names_collide_neither_with_classes_of_generators_nor_with_constructors(
    document: dict[str, Any],
) -> None:
    names = set(document["components"]["schemas"])
    constructors = {f"{prefix}{name}" for name in names for prefix in ("New", "Nullable")}  # in Go
    assert names & (OWN_CLASSES | constructors) == set()
    assert len({name.lower() for name in names}) == len(names)


@pytest.mark.rule("api.clients")
def test_no_schema_is_only_for_a_form(document: dict[str, Any]) -> None:
    contents = [part["content"] for _, part in parts_of(document["paths"]) if FORM in part.get("content", {})]
    assert len(contents) == 2
    for content in contents:
        assert content[FORM]["schema"] == content["application/json"]["schema"]


@pytest.mark.long
@pytest.mark.rule("api.clients")
@pytest.mark.parametrize("generator", UNRECOMMENDED)
def test_other_generators_make_whole_clients(
    generator: str, document: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    call = ("openapi-generator-cli", "generate", "-g", generator, "-i", "openapi.json", "-o", "client")
    making.run(*call, within=tmp_path)
    ending = UNRECOMMENDED[generator]
    code = {
        path: COMMENT.sub("", path.read_text())
        for path in tmp_path.rglob(f"client/**/*{ending}")
        if not {"test", "Org.OpenAPITools.Test"} & set(path.parts)
    }
    models = {path.stem for path in code if path.parent.name.lower() in ("model", "models")}
    assert len(models) > 50 and "TokenRequest" in models
    imported = {name for text in code.values() for name in IMPORTED_MODEL.findall(text)}
    assert imported <= models
    assert (
        models & {path.stem for path in code if path.parent.name in ("client", "Client", "infrastructure")}
        == set()
    )
    assert [path.name for path, text in code.items() if TYPE_OF_NULL.search(text)] == []
    assert [path.name for path, text in code.items() if TIME_PATTERN in text] == []
    assert openapi_generator.numbered(models) == []
