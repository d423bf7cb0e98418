"""The proof of all checkouts runs in ranges of ids, can be stopped and continued, and uses little memory."""

import gc
import itertools
import tracemalloc
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from checkout import tasks
from checkout.models import Checkout, ProofRun
from checkout.proof import ledger_proof, proof_runs
from payments.closed_days import sums
from payments.discrepancies import reporting
from payments.models import Discrepancy, Merchant
from tests import factories
from tests.bench.seed_load import loading
from tests.checkout.proof.tampering import ONE, UNBALANCED, copy, prove, tamper

pytestmark = [pytest.mark.django_db, pytest.mark.rule("money.proof")]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> int:
    """Make each range contain two checkouts, and return 2."""
    monkeypatch.setattr(ledger_proof, "RANGE_SIZE", 2)
    return 2


@pytest.fixture
def seven(acme: Merchant) -> list[Checkout]:
    return [factories.checkout(acme) for _ in range(7)]


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[ledger_proof.IdRange]:
    """Return a list to which each range is added when the proof checks it."""
    spans: list[ledger_proof.IdRange] = []
    original = ledger_proof.find_breaches_in_range

    def note(span: ledger_proof.IdRange) -> list[ledger_proof.Breach]:
        spans.append(span)
        return original(span)

    monkeypatch.setattr(ledger_proof, "find_breaches_in_range", note)
    return spans


class TestRanges:
    def test_hold_every_id_once_from_the_first_possible_to_the_last(
        self, seven: list[Checkout], small: int
    ) -> None:
        spans = list(ledger_proof.id_ranges())
        assert spans[0].first == ledger_proof.FIRST and spans[-1].last == ledger_proof.LAST
        assert all(one.last.int + 1 == two.first.int for one, two in itertools.pairwise(spans))
        of = [[row for row in seven if span.first <= row.pk <= span.last] for span in spans]
        assert [len(rows) for rows in of if rows] == [2, 2, 2, 1]

    @pytest.mark.parametrize("orphan", [UUID(int=5), uuid4(), UUID(int=2**128 - 1)])
    def test_include_postings_of_checkouts_that_do_not_exist(
        self, captured: Checkout, small: int, orphan: UUID
    ) -> None:
        where = "original.checkout_uuid = %(checkout)s"
        changes = {
            "id": "gen_random_uuid()",
            "transaction": "gen_random_uuid()",
            "checkout_uuid": f"'{orphan}'",
        }
        tamper(captured, ONE + copy("payments_posting", where, **changes))
        found = ledger_proof.find_breaches()
        assert {(breach.subject, breach.kind.name) for breach in found} == {
            (orphan, "ledger_unbalanced"),
            (orphan, "ledger_without_movement"),
        }

    def test_are_limited_by_the_number_of_their_postings(self, captured: Checkout, small: int) -> None:
        """Postings that belong to no checkout are split into many short ranges."""
        where = "original.checkout_uuid = %(checkout)s AND account = 'provider'"
        many = "WITH numbers AS (SELECT generate_series(1, 50) AS n) "
        strange = "('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))"
        changes = {"id": "gen_random_uuid()", "transaction": "gen_random_uuid()", "checkout_uuid": strange}
        tamper(captured, many + copy("payments_posting", where, **changes))
        sizes = [ledger_proof.count_in_range(span)[1] for span in ledger_proof.id_ranges()]
        assert max(sizes) <= 8 * small and sum(sizes) == 52


