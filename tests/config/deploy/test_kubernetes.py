"""The Kubernetes manifests are valid, agree with the image and the units, and grant no more than is needed."""

import re
from typing import Any

import kubernetes_validate
import pytest
import yaml

from config import probes
from config.deploy import make_env
from config.health import PATHS
from config.variables.table import OTHERS, TABLE
from tests.config.deploy import package, pages
from tests.config.deploy.test_compose import SERVICES

FOLDER = package.DEPLOY / "kubernetes"
KUSTOMIZATION: dict[str, Any] = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
MANIFESTS: list[dict[str, Any]] = [
    manifest
    for name in KUSTOMIZATION["resources"]
    for manifest in yaml.safe_load_all((FOLDER / name).read_text())
]
SETTINGS = dict(
    line.split("=", 1)
    for line in (FOLDER / "checkout.env").read_text().splitlines()
    if line and not line.startswith("#")
)
WORKLOADS = (*package.PARTS, "migrate")
POOL: int = TABLE["DATABASE_POOL"].default_of("production")
MEGABYTES = {"web": 54, "worker": 127, "beat": 128}  # measured, for each process


def manifest(kind: str, name: str) -> dict[str, Any]:
    (found,) = (one for one in MANIFESTS if (one["kind"], one["metadata"]["name"]) == (kind, name))
    return found


def pod(part: str) -> dict[str, Any]:
    template = manifest("Job" if part == "migrate" else "Deployment", part)["spec"]["template"]
    spec: dict[str, Any] = template["spec"]
    return spec


def container(part: str) -> dict[str, Any]:
    (found,) = pod(part)["containers"]
    one: dict[str, Any] = found
    return one


def containers() -> list[tuple[str, dict[str, Any]]]:
    return [
        (part, each)
        for part in WORKLOADS
        for each in [*pod(part)["containers"], *pod(part).get("initContainers", [])]
    ]


class TestManifests:
    @pytest.mark.parametrize("release", ["1.30", "1.37"])
    def test_are_valid_for_kubernetes(self, release: str) -> None:
        assert len(MANIFESTS) > 15
        for one in MANIFESTS:
            kubernetes_validate.validate(one, release, strict=True)

    def test_a_misspelt_field_is_invalid(self) -> None:
        wrong = manifest("Service", "web") | {"spec": {"port": []}}
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(wrong, "1.37", strict=True)

    def test_all_files_of_the_folder_are_applied(self) -> None:
        files = {path.name for path in FOLDER.iterdir()} - {"kustomization.yaml", "checkout.env"}
        assert files == set(KUSTOMIZATION["resources"])
        assert KUSTOMIZATION["configMapGenerator"] == [{"name": "checkout", "envs": ["checkout.env"]}]

    def test_leave_the_registry_and_the_version_to_the_operator(self) -> None:
        """docs/kubernetes.md sets the registry and the version in a folder that belongs to the operator."""
        assert "images" not in KUSTOMIZATION
        assert {each["image"] for _, each in containers()} == {"merchant-checkout-service"}


class TestCommands:
    @pytest.mark.parametrize("part", WORKLOADS)
    def test_are_those_of_compose(self, part: str) -> None:
        """The manifest for web has no command, because web runs the command of the image."""
        expected = None if part == "web" else SERVICES[part]["command"]
        assert container(part).get("command") == expected

    @pytest.mark.parametrize("part", package.PARTS)
    def test_wait_for_the_migrations(self, part: str) -> None:
        """This test checks only the manifests. test_installation.py runs `migrate --check` with the service's role."""
        (first,) = pod(part)["initContainers"]
        assert "until python manage.py migrate --check;" in first["command"][-1]
        assert first["envFrom"] == container(part)["envFrom"]

    def test_beat_runs_once(self) -> None:
        spec = manifest("Deployment", "beat")["spec"]
        assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})

    @pytest.mark.parametrize("part", package.PARTS)
    def test_can_write_to_the_folders_that_they_need(self, part: str) -> None:
        volumes = {volume["name"]: volume for volume in pod(part)["volumes"]}
        writable = {mount["mountPath"]: volumes[mount["name"]] for mount in container(part)["volumeMounts"]}
        assert writable["/tmp"]["emptyDir"]["medium"] == "Memory"
        assert SETTINGS["METRICS_DIR"].startswith("/tmp/")
        claim = writable[SETTINGS["ERASURES_FILE"].rpartition("/")[0]]["persistentVolumeClaim"]["claimName"]
        assert manifest("PersistentVolumeClaim", claim)["spec"]["accessModes"] == ["ReadWriteMany"]
        if part == "beat":
            schedule = container(part)["command"][-1].rpartition("/")[0]
            assert "emptyDir" in writable[schedule]


