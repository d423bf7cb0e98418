"""The image and the units agree with each other, with the Makefile and with docs/operate.md."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from config.deploy import make_env
from config.version import VERSION
from tests.config.deploy import package


class TestImage:
    def test_pins_its_base_images_by_digest(self) -> None:
        bases = package.arguments_of("FROM")
        assert len(bases) == 2
        assert all(re.fullmatch(r"[a-z]+:[\w.-]+@sha256:[0-9a-f]{64}( AS build)?", base) for base in bases)

    def test_is_built_only_by_makefile_targets(self) -> None:
        run = package.arguments_of("RUN")
        assert run == ["make install", "make static"]
        assert {words.removeprefix("make ") for words in run} <= package.targets()

    def test_runs_as_an_unprivileged_user(self) -> None:
        (user,) = package.arguments_of("USER")
        assert int(user.split(":")[0]) > 1000
        assert package.dockerfile()[-1][0] == "CMD" and ("USER", user) in package.dockerfile()[-4:]

    def test_contains_the_product_and_no_tests(self) -> None:
        assert set(package.shipped()) == {
            *("Makefile", "manage.py", "requirements.lock", "static", "templates"),
            *("checkout", "config", "hosted_page", "payments", "portal", "webhooks"),
        }


@pytest.mark.long
class TestListOfContents:
    def test_lists_the_installed_names_versions_and_hashes(self, tmp_path: Path) -> None:
        """`make sbom` lists the packages that requirements.lock pins.

        Because pip accepts no other packages, these are the installed ones.
        """
        written = tmp_path / "sbom.json"
        command = ["make", "--old-file=.venv/.installed", "sbom", f"SBOM={written}"]
        subprocess.run(command, cwd=package.ROOT, check=True, capture_output=True)
        sbom = json.loads(written.read_text())
        assert sbom["metadata"]["component"]["version"] == VERSION
        found = {
            (part["name"], part["version"]): sorted(
                digest["content"]
                for place in part["externalReferences"]
                for digest in place.get("hashes", [])
            )
            for part in sbom["components"]
        }
        lock = (package.ROOT / "requirements.lock").read_text()
        pinned = re.findall(r"^([\w.-]+)==([^ ;]+)(.*?)(?=^\w|\Z)", lock, re.MULTILINE | re.DOTALL)
        assert found == {
            (name, version): sorted(re.findall(r"--hash=sha256:([0-9a-f]{64})", rest))
            for name, version, rest in pinned
        }
        assert len(found) == len(re.findall(r"^\S+==", lock, re.MULTILINE)) > 80


class TestUnit:
    @pytest.mark.parametrize("part", package.PARTS)
    def test_is_restarted_and_cannot_write_elsewhere(self, part: str) -> None:
        said = package.unit(part)
        assert (
            said["Restart"] == "always" and said["ProtectSystem"] == "strict" and said["User"] == "checkout"
        )
        assert said["WorkingDirectory"] == package.HOME

    @pytest.mark.long
    def test_is_valid_for_systemd(self) -> None:
        """systemd-analyze prints no text for a correct unit.

        For an unknown setting, systemd-analyze does not fail. It only prints a warning.
        """
        units = sorted((package.ROOT / "config" / "deploy").glob("checkout-*.[st][ei][rm]*"))
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=True
        )
        # systemd before version 254 does not know these two settings. It ignores the settings with a warning.
        known = re.sub(
            r".*Unknown key( name)? '(RestartSteps|RestartMaxDelaySec)'.*\n", "", done.stdout + done.stderr
        )
        assert len(units) == len(package.PARTS) + 2 and known == ""  # the back-up has a service and a timer


class TestNewInstallation:
    def test_generates_its_own_keys_and_keeps_them(self, tmp_path: Path) -> None:
        make_env.write(tmp_path, "pay.shop.example")
        written = (tmp_path / ".env").read_text()
        said = dict(line.split("=", 1) for line in written.splitlines() if not line.startswith("#"))
        # Only compose.yaml uses these variables.
        assert set(said) - package.variables_of_operators() == {
            "SERVER_NAME",
            "POSTGRES_PASSWORD",
            "CHECKOUT_PASSWORD",
            "VALKEY_PASSWORD",
        }
        assert len(said["SECRET_KEY"]) >= 50 and said["BASE_URL"] == "https://pay.shop.example"
        assert len(said["LOOKUP_KEY"]) >= 50 and said["LOOKUP_KEY"] != said["SECRET_KEY"]
        assert (tmp_path / ".env").stat().st_mode & 0o077 == 0
        make_env.write(tmp_path, "another.example")
        assert (tmp_path / ".env").read_text() == written

    def test_starts_with_a_certificate(self, tmp_path: Path) -> None:
        make_env.write(tmp_path, "pay.shop.example")
        shown = f"openssl x509 -noout -ext subjectAltName -in {tmp_path}/.tls/public.pem".split()
        told = subprocess.run(shown, capture_output=True, check=True, text=True).stdout
        assert "DNS:pay.shop.example" in told
        assert (tmp_path / ".tls" / "private.pem").stat().st_mode & 0o077 == 0
