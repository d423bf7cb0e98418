import os
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from config.local import CannotStart, environment


class TestOfRun:
    def test_makes_the_keys_once_and_keeps_them_private(self, tmp_path: Path) -> None:
        first = environment.variables_of_run({}, tmp_path)
        assert environment.variables_of_run({}, tmp_path) == first
        assert (tmp_path / environment.SECRETS).stat().st_mode & 0o777 == 0o600
        assert len(first["SECRET_KEY"]) >= 50
        assert Fernet(first["FIELD_KEYS"]).decrypt(Fernet(first["FIELD_KEYS"]).encrypt(b"whsec")) == b"whsec"

    def test_prefers_given_variables(self, tmp_path: Path) -> None:
        assert environment.variables_of_run({"SECRET_KEY": "given"}, tmp_path)["SECRET_KEY"] == "given"

    def test_treats_an_empty_variable_as_unset(self, tmp_path: Path) -> None:
        variables = environment.variables_of_run({"SECRET_KEY": "", "DATABASE_URL": ""}, tmp_path)
        assert len(variables["SECRET_KEY"]) >= 50
        assert "DATABASE_URL" not in variables

    def test_is_local_even_if_the_shell_says_otherwise(self, tmp_path: Path) -> None:
        assert environment.variables_of_run({"ENVIRONMENT": "production"}, tmp_path)["ENVIRONMENT"] == "local"

    def test_runs_the_shop_on_the_next_port(self, tmp_path: Path) -> None:
        variables = environment.variables_of_run({"PORT": "9000"}, tmp_path)
        assert variables["SHOP_PORT"] == "9001"
        assert variables["BASE_URL"] == "http://127.0.0.1:9000"

    def test_refuses_one_port_for_both(self, tmp_path: Path) -> None:
        with pytest.raises(CannotStart, match="a port of its own"):
            environment.variables_of_run({"PORT": "9000", "SHOP_PORT": "9000"}, tmp_path)


class TestAdopt:
    @pytest.fixture
    def shared(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
        """Unset the variables in this process, write them as a running `make run` does, and return them."""
        for name in environment.NAMES:
            monkeypatch.setenv(name, "restored after the test")
            monkeypatch.delenv(name)
        engines = {"DATABASE_URL": "postgresql://run/checkout", "REDIS_URL": "redis://run"}
        variables = environment.variables_of_run({}, tmp_path) | engines
        assert environment.share_variables(variables, tmp_path).stat().st_mode & 0o777 == 0o600
        return {name: variables[name] for name in environment.NAMES}

    def test_uses_the_variables_of_a_run_in_progress(self, shared: dict[str, str], tmp_path: Path) -> None:
        environment.adopt_variables(tmp_path)
        assert {name: os.environ[name] for name in environment.NAMES} == shared

    @pytest.mark.usefixtures("shared")
    def test_keeps_variables_that_are_set(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DATABASE_URL", "postgresql://mine/checkout")
        environment.adopt_variables(tmp_path)
        assert os.environ["DATABASE_URL"] == "postgresql://mine/checkout"

    @pytest.mark.usefixtures("shared")
    def test_does_nothing_in_production(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ENVIRONMENT", "production")
        environment.adopt_variables(tmp_path)
        assert "DATABASE_URL" not in os.environ