class TestVariables:
    def test_exist_and_have_valid_values(self) -> None:
        for name, value in SETTINGS.items():
            TABLE[name].value_type.parse(value)
        named = {
            variable["name"]: variable["value"]
            for _, each in containers()
            for variable in each.get("env", [])
        }
        assert set(named) == {"PROBE_PORT"}
        assert set(named) <= set(TABLE)

    def test_secrets_are_only_references(self) -> None:
        secret = {name for name, variable in TABLE.items() if variable.is_secret}
        assert {"SECRET_KEY", "DATABASE_URL", "REDIS_URL", "METRICS_TOKEN"} <= secret
        assert not secret & set(SETTINGS)
        assert "Secret" not in {one["kind"] for one in MANIFESTS}

    @pytest.mark.parametrize("part", WORKLOADS)
    def test_only_migrate_gets_the_owner_of_the_tables(self, part: str) -> None:
        given = [each[kind]["name"] for each in container(part)["envFrom"] for kind in each]
        assert given == ["checkout", "checkout", *(["checkout-owner"] if part == "migrate" else [])]

    def test_the_page_writes_only_variables_that_the_service_reads(self) -> None:
        typed = pages.block("kubernetes.md", "create secret")
        written = set(re.findall(r"^([A-Z_]+)=", typed, re.MULTILINE))
        assert {"SECRET_KEY", "FIELD_KEYS", "DATABASE_URL", "DATABASE_OWNER_URL"} <= written
        assert written <= set(TABLE) | OTHERS
        assert not written & set(SETTINGS)


