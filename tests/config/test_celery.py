from config.celery import app


def test_what_is_kept_too_long_is_removed_every_hour() -> None:
    hourly = {entry["task"] for entry in app.conf.beat_schedule.values() if entry["schedule"] == 3600.0}
    assert {"webhooks.tasks.purge_personal", "webhooks.tasks.remove_old_events"} <= hourly


def test_everything_that_beat_starts_is_a_task() -> None:
    app.loader.import_default_modules()
    planned = {entry["task"] for entry in app.conf.beat_schedule.values()}
    assert planned and planned - app.tasks.keys() == set()
