"""`make dist`: builds the files for a package index (wheel, source archive, list of packages, checksums).

Every build of a commit gives the same bytes, because the files' time stamps are the version's date in
CHANGELOG.md.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, time
from pathlib import Path

from config.version import VERSION
from tests.release import ROOT, changelog, sbom

SUMS = "SHA256SUMS"


def build(folder: Path) -> None:
    """Empty the folder and build the version into it. Exit if CHANGELOG.md has no date for the version."""
    if VERSION not in (dates := changelog.dates(ROOT)):
        sys.exit(
            f'CHANGELOG.md has no heading "## {VERSION} (date)": only a version with a date can be built.'
        )
    os.environ["SOURCE_DATE_EPOCH"] = f"{datetime.combine(dates[VERSION], time(), UTC).timestamp():.0f}"
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder.absolute())]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    sbom.write(folder / f"merchant_checkout_service-{VERSION}.cdx.json")
    built = sorted(folder.iterdir())
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in built]
    (folder / SUMS).write_text("".join(sums))


if __name__ == "__main__":
    build(Path(sys.argv[1]))
