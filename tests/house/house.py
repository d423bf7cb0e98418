"""Checks the structure of the repository, for `make check`. The files are read without importing them.

The checks refuse:
- folders with too many modules, and files and functions that are too long
- packages whose docstring does not say what they contain
- large modules that no test file is named after
- templates that are too long or too wide, and sizes that only the portal uses
- translated words inside an f-string, because `make messages` does not find them
- SQL outside the `statements` modules
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

ROOT = Path(__file__).resolve().parents[2]
APPS = ("checkout", "config", "hosted_page", "payments", "portal", "webhooks")
# Maximum number of modules in a folder. __init__.py and apps.py do not count.
MAX_MODULES = 20
MAX_LINES = 400
# Maximum number of lines of a view, and of any other function of the product. The count starts at `def` and
# leaves out the docstring.
MAX_OF_VIEW = 15
MAX_OF_FUNCTION = 25
MAX_TEMPLATE_LINES = 80
MAX_TEMPLATE_WIDTH = 160
# The style sheets in this folder take all sizes from tokens.css, except the breakpoints.
PORTAL = "static/css/portal"
# Files that may be longer than MAX_LINES, because each has one topic. Merchants download the second file.
LONGER = {
    "config/settings.py": 500,
    "portal/developer_docs/listen.py": 480,
    "portal/developer_docs/mcp.py": 460,
}
# Functions that only return a table, which they build with queries. They may be longer than MAX_OF_FUNCTION,
# because a long table is still easy to read.
TABLES = {
    "portal/dashboard/checklist.py checklist_of": "the checklist: a step of five lines each",
    "portal/deliveries/log.py delivery_details": "what the delivery's page shows: a field a line",
}
# Modules that may contain SQL or use a cursor, each with the reason. For all other modules, the SQL is in
# `statements` modules, and `queries` runs it.
OWN_SQL = {
    "config/lib/database/queries.py": "runs the statements",
    "config/lib/prepared.py": "runs Django's SQL",
    "config/local/servers.py": "creates the database of a local run",
    "config/local/shop.py": "the example shop has its own database, in SQLite",
    "config/local/shop_site.py": "the example shop has its own database, in SQLite",
    "config/management/commands/migrate.py": "sets limits on one session and reads its process id",
    "config/roles.py": "a list of the privileges of database roles",
    "payments/restore_guard.py": "must read on one given connection",
    "webhooks/delivery.py": "registers loaders on its cursor",
}
Function = ast.FunctionDef | ast.AsyncFunctionDef
REQUESTS = ("HttpRequest", "Request")
# A module with at least this many lines needs its own test file, tests/<folder>/test_<name>.py.
WEIGHT = 100
# Names of modules or folders that need no test file, because the tests of other modules cover them.
PLAIN = {"models", "statements", "urls"}
# Modules that have no test file of the same name, each with the test file that covers it.
SHOWN_BY = {
    "checkout/api/responses.py": "config/openapi/test_schema.py",
    "config/lib/admin/lists.py": "portal/test_admin_pages.py",
    "config/lib/api/fields.py": "checkout/api/test_serializers.py",
    "config/lib/web/bodies.py": "journeys/test_bodies.py",
    "config/variables/basics.py": "config/variables/test_reading.py",
    "config/variables/checks.py": "config/variables/test_reading.py",
    "config/variables/value_types.py": "config/variables/test_reading.py",
    "config/variables/operation.py": "config/variables/test_reading.py",
    "config/variables/partners.py": "config/variables/test_reading.py",
    "config/local/children.py": "config/local/test_engines.py",
    "config/local/servers.py": "config/local/test_run.py",
    "config/local/shop_site.py": "config/local/test_shop.py",
    "portal/accounts/operators.py": "portal/accounts/test_operators_proof.py",
    "portal/developer_docs/causes.py": "portal/developer_docs/test_page.py",
    "config/openapi/errors.py": "config/openapi/test_schema.py",
    "config/openapi/events.py": "config/openapi/test_schema.py",
    "portal/developer_docs/guide.py": "portal/developer_docs/test_page.py",
    "portal/developer_docs/page_fields.py": "portal/developer_docs/test_page.py",
    "config/openapi/oauth.py": "config/openapi/test_schema.py",
    "portal/developer_docs/recipes.py": "journeys/documented/test_recipes.py",
    "hosted_page/payment_target.py": "hosted_page/group/test_mate_page.py",
    "hosted_page/rendering.py": "hosted_page/test_views.py",
    "hosted_page/steps/split_form.py": "hosted_page/steps/test_split.py",
    "webhooks/api/responses.py": "config/openapi/test_schema.py",
    "payments/provider.py": "payments/providers/conformance/test_verbs.py",
    "payments/providers/sandbox/adapter.py": "payments/providers/conformance/test_verbs.py",
    "payments/providers/stripe/intents.py": "payments/providers/conformance/test_verbs.py",
}
# Functions that return a text in the payer's language.
SAYS = frozenset(
    ("_", "gettext", "gettext_lazy", "gettext_noop", "ngettext", "ngettext_lazy", "pgettext", "pgettext_lazy")
)
_SIZE = re.compile(r"\drem\b")
_SQL = re.compile(
    r"\s*(?:SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM|WITH \w+ AS|(?:CREATE|ALTER|DROP|LOCK) [A-Z]+|GRANT|REVOKE)\b"
)


def problems(root: Path = ROOT) -> Iterator[str]:
    """Yield each problem of the project at `root` as a sentence."""
    for folder in sorted({path.parent for path in _modules(root)}):
        yield from _of_folder(root, folder)
    for path in _modules(root):
        yield from _of_file(path.relative_to(root).as_posix(), path.read_text())
    yield from _of_tests(root)
    for path in sorted((root / "templates").rglob("*.*")):
        yield from _of_template(path.relative_to(root).as_posix(), path.read_text())
    for path in sorted((root / PORTAL).glob("*.css")):
        yield from _of_sizes(path.relative_to(root).as_posix(), path.read_text())


def packages(root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """Yield each package and the first line of its docstring. Packages of commands and template tags are left out."""
    for folder in sorted({path.parent for path in _modules(root)}):
        if not {"management", "templatetags"} & set(folder.parts):
            said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
            yield folder.relative_to(root).as_posix(), said.partition("\n")[0]


def _modules(root: Path) -> list[Path]:
    found = (path for app in APPS for path in (root / app).rglob("*.py"))
    return sorted(path for path in found if "migrations" not in path.parts)


def _of_folder(root: Path, folder: Path) -> Iterator[str]:
    name = folder.relative_to(root).as_posix()
    yield from _of_size(root, folder)
    said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    if not said and "management" not in folder.parts:
        yield f"{name}/__init__.py does not say what lives there."


def _of_size(root: Path, folder: Path) -> Iterator[str]:
    count = sum(path.name not in ("__init__.py", "apps.py") for path in folder.glob("*.py"))
    if count > MAX_MODULES:
        name = folder.relative_to(root).as_posix()
        yield f"{name} holds {count} modules: group them by topic, {MAX_MODULES} at most."


def _of_file(name: str, text: str) -> Iterator[str]:
    lines = text.count("\n")
    if lines > LONGER.get(name, MAX_LINES):
        yield f"{name} has {lines} lines: is it still one room?"
    tree = ast.parse(text)
    yield from _of_words(name, tree)
    yield from _of_transactions(name, tree)
    yield from _of_sql(name, tree)
    for function in _functions(tree):
        lines, place = _lines(function), f"{name}:{function.lineno} {function.name}"
        if _is_view(function) and lines > MAX_OF_VIEW:
            yield f"{place} has {lines} lines: a view reads, makes one call, shows the result."
        is_long = lines > MAX_OF_FUNCTION
        if is_long and not _is_view(function) and f"{name} {function.name}" not in TABLES:
            yield f"{place} has {lines} lines: which part of it has a name of its own?"
        if not is_long and f"{name} {function.name}" in TABLES:
            yield f"{place} needs no place in TABLES."


def _of_words(name: str, tree: ast.AST) -> Iterator[str]:
    """Yield translated texts inside f-strings. Such texts are in no catalogue, so they would stay English."""
    for string in ast.walk(tree):
        for call in ast.walk(string) if isinstance(string, ast.JoinedStr) else ():
            if isinstance(call, ast.Call) and SAYS & {getattr(call.func, key, "") for key in ("id", "attr")}:
                yield f"{name}:{call.lineno} says words within an f-string, where nothing collects them."


def _of_transactions(name: str, tree: ast.AST) -> Iterator[str]:
    """Yield each `transaction.atomic` that has neither a `durable` nor a `savepoint` argument."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    stated = {
        id(call.func) for call in calls if {key.arg for key in call.keywords} & {"durable", "savepoint"}
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and ast.unparse(node) == "transaction.atomic"
            and id(node) not in stated
        ):
            yield f"{name}:{node.lineno} has an atomic without durable=True or savepoint=."


