"""The table of discrepancy kinds is complete, the code reports each kind, and pages and mails show its texts."""

import ast
import html
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
from django.contrib import admin
from django.core import mail
from django.test import Client
from pytest_django.fixtures import Settings

from checkout.models import Checkout
from config.lib import clock
from payments import tasks
from payments.discrepancies import definitions, kinds, reporting
from payments.discrepancies.definitions import DiscrepancyKind
from payments.models import Discrepancy, Operation
from tests.house.house import APPS, ROOT

pytestmark = pytest.mark.rule("money.discrepancy_kinds")
TABLE = ROOT / "payments/discrepancies/kinds.py"
NAMED = {name: kind for name, kind in vars(kinds).items() if isinstance(kind, DiscrepancyKind)}
OLD = "texts_nearly_used_up"


@cache
def modules() -> Mapping[Path, ast.Module]:
    """Map each module of the product, except the table of kinds, to its syntax tree."""
    found = (path for app in APPS for path in (ROOT / app).rglob("*.py") if "migrations" not in path.parts)
    return {path: ast.parse(path.read_text()) for path in found if path != TABLE}


def reported_in(node: ast.AST) -> Iterator[str]:
    """Yield the names of the discrepancy kinds that this code reports.

    Code that only closes discrepancies, compares kinds or finds rows does not count.
    """
    match node:
        case ast.Compare() | ast.Call(func=ast.Attribute(attr="close_resolved")):
            return
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="kinds")), attr="name"):
            return
        case ast.Attribute(value=ast.Name(id="kinds"), attr=name) if name.isupper():
            yield name
    for child in ast.iter_child_nodes(node):
        yield from reported_in(child)


class TestTheTable:
    def test_has_each_kind_once_under_the_name_of_its_constant(self) -> None:
        assert {name.lower(): kind for name, kind in NAMED.items()} == kinds.TABLE
        assert [name for name, kind in NAMED.items() if kind.name != name.lower()] == []

    def test_has_a_sentence_and_an_instruction_for_each_kind(self) -> None:
        for kind in kinds.TABLE.values():
            assert kind.sentence[0].isupper() and kind.sentence[-1] not in ".!?", kind.name
            assert kind.what_to_do[0].isupper() and kind.what_to_do.endswith("."), kind.name
            assert len({verb.page for verb in kind.remedies}) <= 1, kind.name
            assert bool(kind.remedies) != (kind.remedy == "It closes automatically"), kind.name
            assert kind.remedies or "closes automatically" in kind.what_to_do, kind.name
            is_closed_by_hand = definitions.CLOSE in kind.remedies
            assert not is_closed_by_hand or "close the discrepancy" in kind.what_to_do.lower(), kind.name

    def test_has_no_two_kinds_with_one_sentence(self) -> None:
        assert len({kind.sentence for kind in kinds.TABLE.values()}) == len(kinds.TABLE)

    def test_names_verbs_that_the_admin_has(self) -> None:
        for page, model in {"operation": Operation, "discrepancy": Discrepancy}.items():
            named = {verb.action for verb in definitions.REMEDIES if verb.page == page}
            assert named == set(admin.site.get_model_admin(model).actions or ())


class TestTheSource:
    def test_reports_each_kind_of_the_table(self) -> None:
        reported = {name for tree in modules().values() for name in reported_in(tree)}
        assert sorted(NAMED.keys() - reported) == []

    def test_names_no_kind_that_the_table_does_not_have(self) -> None:
        named = {name for tree in modules().values() for name in reported_in(tree)}
        assert sorted(name for name in named if not hasattr(kinds, name)) == []

    def test_creates_kinds_only_in_the_table(self) -> None:
        makers = [
            path
            for path, tree in modules().items()
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and "DiscrepancyKind" in ast.unparse(node.func)
        ]
        assert makers == []


@pytest.mark.django_db
class TestReporting:
    def test_refuses_a_kind_that_the_table_does_not_have(self) -> None:
        with pytest.raises(ValueError, match=OLD):
            reporting.report(kinds.kind_named(OLD), None)
        with pytest.raises(AttributeError):
            reporting.report("missing_here", None)  # type: ignore[arg-type]
        assert not Discrepancy.objects.exists()


