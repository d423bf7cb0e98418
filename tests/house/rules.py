"""`make rules`: lists each rule of docs/contract.md, with the code that names it and the tests that prove it.

A rule is one line of the contract, which begins with the rule's id. A docstring or comment names a rule with
the word "Rule" and the id, and several rules with "Rules" and the ids. A name such as `capture.*` means all
rules of a topic. A test of a rule is marked with `@pytest.mark.rule("<id>")`. The files are read without
importing them.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONTRACT = Path("docs/contract.md")
CODE = ("checkout", "config", "hosted_page", "payments", "portal", "webhooks", "static", "templates")
BESIDE = ("tests", "docs")
SUFFIXES = {".py", ".html", ".txt", ".css", ".js", ".mjs", ".md", ".sh"}
_ID = r"[a-z_]+\.(?:\*|[a-z0-9_]*[a-z0-9])"
_RULE = re.compile(rf"^- `({_ID})`: .", re.MULTILINE)
_OUTSIDE = re.compile(r"\b(?:SPEC|DESIGN|INTERFACE|LOOK)(?:\.md\b|(?:\.md)?,?(?: part)? [0-9])")
# The characters between the words of a reference. A reference can continue in the next line of a comment.
_BETWEEN = r"[\s#*]"
_NAMED = re.compile(rf"\b[Rr]ules?{_BETWEEN}+(`?{_ID}`?(?:(?:,|,?{_BETWEEN}+and){_BETWEEN}+`?{_ID}`?)*)")


@dataclass
class Rule:
    """The places that name a rule: code, the rule's tests, and other files (docs and other test files)."""

    code: list[str] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)


@dataclass
class Map:
    """The contract's rules, and a message for each problem with a rule or with a place that names a rule."""

    rules: dict[str, Rule]
    problems: list[str]


def read(root: Path = ROOT) -> Map:
    """Return the rules of the project at `root`."""
    found = _contract((root / CONTRACT).read_text())
    for path in _files(root):
        text, place = path.read_text(), path.relative_to(root).as_posix()
        for name in sorted(_named_in(text)):
            _put(found, name, place, is_test=False)
        # Only the contract may refer to the specification, which is not in the repository.
        if path != root / CONTRACT:
            found.problems += [
                f"{place} refers to {words}, which is not here." for words in _OUTSIDE.findall(text)
            ]
        if place.startswith("tests/") and "mark.rule" in text:
            for name, test in _marked_in(ast.parse(text), place):
                _put(found, name, test, is_test=True)
    untested = [name for name, rule in found.rules.items() if not rule.tests]
    found.problems += [f"No test shows the rule {name}." for name in untested]
    return found


def _contract(text: str) -> Map:
    """Return the rules in the text of the contract. The caller adds the places that name them."""
    ids = _RULE.findall(text)
    odd = [line for line in re.findall(r"^- .*", text, re.MULTILINE) if not _RULE.match(line)]
    twice = [name for name, times in Counter(ids).items() if times > 1]
    problems = [f"{CONTRACT} says no rule in “{line}”." for line in odd]
    problems += [f"{CONTRACT} has the rule {name} twice." for name in twice]
    return Map({name: Rule() for name in ids}, problems)


def _files(root: Path) -> Iterator[Path]:
    for folder in CODE + BESIDE:
        paths = sorted((root / folder).rglob("*"))
        yield from (path for path in paths if path.suffix in SUFFIXES and "node_modules" not in path.parts)


def _named_in(text: str) -> set[str]:
    return {name for match in _NAMED.finditer(text) for name in re.findall(_ID, match[1])}


def _put(found: Map, name: str, place: str, *, is_test: bool) -> None:
    """Add a place to the rule that it names. If the place names a topic, add it to each rule of the topic."""
    topic = name.removesuffix("*")
    named = [id for id in found.rules if id == name or (topic != name and id.startswith(topic))]
    if not named or (is_test and topic != name):
        found.problems.append(f"{place} names {name}, which is no rule of {CONTRACT}.")
        return
    for id in named:
        rule = found.rules[id]
        named_by = rule.beside if place.startswith(BESIDE) else rule.code
        places = rule.tests if is_test else named_by
        places.extend({place}.difference(places))


def _marked_in(node: ast.AST, place: str) -> Iterator[tuple[str, str]]:
    """Yield each rule that a test is marked with, together with the node id of the test."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            inner = f"{place}::{child.name}"
            for decorator in child.decorator_list:
                yield from ((name, inner) for name in _ids(decorator))
            yield from _marked_in(child, inner)
        elif isinstance(child, ast.Assign) and ast.unparse(child.targets[0]) == "pytestmark":
            yield from ((name, place) for part in ast.walk(child.value) for name in _ids(part))


def _ids(mark: ast.AST) -> list[str]:
    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.rule":
        return [str(ast.literal_eval(argument)) for argument in mark.args]
    return []


def main() -> None:
    """Print each rule whose id begins with an argument, or all rules. With --check, print the problems."""
    found, wanted = read(), tuple(sys.argv[1:])
    if "--check" in wanted:
        print("\n".join([*found.problems, f"{len(found.rules)} rules."]))
        sys.exit(bool(found.problems))
    for name, rule in found.rules.items():
        if name.startswith(wanted or ("",)):
            code = [f"code  {place}" for place in rule.code]
            beside = [f"also  {place}" for place in rule.beside]
            tests = [f"test  {test}" for test in rule.tests]
            print("\n  ".join([name, *code, *beside, *tests]))


if __name__ == "__main__":
    main()
