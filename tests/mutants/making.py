"""Creates the mutants of a module with cosmic-ray. Each mutant has one small change to the module."""

import ast
import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

_SWAPPED = {
    "Comparison": ("Eq_NotEq", "NotEq_Eq", "Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Is_IsNot", "IsNot_Is"),
    "Binary": ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul"),
    "Unary": ("USub_UAdd", "Delete_Not"),
}
_NAMED = (
    *("AddNot", "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue"),
    *("ReplaceContinueWithBreak", "ZeroIterationForLoop", "NumberReplacer"),
)
OPERATORS = (
    *(f"core/{name}" for name in _NAMED),
    *(f"core/Replace{kind}Operator_{pair}" for kind, pairs in _SWAPPED.items() for pair in pairs),
)


class Mutant(NamedTuple):
    """A module with one changed line: the line's number, its original and changed text, and the whole code."""

    module: str
    number: int
    line: str
    changed: str
    code: str

    def __str__(self) -> str:
        return f"{self.module}:{self.number}: {self.line}  ->  {self.changed}"


def mutants(module: str, code: str) -> Iterator[Mutant]:
    """Yield each mutant of a module, sorted by line. If several operators produce a mutant, yield it once."""
    seen = {code}
    found = []
    tree = get_ast(code)
    for name in OPERATORS:
        operator = get_operator(name)()
        places = [place for node in ast_nodes(tree) for place in operator.mutation_positions(node)]
        for occurrence in range(len(places)):
            changed = mutate_code(code, operator, occurrence)
            if changed is not None and changed not in seen and _is_python(changed):
                seen.add(changed)
                found.append(_mutant(module, code, changed))
    # The operator that replaces `*` by `/` also changes the `*` in a signature. Tests cannot detect this
    # change, because they pass these arguments by keyword.
    found = [mutant for mutant in found if mutant.changed != mutant.line.replace("*,", "/,")]
    yield from sorted(found, key=lambda mutant: mutant.number)


def identity(code: str) -> str:
    """Return a digest of the code without its comments and docstrings."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _is_python(code: str) -> bool:
    # The operator that adds `not` to a condition can write `not name := value`, which is a syntax error.
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


def _mutant(module: str, code: str, changed: str) -> Mutant:
    pairs = zip(code.splitlines(), changed.splitlines(), strict=False)
    number, (line, other) = next(
        (number, pair) for number, pair in enumerate(pairs, start=1) if pair[0] != pair[1]
    )
    return Mutant(module, number, line.strip(), other.strip(), changed)
