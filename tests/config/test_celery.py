from config.celery import app


def test_everything_that_beat_starts_is_a_task() -> None:
    app.loader.import_default_modules()
    planned = {entry["task"] for entry in app.conf.beat_schedule.values()}
    assert planned and planned - app.tasks.keys() == set()