class TestARun:
    def test_continues_where_it_was_stopped_and_proves_no_range_twice(
        self, seven: list[Checkout], small: int, looked_at: list[ledger_proof.IdRange]
    ) -> None:
        stopped = proof_runs.run_steps(proof_runs.begin_run())
        next(stopped), next(stopped)
        assert len(looked_at) == 2
        code, said, complained = prove()
        assert (
            code == 0
            and said.endswith("\n7 checkouts, 0 postings\n")
            and "Continuing: 4 checkouts" in complained
        )
        assert all(one.last.int + 1 == two.first.int for one, two in itertools.pairwise(looked_at))
        assert (looked_at[0].first, looked_at[-1].last) == (ledger_proof.FIRST, ledger_proof.LAST)

    def test_killed_in_a_range_proves_that_range_again(
        self, seven: list[Checkout], small: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = proof_runs.begin_run()
        next(proof_runs.run_steps(run))
        before = ProofRun.objects.get()
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(
                ledger_proof, "find_breaches_in_range", lambda _: (_ for _ in ()).throw(KeyboardInterrupt)
            )
            next(proof_runs.run_steps(before))
        assert ProofRun.objects.values().get() == ProofRun.objects.values().get(next_uuid=before.next_uuid)
        assert ProofRun.objects.get().checkout_count == 2

    def test_reports_at_its_end_the_breaches_found_before_it_was_stopped(
        self, captured: Checkout, acme: Merchant, small: int
    ) -> None:
        tamper(captured, UNBALANCED)
        for _ in range(5):
            factories.checkout(acme)
        step = next(proof_runs.run_steps(proof_runs.begin_run()))
        assert [breach.subject for breach in step.breaches] == [captured.pk]
        assert Discrepancy.objects.get().kind == "ledger_unbalanced", "at once, not at the end"
        code, said, complained = prove()
        assert (code, said) == (1, "") and "1 breaches" in complained

    def test_restarts_after_a_week_or_on_request(self, seven: list[Checkout], small: int) -> None:
        for anew, age in ((True, timedelta(0)), (False, timedelta(days=8))):
            run = proof_runs.begin_run()
            next(proof_runs.run_steps(run))
            ProofRun.objects.filter(pk=run.pk).update(begun_at=timezone.now() - age)
            again = proof_runs.begin_run(restart=anew)
            assert (again.next_uuid, again.checkout_count) == (ledger_proof.FIRST, 0)
            assert ProofRun.objects.get() == again

    def test_restarts_with_the_option_restart(self, seven: list[Checkout], small: int) -> None:
        next(proof_runs.run_steps(proof_runs.begin_run()))
        code, said, complained = prove("--restart")
        assert (code, complained) == (0, "") and said.endswith("\n7 checkouts, 0 postings\n")

    def test_that_is_interrupted_prints_how_to_continue(
        self, seven: list[Checkout], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            ledger_proof, "find_breaches_in_range", lambda _: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        code, said, complained = prove()
        assert (code, said) == (130, "") and "The next run continues" in complained

    def test_reports_its_progress(
        self, seven: list[Checkout], small: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("checkout.management.commands.prove_ledger.QUIET_SECONDS", -1)
        _, _, complained = prove()
        first, *_, last = complained.splitlines()
        assert first == f"2 checkouts, 0 breaches, next checkouts of {seven[0].created_at:%Y-%m-%d}"
        assert last == "7 checkouts, 0 breaches, next the ledger's sums"

    def test_proves_the_sums_of_a_month_in_a_step(
        self, seven: list[Checkout], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        today = timezone.now().date()
        monkeypatch.setattr(sums, "first_month", lambda: today.replace(day=1))
        monkeypatch.setattr(sums, "last_day", lambda: today)
        code, _, complained = prove()
        assert (code, complained) == (0, "")


@pytest.mark.django_db(transaction=True)
class TestTwoAtOnce:
    @pytest.fixture
    def other(self) -> Iterator[Any]:
        parameters = connection.get_connection_params()
        names = ("dbname", "host", "user", "password", "port")
        with psycopg.connect(**{name: parameters[name] for name in names if name in parameters}) as own:
            yield own

    def test_the_second_is_refused_as_busy(self, acme: Merchant, other: Any) -> None:
        run = proof_runs.begin_run()
        other.execute("SELECT 1 FROM checkout_proofrun FOR UPDATE")
        for refused in (proof_runs.begin_run, lambda: next(proof_runs.run_steps(run))):
            with pytest.raises(proof_runs.ProofRunning):
                refused()
        code, _, complained = prove()
        assert code == 3 and "Another process" in complained
        tasks.prove_all()
        tasks.prove_on()
        other.rollback()
        assert prove()[0] == 0


class TestTheTasks:
    def test_prove_everything_in_pieces(
        self, seven: list[Checkout], small: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tasks, "PROVING_SECONDS", -1.0)
        tasks.prove_on()
        assert not ProofRun.objects.exists(), "only what was begun"
        tasks.prove_all()
        for pieces in range(1, 5):
            run = ProofRun.objects.get()
            assert (run.checkout_count, run.ended_at) == (min(7, 2 * pieces), None)
            tasks.prove_on()
        assert ProofRun.objects.get().ended_at is not None
        monkeypatch.setattr(tasks, "PROVING_SECONDS", 60.0)
        tasks.prove_all()
        assert ProofRun.objects.filter(checkout_count=7).exclude(ended_at=None).count() == 2

    def test_continue_a_stopped_run_only_in_the_weekly_proof(self, seven: list[Checkout], small: int) -> None:
        run = proof_runs.begin_run()
        next(proof_runs.run_steps(run))
        tasks.prove_on()
        assert ProofRun.objects.get().checkout_count == 2
        tasks.prove_all()
        assert ProofRun.objects.get().checkout_count == 7

    def test_leave_a_discrepancy_for_each_breach(self, captured: Checkout) -> None:
        tamper(captured, "DELETE FROM payments_posting WHERE checkout_uuid = %(checkout)s")
        tasks.prove_all()
        assert Discrepancy.objects.get().kind == "ledger_not_posted"


@pytest.mark.long
class TestMemory:
    def test_is_that_of_one_range_however_many_there_are(
        self, acme: Merchant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Many checkouts break an invariant here. If the proof kept all breaches, it would use more and more memory."""
        monkeypatch.setattr(ledger_proof, "RANGE_SIZE", 50)
        monkeypatch.setattr(reporting, "report", lambda *_, **__: None)
        peak(acme, 50)  # the first run loads objects that later runs use again
        few, many = peak(acme, 150), peak(acme, 1000)
        assert many < 2 * few, "all that is found would be five times as much"


def peak(merchant: Merchant, total: int) -> int:
    """Return the peak memory, in bytes, of a proof of `total` checkouts. Many of them break an invariant."""
    loading.load(total - Checkout.objects.count(), merchants=[merchant.pk], say=lambda _: None)
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("UPDATE checkout_checkout SET amount = 1 WHERE status = 'captured'")
        cursor.execute("SET session_replication_role = DEFAULT")
    begun = proof_runs.begin_run()
    gc.collect()
    gc.freeze()  # otherwise each collection below would examine all objects that earlier tests have loaded
    tracemalloc.start()
    for step in proof_runs.run_steps(begun):
        done = step.run
        gc.collect()  # frees reference cycles that the queries have left
    highest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    gc.unfreeze()
    assert done.checkout_count == total and done.breach_count >= total // 3
    return highest
