"""The alert rules of config/monitoring/alerts.yml, unchanged or with shorter durations."""

import copy
import re
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parents[3] / "config" / "monitoring"
Rule = dict[str, Any]
RULES: list[Rule] = yaml.safe_load((HERE / "alerts.yml").read_text())["groups"][0]["rules"]
NAMES = [rule["alert"] for rule in RULES]
# The alerts whose threshold is a duration, each with this threshold in seconds.
SECONDS = {
    "BeatGone": 120,
    "WorkerStandsStill": 60,
    "OutcomeUnknown": 900,
    "ReconciliationLate": 93600,
    "BackupLate": 93600,
    "ReplicaLate": 5,
}
_SPAN = re.compile(r"(?<=\[)(\d+)([sm])(?=\])")


def lasts(rule: Rule) -> int:
    """Return for how many seconds the expression must be true before the alert fires."""
    found = re.fullmatch(r"(\d+)([sm])", rule.get("for", "0s"))
    assert found is not None
    return int(found[1]) * (60 if found[2] == "m" else 1)


def written(factor: float = 1.0) -> str:
    """Return the text of a rules file for Prometheus, with all durations multiplied by the factor."""
    rules = copy.deepcopy(RULES)
    for rule in rules:
        expression = _SPAN.sub(
            lambda span: _short(int(span[1]) * (60 if span[2] == "m" else 1), factor), rule["expr"]
        )
        if rule["alert"] in SECONDS:
            threshold = SECONDS[rule["alert"]]
            assert expression.endswith(f"> {threshold}")
            expression = f"{expression.removesuffix(str(threshold))}{threshold * factor:g}"
        rule |= {"expr": expression, "for": _short(lasts(rule), factor)}
    return yaml.safe_dump({"groups": [{"name": "checkout", "rules": rules}]})


def _short(seconds: int, factor: float) -> str:
    return f"{round(seconds * factor * 1000)}ms"
