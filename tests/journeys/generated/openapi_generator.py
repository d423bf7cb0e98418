"""Generates API clients with the documented openapi-generator commands, and compiles a shop's backend with each."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from tests.journeys.generated.making import HERE, documented_command, run

# The folder in which Debian's packages install the modules that the clients import.
GO_PACKAGES = "/usr/share/gocode"


def generate(generator: str, base_url: str, folder: Path) -> None:
    """Generate a client in the folder, with the command that the guide shows for this generator."""
    run(*documented_command(f"openapi-generator-cli generate -g {generator}", base_url), within=folder)


def go_shop(base_url: str, folder: Path) -> list[str]:
    """Generate the Go client, vet the client and shop.go, build the shop, and return the command that runs it."""
    sources = folder / "src"
    (sources / "shop").mkdir(parents=True)
    generate("go", base_url, sources)
    shutil.copy(HERE / "shop.go", sources / "shop")
    environment = {"GO111MODULE": "off", "GOPATH": f"{folder}:{GO_PACKAGES}"}
    run("go", "vet", "checkout", "shop", within=folder, **environment)
    run("go", "build", "-o", "run-shop", "shop", within=folder, **environment)
    return [str(folder / "run-shop")]


def php_shop(base_url: str, folder: Path) -> list[str]:
    """Generate the PHP client, check the syntax of each file, and return the command that runs shop.php."""
    generate("php", base_url, folder)
    client = folder / "checkout-client"
    for path in sorted(client.glob("lib/**/*.php")):
        run("php", "-l", str(path), within=client)
    shutil.copy(HERE / "shop.php", client)
    return ["php", str(client / "shop.php")]


def ruby_shop(base_url: str, folder: Path) -> list[str]:
    """Generate the Ruby client, load all of it, and return the command that runs shop.rb."""
    generate("ruby", base_url, folder)
    client = folder / "checkout-client"
    run("ruby", "-Ilib", "-e", "require 'checkout_client'", within=client)
    shutil.copy(HERE / "shop.rb", client)
    return ["ruby", f"-I{client}/lib", str(client / "shop.rb")]


def numbered(names: Iterable[str]) -> list[str]:
    """Return the classes whose name ends in a number, such as `Error2`."""
    return sorted(name for name in names if name[-1].isdigit())
