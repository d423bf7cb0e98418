import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mutants.child_process import call_in_child


def test_change_in_a_child_has_no_effect_on_its_parent() -> None:
    numbers = [1]

    def add() -> list[int]:
        numbers.append(2)
        return numbers

    assert call_in_child(add, 60) == [1, 2]
    assert numbers == [1]


@pytest.mark.parametrize("work", [lambda: 1 // 0, lambda: os._exit(0)])
def test_child_that_ends_early_has_no_answer(work: Callable[[], object]) -> None:
    assert call_in_child(work, 60) is None


def test_child_that_hangs_is_killed_with_the_processes_that_it_started(tmp_path: Path) -> None:
    started = tmp_path / "started"

    def hang() -> None:
        started.write_text(str(subprocess.Popen(["/usr/bin/env", "sleep", "600"]).pid))
        time.sleep(600)

    assert call_in_child(hang, 5) is None
    program = Path("/proc", started.read_text(), "cmdline")
    assert not program.exists() or program.read_text() == ""  # an ended process has no command line
