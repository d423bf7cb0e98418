"""The structure checks of `make check` find each kind of problem, and find no problem in this repository."""

from pathlib import Path

import pytest

from tests.house import house


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project without problems."""
    for app in house.APPS:
        (tmp_path / app).mkdir()
        (tmp_path / app / "__init__.py").write_text('"""What lives here."""\n')
    (tmp_path / "templates" / "portal").mkdir(parents=True)
    (tmp_path / house.PORTAL).mkdir(parents=True)
    (tmp_path / house.PORTAL / "rows.css").write_text(
        "@media (min-width: 40rem) {\n  .rows {\n    gap: var(--s2);\n  }\n}\n"
    )
    return tmp_path


# `make check` runs the same check, so not every test run needs it.
@pytest.mark.long
def test_this_repository_has_no_problem() -> None:
    assert list(house.problems()) == []


def test_a_correct_project_has_no_problem(project: Path) -> None:
    (project / "payments" / "ledger.py").write_text("def post(amount: int) -> None:\n    total = amount\n")
    assert list(house.problems(project)) == []


def test_a_folder_that_is_too_full(project: Path) -> None:
    for number in range(house.MAX_MODULES):
        (project / "portal" / f"module_{number}.py").touch()
    (project / "portal" / "apps.py").touch()
    assert list(house.problems(project)) == []
    (project / "portal" / "another.py").touch()
    assert [said.split(":")[0] for said in house.problems(project)] == ["portal holds 21 modules"]


def test_a_folder_of_tests_that_is_too_full(project: Path) -> None:
    (project / "tests" / "portal").mkdir(parents=True)
    for number in range(house.MAX_MODULES + 1):
        (project / "tests" / "portal" / f"test_{number}.py").touch()
    assert [said.split(":")[0] for said in house.problems(project)] == ["tests/portal holds 21 modules"]


def test_a_package_without_a_docstring(project: Path) -> None:
    (project / "webhooks" / "__init__.py").write_text("")
    assert list(house.problems(project)) == ["webhooks/__init__.py does not say what lives there."]


def test_a_file_that_is_too_long(project: Path) -> None:
    (project / "webhooks" / "models.py").write_text("\n" * (house.MAX_LINES + 1))
    assert list(house.problems(project)) == ["webhooks/models.py has 401 lines: is it still one room?"]


@pytest.mark.parametrize(
    "call",
    ["_('Paid')", "translation.gettext('Paid')", "f'{ngettext(one, many, 2)}'", "pgettext('a', 'b')[0]"],
)
def test_translatable_text_within_an_f_string(project: Path, call: str) -> None:
    (project / "hosted_page" / "status.py").write_text(f'told = f"{{{call}}} {{asks}}"\n')
    (said,) = set(house.problems(project))
    assert said == "hosted_page/status.py:1 says words within an f-string, where nothing collects them."


@pytest.mark.parametrize(
    "code", ["with transaction.atomic():", "@transaction.atomic", "@transaction.atomic()"]
)
def test_an_atomic_without_durable_or_savepoint(project: Path, code: str) -> None:
    after = "\n    pass\n" if code.startswith("with") else "\ndef save() -> None: ...\n"
    (project / "checkout/saving.py").write_text(f"from django.db import transaction\n\n{code}{after}")
    assert list(house.problems(project)) == [
        "checkout/saving.py:3 has an atomic without durable=True or savepoint=."
    ]
    stated = code.replace("()", "").replace("atomic", "atomic(durable=True)")
    (project / "checkout/saving.py").write_text(f"from django.db import transaction\n\n{stated}{after}")
    assert list(house.problems(project)) == []


def test_translated_text_inserted_into_an_f_string_is_accepted(project: Path) -> None:
    (project / "hosted_page" / "status.py").write_text('words = _("Paid")\ntold = f"{words} {asks(words)}"\n')
    assert list(house.problems(project)) == []


VIEW = 'def show(request: HttpRequest) -> {response}:\n    """Show it.\n\n    To all.\n    """\n'


class TestAView:
    @pytest.mark.parametrize(
        "response", ["HttpResponse", "HttpResponseRedirect", "Customer | HttpResponse", "Response"]
    )
    def test_that_is_too_long(self, project: Path, response: str) -> None:
        view = VIEW.format(response=response)
        long_enough = view + "    pass\n" * (house.MAX_OF_VIEW - 1)
        (project / "portal" / "pages.py").write_text(long_enough)
        assert list(house.problems(project)) == []
        (project / "portal" / "pages.py").write_text(long_enough + "    pass\n")
        (said,) = house.problems(project)
        assert said.startswith("portal/pages.py:1 show has 16 lines")

    def test_that_is_a_method(self, project: Path) -> None:
        method = "class Pay:\n    def post(self, request: Request) -> Response:\n" + "        pass\n" * 15
        (project / "checkout" / "views.py").write_text(method)
        (said,) = house.problems(project)
        assert said.startswith("checkout/views.py:2 post has 16 lines")

    @pytest.mark.parametrize(
        "signature",
        [
            "def of(request: HttpRequest) -> UUID | None:",
            "def show(context: Context) -> HttpResponse:",
            "def show() -> HttpResponse:",
        ],
    )
    def test_is_a_function_that_takes_a_request_and_returns_a_response(
        self, project: Path, signature: str
    ) -> None:
        (project / "portal" / "pages.py").write_text(f"{signature}\n" + "    pass\n" * 20)
        assert list(house.problems(project)) == []


class TestAFunction:
    @pytest.mark.parametrize("kind", ["def", "async def"])
    def test_that_is_too_long(self, project: Path, kind: str) -> None:
        long_enough = f'{kind} post() -> None:\n    """Post it."""\n' + "    pass\n" * (
            house.MAX_OF_FUNCTION - 1
        )
        (project / "payments" / "ledger.py").write_text(long_enough)
        assert list(house.problems(project)) == []
        (project / "payments" / "ledger.py").write_text(long_enough + "    pass\n")
        (said,) = house.problems(project)
        assert said == "payments/ledger.py:1 post has 26 lines: which part of it has a name of its own?"

    def test_that_is_listed_as_a_table_can_be_long(self, project: Path) -> None:
        (project / "portal" / "dashboard").mkdir()
        (project / "portal" / "dashboard" / "__init__.py").write_text('"""Home."""\n')
        table = project / "portal" / "dashboard" / "checklist.py"
        table.write_text("def checklist_of() -> None:\n" + "    pass\n" * 40)
        assert list(house.problems(project)) == []
        table.write_text("def checklist_of() -> None:\n    pass\n")
        (said,) = house.problems(project)
        assert said == "portal/dashboard/checklist.py:1 checklist_of needs no place in TABLES."


@pytest.mark.parametrize(
    ("module", "tests"),
    [
        ("checkout/verbs.py", "checkout/test_verbs.py"),
        ("payments/provider.py", "payments/providers/conformance/test_verbs.py"),
    ],
)
def test_a_large_module_without_a_test_file_of_its_name(project: Path, module: str, tests: str) -> None:
    (project / module).write_text("\n" * house.WEIGHT)
    assert list(house.problems(project)) == [f"{module} has no tests/{tests}."]
    (project / "tests" / tests).parent.mkdir(parents=True)
    (project / "tests" / tests).touch()
    assert list(house.problems(project)) == []


@pytest.mark.parametrize("module", ["portal/models.py", "payments/models/books.py", "portal/urls.py"])
def test_a_large_module_that_needs_no_test_file(project: Path, module: str) -> None:
    (project / "payments" / "models").mkdir()
    (project / "payments" / "models" / "__init__.py").write_text('"""The tables."""\n')
    (project / module).write_text("\n" * house.WEIGHT)
    assert list(house.problems(project)) == []


def test_an_unneeded_entry_for_a_module_in_shown_by(project: Path) -> None:
    (project / "payments" / "provider.py").write_text("\n" * (house.WEIGHT - 1))
    assert list(house.problems(project)) == ["payments/provider.py needs no place in SHOWN_BY."]


def test_a_test_file_that_is_too_long(project: Path) -> None:
    (project / "tests").mkdir()
    (project / "tests" / "test_verbs.py").write_text("\n" * (house.MAX_LINES + 1))
    assert list(house.problems(project)) == ["tests/test_verbs.py has 401 lines: split it by topic."]


def test_each_module_in_shown_by_exists() -> None:
    assert [name for name in house.SHOWN_BY if not (house.ROOT / name).exists()] == []


def test_a_template_that_is_too_wide_or_too_long(project: Path) -> None:
    page = project / "templates" / "portal" / "page.html"
    page.write_text("\n" * 79 + "€" * 160)
    assert list(house.problems(project)) == []
    page.write_text("\n" * 80 + "€" * 161)
    assert [said.partition(" has ")[::2] for said in house.problems(project)] == [
        ("templates/portal/page.html", "81 lines: which part of it has a meaning of its own?"),
        ("templates/portal/page.html:81", "161 characters, 160 at most."),
    ]


def test_a_size_in_the_portals_stylesheets_that_is_not_a_token(project: Path) -> None:
    with (project / house.PORTAL / "rows.css").open("a") as styles:
        styles.write(".rows {\n  gap: 0.7rem;\n}\n")
    assert list(house.problems(project)) == [
        "static/css/portal/rows.css:7 has a size of its own: gap: 0.7rem; Take one of tokens.css."
    ]


@pytest.mark.parametrize(
    "code",
    [
        'STATEMENT = "SELECT 1"',
        'NOTE = """\n    WITH found AS (…)"""',
        "with connection.cursor() as found: ...",
    ],
)
def test_sql_outside_the_sql_modules(project: Path, code: str) -> None:
    (project / "webhooks" / "claims.py").write_text(f"{code}\n")
    (said,) = house.problems(project)
    assert said.startswith("webhooks/claims.py:1 has SQL or a cursor")
    (project / "webhooks" / "claims.py").rename(project / "webhooks" / "statements.py")
    assert list(house.problems(project)) == []


def test_text_that_is_not_sql_is_accepted(project: Path) -> None:
    code = 'MESSAGE = "Select a date."\nNAME = "SELECTED"\npage = cursor.page(rows)\n'
    (project / "webhooks" / "claims.py").write_text(code)
    assert list(house.problems(project)) == []


def test_a_module_listed_for_sql_without_any_sql(project: Path) -> None:
    (project / "webhooks" / "delivery.py").write_text("ROWS = 500\n")
    assert list(house.problems(project)) == ["webhooks/delivery.py needs no place in OWN_SQL."]
