"""The alert rules and the dashboard use only existing metrics, and each alert has a runbook."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from config.monitoring import metrics
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


@pytest.mark.django_db
def test_alerts_and_panels_use_only_exported_metrics() -> None:
    metrics.read_figures()
    assert sending.OUTCOMES and outbox.OUTCOMES  # workers import these modules, and so export their counters
    told = {
        line.split()[2] for line in metrics.metrics_text().decode().splitlines() if line.startswith("# TYPE")
    }
    panels = json.loads((rules.HERE / "dashboard.json").read_text())["panels"]
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    expressions += [rule["expr"] for rule in rules.RULES]
    asked = {name for expression in expressions for name in COUNTED.findall(expression)}
    assert {MADE_OF.sub("", name) for name in asked} <= {MADE_OF.sub("", name) for name in told}


@pytest.mark.long
class TestHour:
    """The real durations of the alerts. `promtool test rules` simulates hours of given values."""

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
