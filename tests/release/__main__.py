"""`make release VERSION=1.1.0`: checks that the version can be released, sets it, and freezes its migrations.

It then builds the version, and prints the commands that commit, tag and publish it. It does not run these
commands.
"""

import subprocess
import sys

from config.version import VERSION
from tests.release import ROOT, frozen
from tests.release.refusals import refusals

COMMANDS = """Version {0} is ready under dist/. To publish it:

  git commit --all --allow-empty --message "Release {0}"
  git tag --sign v{0} --message "Version {0}"
  git push origin main v{0}
  python3 -m twine upload dist/*.whl dist/*.tar.gz

Publish the other two files under dist/ next to the tag: the list of packages, and the checksums.
"""


def main(version: str) -> int:
    """Prepare the release. If the version cannot be released, print the reasons and return 1."""
    if reasons := list(refusals(ROOT, version)):
        print("\n".join(reasons), file=sys.stderr)
        return 1
    if version != VERSION:
        _run("hatchling", "version", version)
    frozen.write(ROOT)
    _run("tests.release.building", "dist")
    print(COMMANDS.format(version), end="")
    return 0


def _run(module: str, *arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", module, *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
