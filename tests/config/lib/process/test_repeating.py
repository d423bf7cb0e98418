"""A thread that calls a function repeatedly."""

import threading

from config.lib.process import repeating


def test_calls_the_function_again_in_a_daemon_thread_of_this_name() -> None:
    calls, is_third = list[threading.Thread](), threading.Event()

    def act() -> None:
        calls.append(threading.current_thread())
        if len(calls) == 3:
            is_third.set()

    repeating.start_repeating("third time", act, every_seconds=0.01)
    assert is_third.wait(10)
    assert {(thread.name, thread.daemon) for thread in calls} == {("third time", True)}
