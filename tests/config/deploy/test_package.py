"""The image, compose.yaml and the units agree with each other, with the Makefile and with docs/operate.md."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from config.deploy import make_env
from config.variables import checks
from config.variables.table import TABLE
from config.version import VERSION
from tests.config.deploy import package


def variables_of_operators() -> set[str]:
    """Return the environment variables that the table in docs/operate.md lists."""
    table = (package.ROOT / "docs" / "operate.md").read_text().partition("## Settings")[2]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in re.findall(r"`([A-Z_]+)`", cell)}


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


class TestCompose:
    def test_sets_only_documented_variables(self) -> None:
        ours = package.our_services()
        assert len(ours) == 4
        known = variables_of_operators()
        assert len(known) > 40
        for service in ours.values():
            # compose.yaml clears POSTGRES_PASSWORD. Only migrate gets this password, in its URL.
            assert set(service["environment"]) - {"POSTGRES_PASSWORD"} <= known

    def test_makes_our_containers_read_only(self) -> None:
        for name, service in package.our_services().items():
            assert service["read_only"] and service["cap_drop"] == ["ALL"], name

    def test_builds_the_image_once(self) -> None:
        """If several services build the same image at the same time, Compose fails with "already exists"."""
        assert [name for name, service in package.our_services().items() if "build" in service] == ["web"]

    def test_stores_erasures_in_a_folder_that_its_user_can_write(self, tmp_path: Path) -> None:
        make_env.write(tmp_path, "pay.shop.example")
        owner = (tmp_path / ".kept").stat()
        assert owner.st_uid == make_env.CONTAINERS_USER or owner.st_mode & 0o002
        assert package.arguments_of("USER") == [f"{make_env.CONTAINERS_USER}:{make_env.CONTAINERS_USER}"]
        for part in (*package.PARTS, "migrate"):
            service = package.compose()["services"][part]
            assert service["environment"]["ERASURES_FILE"].startswith("/srv/kept/"), part
            assert service["volumes"] == ["./.kept:/srv/kept", "sockets:/run/sockets"], part

    @pytest.mark.rule("environment.variables")
    def test_connects_to_the_database_and_redis_by_sockets(self) -> None:
        """Production refuses unencrypted connections over a network."""
        for part in (*package.PARTS, "migrate"):
            variables = package.compose()["services"][part]["environment"]
            values = {
                name: TABLE[name].value_type.parse(variables[name]) for name in ("DATABASE_URL", "REDIS_URL")
            }
            assert checks.is_protected(values["DATABASE_URL"]) and values["REDIS_URL"].startswith(
                "unix:///run/"
            )

    def test_gives_beat_a_writable_folder_for_its_schedule(self) -> None:
        kept = package.command("beat")[-1].rpartition("/")[0]
        mounted = {mount.partition(":")[0]: mount for mount in package.compose()["services"]["beat"]["tmpfs"]}
        (user,) = package.arguments_of("USER")
        assert f"uid={user.split(':')[0]}," in mounted[kept]

    @pytest.mark.parametrize("part", package.PARTS)
    def test_runs_the_same_commands_as_the_systemd_units(self, part: str) -> None:
        env, own, python, *unit = package.unit_command(part)
        # The unit's command sets this variable, so that an empty line in the environment file has no effect.
        assert env == "/usr/bin/env" and own.partition("=")[0] in ("METRICS_DIR", "PROBE_PORT")
        assert python == f"{package.HOME}/.venv/bin/python"
        words = package.command(part)
        assert words[0] == "python"
        assert words[1:] == unit


@pytest.mark.long
class TestListOfContents:
    def test_lists_the_installed_names_versions_and_hashes(self, tmp_path: Path) -> None:
        """`make sbom` lists what requirements.lock pins.

        These are the installed packages, because pip accepts no others.
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
        """systemd-analyze has no output for a correct unit.

        For a setting that it does not know, it only prints a warning.
        """
        units = sorted((package.ROOT / "config" / "deploy").glob("checkout-*.[st][ei][rm]*"))
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=True
        )
        # systemd before version 254 does not know these two, and ignores them.
        known = re.sub(
            r".*Unknown key( name)? '(RestartSteps|RestartMaxDelaySec)'.*\n", "", done.stdout + done.stderr
        )
        assert len(units) == len(package.PARTS) + 2 and known == ""  # and the back-up with its timer


class TestNewInstallation:
    def test_generates_its_own_keys_and_keeps_them(self, tmp_path: Path) -> None:
        make_env.write(tmp_path, "pay.shop.example")
        written = (tmp_path / ".env").read_text()
        said = dict(line.split("=", 1) for line in written.splitlines() if not line.startswith("#"))
        # Only compose.yaml uses these variables.
        assert set(said) - variables_of_operators() == {
            "SERVER_NAME",
            "POSTGRES_PASSWORD",
            "CHECKOUT_PASSWORD",
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
