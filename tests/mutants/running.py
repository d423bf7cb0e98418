"""A pytest plugin that runs the tests on mutants.

The process of pytest imports the modules and starts the engines once. For each mutant, a child process
exchanges the code of the changed functions and runs the tests that execute the changed statement. A mutant
that cannot be installed in this way runs in a new process, with all tests of its module.
"""

import contextlib
import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import psycopg
import pytest
from django.db import connections

from tests import emptying
from tests.mutants.child_process import call_in_child
from tests.mutants.code_exchange import Changes, exchanges, live_functions
from tests.mutants.coverage import Coverage, Run, executed_lines
from tests.mutants.fresh_process import Copy
from tests.mutants.making import Mutant
from tests.mutants.modules import MODULES

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".local" / "mutants"
SECONDS = 300.0  # longest time for the tests of a mutant; a mutant that takes longer is killed
# A test that uses the database. It runs before the children start, so that they need not set up the database.
FIRST = "tests/mutants/test_running.py::test_reset_deletes_rows_and_ends_other_sessions"
_END_OTHER_SESSIONS = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND datname = current_database() AND pid <> pg_backend_pid()"""


class Runner:
    """The plugin. It tries the mutants in turn and calls `record` with each mutant and whether it was killed.

    The mutants of a module must follow each other.
    """

    def __init__(self, tried: Sequence[Mutant], record: Callable[[Mutant, bool], None]) -> None:
        self.tried, self.record = tried, record
        self._modules = list(dict.fromkeys(mutant.module for mutant in tried))
        self._files = {str(ROOT / module) for module in self._modules}
        self._kills = Counter[str]()
        self._failed: list[str] = []
        self._importing = contextlib.ExitStack()
        self._imported = self._importing.enter_context(executed_lines(self._files))

    def arguments(self) -> list[str]:
        """Return the arguments of pytest that collect the tests of the modules."""
        paths = dict.fromkeys(f"tests/{path}" for module in self._modules for path in MODULES[module])
        return ["-n", "0", "-s", "-m", "not long", "-p", "no:cacheprovider", FIRST, *paths]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # A test can fail in its call and again in its teardown.
        if report.failed and report.nodeid not in self._failed:
            self._failed.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        self._set_up(next(item for item in session.items if item.nodeid != FIRST))
        self._live = live_functions(self._files)
        for module, tried in itertools.groupby(self.tried, lambda mutant: mutant.module):
            self._coverage = self._measure(module)
            self._copy: Copy | None = None
            for mutant in tried:
                self.record(mutant, self._is_killed(mutant))
        return True

    def _set_up(self, following: pytest.Item) -> None:
        """Set up the session. Close its connections, because a child cannot use those of its parent."""
        first = self._items[FIRST]
        first.ihook.pytest_runtest_protocol(item=first, nextitem=following)
        close_connections()
        self._importing.close()
        if self._failed:
            pytest.exit(f"{FIRST} fails.", returncode=1)

    def _measure(self, module: str) -> Coverage:
        """Return the lines of a module that its tests execute. Each test runs in its own child process.

        A query that a process builds only once therefore belongs to all tests that need it.
        """
        folders = [Path("tests", path) for path in MODULES[module]]
        tests = [test for test in self._items if any(_file(test).is_relative_to(one) for one in folders)]
        coverage = Coverage(ROOT / module, sorted({ROOT / _file(test) for test in tests}))
        if not coverage.load(KEPT):
            work = {test: partial(self._trace, test, coverage.file) for test in tests}
            runs = {test: call_in_child(trace, SECONDS) for test, trace in work.items()}
            coverage.runs = {test: run for test, run in runs.items() if run is not None}
            if len(coverage.runs) < len(tests):
                failing = [test for test in tests if test not in coverage.runs]
                pytest.exit(f"These tests fail without any change: {failing}", returncode=1)
            coverage.store(KEPT)
        return coverage

    def _is_killed(self, mutant: Mutant) -> bool:
        changes = self._changes_of(mutant)
        if not changes:
            return self._is_killed_in_copy(mutant)
        tests = self._coverage.tests_of(mutant.number, self._kills)
        seconds = sum(self._coverage.runs[test][0] for test in tests)
        failed = call_in_child(partial(self._run, tests, changes), min(SECONDS, 30 + 5 * seconds))
        self._kills.update(failed or [])
        return failed != [] and self._passes_unchanged(failed or tests)

    def _changes_of(self, mutant: Mutant) -> Changes:
        """Return the changed functions and their new code. If the mutant needs a new process, return no function.

        A mutant of a statement that this process has already executed, for example at import, needs a new process.
        """
        statement = self._coverage.statement_at(mutant.number)
        if not statement or self._imported.intersection((self._coverage.file, line) for line in statement):
            return []
        return exchanges(self._live, self._coverage.file, self._coverage.code, mutant.code)

    def _is_killed_in_copy(self, mutant: Mutant) -> bool:
        """Run the tests in new processes: first those of the module's own test file, which kill most mutants."""
        own = Path("tests", MODULES[mutant.module][0])
        tests = [
            [test for test in self._coverage.runs if (_file(test) == own) == is_own]
            for is_own in (True, False)
        ]
        if self._copy is None:
            self._copy = Copy(ROOT, KEPT / "copy")
            if not self._copy.passes(mutant.module, self._coverage.code, [*tests[0], *tests[1]], SECONDS):
                pytest.exit(f"The tests of {mutant.module} fail in a copy without any change.", returncode=1)
        passes = all(self._copy.passes(mutant.module, mutant.code, part, SECONDS) for part in tests if part)
        return not passes and self._passes_unchanged([])

    def _passes_unchanged(self, tests: Sequence[str]) -> bool:
        """Reset the database after a failure, and return whether these tests pass without any change."""
        reset_database()
        failed = call_in_child(partial(self._run, tests, []), SECONDS)
        if failed != []:
            print(f"\nwithout any change, these tests fail sometimes: {failed or tests}")
        return failed == []

    def _trace(self, test: str, file: str) -> Run | None:
        began = time.monotonic()
        with executed_lines({file}) as lines:
            failed = self._run([test], [])
        return None if failed else (time.monotonic() - began, sorted(number for _, number in lines))

    def _run(self, tests: Sequence[str], changes: Changes) -> list[str]:
        """Make the changes and run the tests until one fails. Return the failed test."""
        for function, code in changes:
            function.__code__ = code
        items = [self._items[test] for test in (*tests, FIRST)]
        for item, following in itertools.pairwise(items):
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                break
        return self._failed


def close_connections() -> None:
    """Close all connections of this process, also those that wait in a pool."""
    for one in connections.all():
        one.close()
        one.close_pool()  # type: ignore[attr-defined]  # missing in the type stubs


def reset_database() -> None:
    """Delete all rows, and end the other sessions, which can belong to killed processes."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(_END_OTHER_SESSIONS)
        connection.execute(emptying.EMPTY)


def _file(test: str) -> Path:
    return Path(test.split("::", maxsplit=1)[0])
