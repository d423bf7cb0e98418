"""Writes alerts.yml and dashboard.json: `python -m config.monitoring`."""

from pathlib import Path

from config.monitoring import alerts, dashboard

HERE = Path(__file__).parent

if __name__ == "__main__":
    (HERE / "alerts.yml").write_text(alerts.rules())
    (HERE / "dashboard.json").write_text(dashboard.dashboard())