def _of_sql(name: str, tree: ast.AST) -> Iterator[str]:
    """Yield SQL and cursors in modules that are not in OWN_SQL, and modules in OWN_SQL that need neither."""
    lines = [node.lineno for node in ast.walk(tree) if _is_sql(node)]
    if name in OWN_SQL and not lines:
        yield f"{name} needs no place in OWN_SQL."
    if name not in OWN_SQL and not name.endswith("/statements.py"):
        for line in lines:
            yield f"{name}:{line} has SQL or a cursor: put the statement into a statements module."


def _is_sql(node: ast.AST) -> TypeGuard[ast.Constant | ast.Call]:
    match node:
        case ast.Constant(value=str(text)):
            return _SQL.match(text) is not None
        case ast.Call(func=ast.Attribute(attr="cursor")):
            return True
        case _:
            return False


def _functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _lines(function: Function) -> int:
    """Return how many lines a function has without its docstring."""
    said = function.body[0] if ast.get_docstring(function) is not None else None
    docstring = (said.end_lineno or 0) - said.lineno + 1 if said else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docstring


def _is_view(function: Function) -> bool:
    given = [parameter for parameter in function.args.args if parameter.arg != "self"]
    takes = given[0].annotation if given else None
    if takes is None or function.returns is None:
        return False
    returned = {part.id for part in ast.walk(function.returns) if isinstance(part, ast.Name)}
    return ast.unparse(takes) in REQUESTS and any("Response" in name for name in returned)


