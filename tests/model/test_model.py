"""The model of the money after the capture: the design keeps all invariants, and every variant breaks one."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.model import __main__, settle, world
from tests.model.books import Chances, Scope, State
from tests.model.checks import ALONE, EVERYTHING, LARGE, SMALL, VARIANTS, Money
from tests.model.keys import Keys
from tests.model.protocols import PROTOCOLS, page, rotation
from tests.model.protocols.protocol import Protocol
from tests.model.search import Model, Result, explore, has_cycle, wander
from tests.model.stories import tell
from tests.model.variants import Variant

PAGE = Path(__file__).parents[2] / "docs" / "money.md"


def explain(found: Result[Any]) -> str:
    return "\n".join([*(said for said, _ in found.story), found.problem])


@pytest.mark.parametrize("scope", SMALL.values(), ids=SMALL)
def test_design_keeps_every_invariant(scope: Scope) -> None:
    found = explore(Money(scope))
    assert not found.problem, explain(found)


@pytest.mark.long
@pytest.mark.parametrize("scope", LARGE.values(), ids=LARGE)
def test_design_keeps_every_invariant_in_large_scopes(scope: Scope) -> None:
    found = explore(Money(scope))
    assert not found.problem, explain(found)


@pytest.mark.long
@pytest.mark.parametrize("shares", [(), (1,), (2,), (3,), (1, 1), (1, 2)], ids=str)
@pytest.mark.parametrize("is_paying", [False, True])
def test_design_keeps_every_invariant_on_random_walks(shares: tuple[int, ...], is_paying: bool) -> None:
    for merchant in range(3):
        left = EVERYTHING._replace(merchant=merchant)
        model = Money(Scope(left, shares=shares, is_paying=is_paying, disputed=(-1, 0, 1)))
        for seed in range(300):
            found = wander(model, Random(seed))
            assert not found.problem, explain(found)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.without)
def test_variant_without_one_rule_is_caught(variant: Variant) -> None:
    assert explore(variant.model).problem
    found = explore(variant.design)
    assert not found.problem, explain(found)


@pytest.mark.parametrize(
    "model", [Keys(), Money(Scope(Chances(fail=1)))], ids=lambda model: type(model).__name__
)
def test_every_run_of_the_model_ends(model: Model[Any]) -> None:
    assert not has_cycle(model)


def test_a_cycle_in_a_model_is_found() -> None:
    class Circle:
        def start(self) -> int:
            return 0

        def steps(self, state: int) -> Iterable[tuple[str, int]]:
            yield "One further, and from the third to the second.", state + 1 if state < 3 else 1

        def problem(self, state: int, is_last: bool) -> str:
            return ""

    assert has_cycle(Circle())


def test_refund_that_never_arrived_gets_a_new_key() -> None:
    class Renewed(Keys):
        def problem(self, state: Any, is_last: bool) -> str:
            return "carried out under the second key" if state.key == 2 and state.done else ""

    assert explore(Renewed()).problem


@pytest.mark.parametrize("status", ["captured", "refunding", "refunded"])
@pytest.mark.parametrize("is_lost", [True, False])
def test_every_status_is_reached(status: str, is_lost: bool) -> None:
    class Reaching(Money):
        def problem(self, state: State, is_last: bool) -> str:
            has_lost = any(row.known == "lost" for row in state.disputes)
            return "reached" if state.status == status and has_lost == is_lost and state.is_due else ""

    assert explore(Reaching(Scope(Chances(dispute=1)))).problem


def test_repeated_notification_has_no_effect() -> None:
    class Repeated(Money):
        def problem(self, state: State, is_last: bool) -> str:
            once = [world.sync(self.scope, state, card) for card in (0, 1)]
            twice = [world.sync(self.scope, after, card) for card, after in enumerate(once)]
            return "" if once == twice and settle.settle(self.scope, state) == state else "changed"

    found = explore(Repeated(Scope(Chances(others=1))))
    assert not found.problem, explain(found)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.title)
class TestProtocol:
    def test_design_keeps_every_promise(self, protocol: Protocol) -> None:
        found = explore(protocol.design)
        assert not found.problem, explain(found)

    def test_each_variant_breaks_a_promise(self, protocol: Protocol) -> None:
        assert all(explore(variant.model).problem for variant in protocol.variants)

    def test_code_is_at_its_place(self, protocol: Protocol) -> None:
        assert all((PAGE.parents[1] / path).is_file() for path in protocol.code)


def test_page_of_protocols_is_what_the_models_say() -> None:
    assert page.PAGE.read_text() == page.render(), "run `make protocols`"


def test_page_shows_runs_that_the_model_finds() -> None:
    page = PAGE.read_text()
    shown = [variant for variant in VARIANTS if f"If {variant.without}:" in page]
    assert len(shown) == 3
    for variant in shown:
        assert tell(variant, explore(variant.model)) in page


def test_command_prints_scopes_and_stories(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"one card": replace(ALONE, left=Chances())}
    monkeypatch.setattr(__main__, "SMALL", small)
    monkeypatch.setattr(__main__, "PROTOCOLS", [rotation.PROTOCOL])
    assert __main__.main(is_large=False) == 0
    said = capsys.readouterr().out
    assert "states in" in said and ": one card" in said and f"{rotation.PROTOCOL.title}. If " in said
    assert all(f"If {variant.without}:" in said for variant in VARIANTS)


def test_command_fails_if_the_design_breaks_an_invariant(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = VARIANTS[-1].model
    assert isinstance(broken, Money)
    monkeypatch.setattr(__main__, "SMALL", {"broken": broken.scope})
    monkeypatch.setattr(__main__, "PROTOCOLS", [])
    assert __main__.main(is_large=False) == 1