class TestProbes:
    @pytest.mark.parametrize("part", package.PARTS)
    def test_never_restart_a_process_because_it_is_not_ready(self, part: str) -> None:
        """A database that does not answer must not cause a restart of all processes."""
        one = container(part)
        paths = {
            kind: one[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")
        }
        assert paths == {"startup": "/livez", "liveness": "/livez", "readiness": "/readyz"}
        assert set(paths.values()) <= set(PATHS)
        assert one["readinessProbe"]["timeoutSeconds"] >= probes.SECONDS

    @pytest.mark.parametrize("part", package.PARTS)
    def test_use_the_port_of_the_process(self, part: str) -> None:
        one = container(part)
        (port,) = one["ports"]
        environment = {variable["name"]: variable["value"] for variable in one.get("env", [])}
        assert int(environment.get("PROBE_PORT", 8000)) == port["containerPort"]
        assert {one[f"{kind}Probe"]["httpGet"]["port"] for kind in ("startup", "liveness", "readiness")} == {
            port["name"]
        }

    @pytest.mark.parametrize("part", package.PARTS)
    def test_a_process_gets_the_time_that_it_needs_to_stop(self, part: str) -> None:
        pause = (
            container(part).get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", [0])[-1]
        )
        needed = int(package.unit(part)["TimeoutStopSec"])
        assert pod(part)["terminationGracePeriodSeconds"] >= needed + int(pause)


class TestSecurity:
    @pytest.mark.parametrize("part", WORKLOADS)
    def test_a_pod_runs_as_the_user_of_the_image(self, part: str) -> None:
        spec = pod(part)
        assert spec["securityContext"] == {
            "runAsNonRoot": True,
            "runAsUser": make_env.CONTAINERS_USER,
            "runAsGroup": make_env.CONTAINERS_USER,
            "fsGroup": make_env.CONTAINERS_USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        assert not spec["automountServiceAccountToken"] and not spec["enableServiceLinks"]

    def test_a_container_is_read_only_and_has_no_capabilities(self) -> None:
        assert len(containers()) == len(WORKLOADS) + len(package.PARTS)
        for part, each in containers():
            assert each["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, part


class TestNetwork:
    def test_connections_are_refused_by_default(self) -> None:
        refuse = manifest("NetworkPolicy", "refuse")["spec"]
        assert refuse == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}

    def test_each_rule_names_its_peers_and_ports(self) -> None:
        policies = [one["spec"] for one in MANIFESTS if one["kind"] == "NetworkPolicy"]
        rules = [
            (rule, side) for spec in policies for side in ("ingress", "egress") for rule in spec.get(side, [])
        ]
        assert len(rules) == 5
        for rule, side in rules:
            assert rule["from" if side == "ingress" else "to"] and rule["ports"]

    def test_only_web_and_workers_reach_the_internet_and_no_private_network(self) -> None:
        spec = manifest("NetworkPolicy", "internet")["spec"]
        (parts,) = (each["values"] for each in spec["podSelector"]["matchExpressions"])
        assert parts == ["web", "worker"]
        excluded = {network for peer in spec["egress"][0]["to"] for network in peer["ipBlock"]["except"]}
        assert {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "fc00::/7"} <= excluded

    def test_open_ports_are_those_of_the_processes(self) -> None:
        open_ports = {
            port["port"]
            for name in ("requests", "metrics")
            for port in manifest("NetworkPolicy", name)["spec"]["ingress"][0]["ports"]
        }
        assert open_ports == {container(part)["ports"][0]["containerPort"] for part in package.PARTS}

    def test_probes_and_metrics_are_not_public(self) -> None:
        (rule,) = manifest("Ingress", "web")["spec"]["rules"]
        services = {path["path"]: path["backend"]["service"]["name"] for path in rule["http"]["paths"]}
        assert services == {"/": "web", "/metrics": "unavailable", "/readyz": "unavailable"}
        assert "selector" not in manifest("Service", "unavailable")["spec"]
        assert f"https://{rule['host']}" == SETTINGS["BASE_URL"]


class TestScaling:
    @pytest.mark.parametrize("part", ["web", "worker"])
    def test_two_pods_at_least_of_which_one_can_be_missing(self, part: str) -> None:
        scaler = manifest("HorizontalPodAutoscaler", part)["spec"]
        assert scaler["scaleTargetRef"]["name"] == part and scaler["minReplicas"] == 2
        assert "replicas" not in manifest("Deployment", part)["spec"], "applying would undo the scaling"
        budget = manifest("PodDisruptionBudget", part)["spec"]
        labels = manifest("Deployment", part)["spec"]["template"]["metadata"]["labels"]
        assert budget == {"maxUnavailable": 1, "selector": {"matchLabels": labels}}

    @pytest.mark.parametrize("part", package.PARTS)
    def test_memory_is_requested_as_measured(self, part: str) -> None:
        processes = int(SETTINGS["WEB_CONCURRENCY"]) + 1 if part == "web" else 1  # web has a master process
        requested = int(container(part)["resources"]["requests"]["memory"].removesuffix("Mi"))
        assert processes * MEGABYTES[part] <= requested <= 2 * processes * MEGABYTES[part]

    def test_the_page_says_how_many_connections_the_database_needs(self) -> None:
        """One more pod of each kind runs during an update."""
        most = {
            part: manifest("HorizontalPodAutoscaler", part)["spec"]["maxReplicas"] + 1
            for part in ("web", "worker")
        }
        processes = most["web"] * int(SETTINGS["WEB_CONCURRENCY"]) + most["worker"] + 1
        assert f"`max_connections` must be at least {processes * POOL + 20}" in " ".join(
            pages.text("kubernetes.md").split()
        )