def _of_tests(root: Path) -> Iterator[str]:
    """Yield large modules without a test file of the same name, and test files and folders that are too long."""
    tests = [path for path in (root / "tests").rglob("*.py") if "node_modules" not in path.parts]
    for folder in sorted({path.parent for path in tests}):
        yield from _of_size(root, folder)
    for path in sorted(tests):
        lines = path.read_text().count("\n")
        if lines > MAX_LINES:
            yield f"{path.relative_to(root).as_posix()} has {lines} lines: split it by topic."
    for path in _modules(root):
        name = path.relative_to(root).as_posix()
        own = f"{path.parent.relative_to(root).as_posix()}/test_{path.name}"
        shown_by = SHOWN_BY.get(name, own)
        is_heavy = PLAIN.isdisjoint({path.stem, path.parent.name}) and path.read_text().count("\n") >= WEIGHT
        if is_heavy and not (root / "tests" / shown_by).exists():
            yield f"{name} has no tests/{shown_by}."
        if name in SHOWN_BY and (not is_heavy or (root / "tests" / own).exists()):
            yield f"{name} needs no place in SHOWN_BY."


def _of_template(name: str, text: str) -> Iterator[str]:
    lines = text.splitlines()
    if len(lines) > MAX_TEMPLATE_LINES:
        yield f"{name} has {len(lines)} lines: which part of it has a meaning of its own?"
    for number, line in enumerate(lines, start=1):
        if len(line) > MAX_TEMPLATE_WIDTH:
            yield f"{name}:{number} has {len(line)} characters, {MAX_TEMPLATE_WIDTH} at most."


def _of_sizes(name: str, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), start=1):
        if _SIZE.search(line) and not line.startswith(("@media", "@container")):
            yield f"{name}:{number} has a size of its own: {line.strip()} Take one of tokens.css."


if __name__ == "__main__":
    found = list(problems())
    print("\n".join(found) or "The house is in order.")
    sys.exit(bool(found))
