"""`make sbom`: lists the packages that production runs, in the CycloneDX format."""

import subprocess
import sys
from pathlib import Path

from config.version import VERSION
from tests.release import ROOT

OPTIONS = ("--mc-type", "application", "--output-reproducible", "--output-format", "JSON")


def write(path: Path) -> None:
    """Write the packages of requirements.lock, with their versions and hashes."""
    # The command reads the service's version only from pyproject.toml. There the version is dynamic: it is
    # defined in config/version.py.
    project = (ROOT / "pyproject.toml").read_text().replace('dynamic = ["version"]', f'version = "{VERSION}"')
    command = [sys.executable, "-m", "cyclonedx_py", "requirements", "requirements.lock", *OPTIONS]
    command += ["--pyproject", "/dev/stdin", "--output-file", str(path.absolute())]
    subprocess.run(command, cwd=ROOT, check=True, text=True, input=project)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
