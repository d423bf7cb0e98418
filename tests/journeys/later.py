"""A simulated next release: a copy of this release, with new columns in some models and the migrations for them."""

import shutil
from pathlib import Path

from config import version
from tests.config.deploy import package

_major, _minor, _ = version.VERSION.split(".")
# The version number of the simulated next release.
NEXT = f"{_major}.{int(_minor) + 1}.0"
# The models that get a new column. For each app that stores orders, it is the model whose rows are written
# most often.
WIDENED = {"checkout": "Checkout", "payments": "Operation", "webhooks": "Endpoint"}
FIELD = 'models.CharField(max_length=10, default="", db_default="")'
COLUMN = """
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("{app}", "{last}")]
    operations = [migrations.AddField("{model}", "later", {field})]
"""
INDEX = """
from django.db import migrations

DROP = "DROP INDEX CONCURRENTLY IF EXISTS {app}_later"


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("{app}", "{last}")]
    operations = [
        migrations.RunSQL(
            [DROP, "CREATE INDEX CONCURRENTLY {app}_later ON {table} (later)"],
            [DROP],
        )
    ]
"""


def write(folder: Path) -> list[str]:
    """Write the next release into a folder. Return the names of its new migrations, in order.

    Migrations may only add to the schema. These migrations add a column with a database default, and create
    an index CONCURRENTLY.
    """
    for path in filter(lambda one: (package.ROOT / one).is_dir(), package.shipped()):
        shutil.copytree(
            package.ROOT / path, folder / path, ignore=shutil.ignore_patterns("__pycache__", "node_modules")
        )
    shutil.copy(package.ROOT / "manage.py", folder)
    named = folder / "config" / "version.py"
    named.write_text(named.read_text().replace(f'"{version.VERSION}"', f'"{NEXT}"'))
    return [f"{app}.{name}" for app, model in WIDENED.items() for name in _widen(folder / app, model)]


def _widen(app: Path, model: str) -> list[str]:
    (path,) = (path for path in (app / "models.py", app / "models/__init__.py") if path.exists())
    with path.open("a") as models:
        models.write(f'\n\nfrom django.db import models\n{model}.add_to_class("later", {FIELD})\n')
    last = max(path.stem for path in (app / "migrations").glob("0*.py"))
    number, names = int(last[:4]), list[str]()
    for text, kind in ((COLUMN, "column"), (INDEX, "index")):
        number += 1
        name = f"{number:04}_later_{kind}"
        table = f"{app.name}_{model.lower()}"
        written = text.format(app=app.name, model=model.lower(), table=table, last=last, field=FIELD)
        (app / "migrations" / f"{name}.py").write_text(written)
        names.append(name)
        last = name
    return names