@pytest.mark.django_db
class TestThePages:
    @pytest.fixture
    def rows(self, captured: Checkout) -> list[Discrepancy]:
        """Return a discrepancy of each kind, and one of an old kind that only an earlier release reported."""
        capture = Operation.objects.get(kind="capture")
        for kind in kinds.TABLE.values():
            reporting.report_operation(capture, kind)
        Discrepancy.objects.create(kind=OLD, merchant=captured.merchant, facts={"messages": 80})
        return list(Discrepancy.objects.all())

    def test_of_each_kind_have_its_words(self, operator: Client, rows: list[Discrepancy]) -> None:
        for row in rows:
            page = html.unescape(
                operator.get(f"/admin/payments/discrepancy/{row.pk}/change/").content.decode()
            )
            kind = row.kind_entry
            for words in (kind.sentence, kind.what_to_do, kind.runbook_page):
                assert words in page, (row.kind, words)
            assert "on the operation’s page" not in page, "the capture succeeded, so it needs no remedy"
            assert (f"/admin/payments/operation/{row.operation_id}/change/" in page) == bool(row.operation_id)
            assert "Close with a note" in page

    @pytest.mark.parametrize(
        ("kind", "attempt", "words"),
        [
            (kinds.IN_DOUBT_FOR_A_DAY, ("capture", "unknown"), "Give up the operation is"),
            (kinds.IN_DOUBT_FOR_A_DAY, ("void", "unknown"), "Send again is"),
            (kinds.CAPTURE_PENDING_TOO_LONG, ("capture", "pending"), "Give up the operation is"),
            (kinds.VOID_REFUSED, ("void", "failed"), "Send again is"),
            (kinds.REFUND_PART_FAILED, ("refund", "failed"), "Send again and Settled outside are"),
            (kinds.REFUND_RETURNED, ("refund", "failed"), "Send again and Settled outside are"),
            (kinds.SHARE_NOT_REIMBURSED, ("refund", "failed"), "Send again and Settled outside are"),
        ],
    )
    @pytest.mark.usefixtures("rows")
    def test_name_the_page_of_the_remedies_that_the_operation_offers(
        self,
        operator: Client,
        kind: DiscrepancyKind,
        attempt: tuple[str, str],
        words: str,
    ) -> None:
        ended_at = clock.now() if "failed" in attempt else None
        operations = Operation.objects.filter(kind="capture")
        operations.update(kind=attempt[0], state=attempt[1], ended_at=ended_at)
        row = Discrepancy.objects.get(kind=kind.name)
        page = operator.get(f"/admin/payments/discrepancy/{row.pk}/change/").content.decode()
        assert f"{words} on the operation’s page." in page

    def test_of_all_have_each_sentence(
        self, operator: Client, rows: list[Discrepancy], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("MAX_LISTED", "MAX_SHOWN"):
            monkeypatch.setattr(f"portal.backoffice.cases.{name}", len(rows))
        waiting = html.unescape(operator.get("/admin/operations/").content.decode())
        lists = (operator.get(f"/admin/payments/discrepancy/?p={page}") for page in (1, 2))
        listed = html.unescape("".join(answer.content.decode() for answer in lists))
        table = "".join(part.partition("</tbody>")[0] for part in listed.split("<tbody>")[1:])
        for row in rows:
            assert row.kind_entry.sentence in table, row.kind
            assert row.kind_entry.sentence in waiting and row.kind_entry.what_to_do in waiting, row.kind

    def test_of_an_old_kind_can_be_closed(self, operator: Client, rows: list[Discrepancy]) -> None:
        old = Discrepancy.objects.get(kind=OLD)
        assert old.kind_entry.sentence == "Texts nearly used up"
        chosen = {"action": "close", "_selected_action": [str(old.pk)]}
        operator.post("/admin/payments/discrepancy/", chosen | {"confirmed": "1", "words": "Long ago."})
        old.refresh_from_db()
        assert old.closed_at is not None and old.note.endswith(": Long ago.")

    def test_and_the_mail_have_the_same_texts(self, rows: list[Discrepancy], settings: Settings) -> None:
        settings.OPERATORS = ["olga@operators.example"]
        tasks.mail_discrepancies()
        (sent,) = mail.outbox
        for row in rows:
            kind = row.kind_entry
            for words in (kind.sentence, kind.what_to_do, kind.runbook_page):
                assert f"{words}\n" in sent.body, row.kind
            assert (f"{kind.remedy}\n" in sent.body) == bool(kind.remedies), row.kind
