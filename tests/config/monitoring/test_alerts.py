"""The alert rules and the dashboard use only metrics that exist, and each alert has a runbook."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from config.monitoring import certificates, database_errors, metrics
from hosted_page.sms import sending
from portal.mail import outbox
from tests.config.monitoring import hours, rules

ROOT = rules.HERE.parents[1]
OPERATE = (ROOT / "docs" / "operate.md").read_text()
COUNTED = re.compile(r"\bcheckout_[a-z_]+")
MADE_OF = re.compile(r"_(total|bucket|count|sum)$")


@pytest.mark.parametrize("name", rules.NAMES)
def test_each_has_a_runbook(name: str) -> None:
    paragraph = re.search(rf"^#### {name}\n\n(.+?)\n\n", OPERATE, re.MULTILINE | re.DOTALL)
    assert paragraph is not None and len(paragraph[1].split()) >= 15
    (rule,) = (rule for rule in rules.RULES if rule["alert"] == name)
    assert rule["annotations"]["runbook"] == f"{{{{ $externalLabels.docs }}}}/operate.md#{name.lower()}"


@pytest.mark.django_db
def test_alerts_and_panels_use_only_exported_metrics() -> None:
    metrics.read_figures()
    # Workers and beat import these modules, and therefore export their metrics.
    assert sending.OUTCOMES and outbox.OUTCOMES and certificates.EXPIRES
    told = {
        line.split()[2] for line in metrics.metrics_text().decode().splitlines() if line.startswith("# TYPE")
    }
    panels = json.loads((rules.HERE / "dashboard.json").read_text())["panels"]
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    expressions += [rule["expr"] for rule in rules.RULES]
    asked = {name for expression in expressions for name in COUNTED.findall(expression)}
    assert {MADE_OF.sub("", name) for name in asked} <= {MADE_OF.sub("", name) for name in told}


@pytest.mark.parametrize("outcome", ["checkout_sms_total.unreachable", "checkout_mails_total.failed"])
def test_counters_of_alerts_exist_before_the_first_failure(outcome: str) -> None:
    """`increase` ignores the first value of a series, so it would miss the first failures."""
    assert sending.OUTCOMES and outbox.OUTCOMES
    name, _, label = outcome.partition(".")
    assert REGISTRY.get_sample_value(name, {"outcome": label}) is not None


def test_counters_of_refused_writes_exist_before_the_first_one() -> None:
    (rule,) = (rule for rule in rules.RULES if rule["alert"] == "WritesFail")
    for sqlstate in database_errors.REFUSED_WRITES:
        labels = {"sqlstate": sqlstate}
        assert sqlstate in rule["expr"]
        assert REGISTRY.get_sample_value("checkout_database_errors_total", labels) is not None


@pytest.mark.long
class TestHour:
    """The real durations of the alerts. `promtool test rules` simulates hours with given values."""

    def test_fires_on_time_and_not_before(self, tmp_path: Path) -> None:
        (tmp_path / "hours.json").write_text(json.dumps(hours.tests(str(rules.HERE / "alerts.yml"))))
        done = subprocess.run(
            ["promtool", "test", "rules", str(tmp_path / "hours.json")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def test_covers_every_alert(self) -> None:
        assert set(hours.SERIES) == set(rules.NAMES)
