"""`make pin`: write into .env the digests of the images that compose.yaml takes from a registry.

A tag such as `nginx:1.28` can refer to a different image tomorrow; a digest cannot. The script pulls the
image for each tag, and sets the image's variable in .env. It needs only the standard library and docker.
"""

import re
import subprocess
import sys
from pathlib import Path

IMAGE = re.compile(r"\$\{(\w+_IMAGE):-([^}]+)\}")
DIGEST = re.compile(r"\S+@sha256:[0-9a-f]{64}")


def pin(folder: Path) -> None:
    """Write `NGINX_IMAGE=nginx@sha256:…` into .env, and a line for every other image that has a variable."""
    lines = (folder / ".env").read_text().splitlines()
    for variable, tag in dict(IMAGE.findall((folder / "compose.yaml").read_text())).items():
        lines = [line for line in lines if not line.startswith(f"{variable}=")]
        lines.append(f"{variable}={_digest_of(tag)}")
    (folder / ".env").write_text("\n".join(lines) + "\n")


def _digest_of(tag: str) -> str:
    subprocess.run(["docker", "pull", "--quiet", tag], check=True, stdout=sys.stderr)
    inspect = ["docker", "image", "inspect", "--format", "{{index .RepoDigests 0}}", tag]
    digest = subprocess.run(inspect, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    if not DIGEST.fullmatch(digest):
        raise SystemExit(f"Docker does not know the digest of {tag}, but says {digest!r}.")
    return digest


if __name__ == "__main__":
    pin(Path.cwd())
