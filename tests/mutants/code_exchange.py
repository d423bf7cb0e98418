"""Installs a mutant in this process: the functions that changed get the code of the mutant."""

import gc
from collections import defaultdict
from collections.abc import Container, Iterator
from types import CodeType, FunctionType

Changes = list[tuple[FunctionType, CodeType]]
Live = dict[tuple[str, CodeType], list[FunctionType]]


def live_functions(files: Container[str]) -> Live:
    """Map each code object of these files, with the name of its file, to the functions that have it.

    This also finds the functions inside decorators, properties and tasks.
    """
    found: Live = defaultdict(list)
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__code__.co_filename in files:
            found[one.__code__.co_filename, one.__code__].append(one)
    return found


def exchanges(live: Live, file: str, original: str, changed: str) -> Changes:
    """Return the live functions whose code differs in the changed source of a file, with their new code."""
    before, after = (compile(source, file, "exec", dont_inherit=True) for source in (original, changed))
    return [
        (function, new)
        for old, new in _differing(before, after)
        for function in live.get((file, old), [])
        if len(old.co_freevars) == len(new.co_freevars)
    ]


def _differing(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    for old, new in zip(_nested(before), _nested(after), strict=False):
        if old != new:
            yield old, new
            yield from _differing(old, new)


def _nested(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]
