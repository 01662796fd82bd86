"""The compose file and the image's recipe, read; and asked of the docker client where there is one."""

import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from app.interfaces.cli.commands import app
from app.settings import Settings
from tests.composed import composed

OURS = ("migrate", "api", "worker")
TOGETHER = (
    ("compose.yaml",),
    ("compose.yaml", "compose.scale.yaml"),
    ("compose.yaml", "compose.citus.yaml"),
    ("compose.yaml", "compose.citus.yaml", "compose.scale.yaml"),
)
"""The compose files that are used together."""
ALL = TOGETHER[-1]


@pytest.fixture(scope="module")
def compose(repository: Path) -> dict[str, Any]:
    """The compose file."""
    return composed(repository / "compose.yaml")


@pytest.fixture(scope="module")
def whole(repository: Path) -> dict[str, Any]:
    """All compose files together."""
    return composed(*(repository / name for name in ALL))


@pytest.fixture(scope="module")
def recipe(repository: Path) -> list[tuple[str, str]]:
    """The Dockerfile's instructions."""
    text = (repository / "docker" / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def test_the_services_and_their_order(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert set(services) == {"database", *OURS}
    assert services["migrate"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    for name in ("api", "worker"):
        assert services[name]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}


def test_ours_run_without_rights_on_a_read_only_root(whole: dict[str, Any]) -> None:
    for name in (*OURS, "distribute"):
        service = whole["services"][name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["user"].split(":")[0] not in {"0", "root"}


def test_what_stays_up_has_a_health_check(whole: dict[str, Any]) -> None:
    stays = {name: service for name, service in whole["services"].items() if service["restart"] != "no"}
    assert set(stays) == {"database", "node-1", "node-2", "api", "worker", "proxy"}
    assert all(service["healthcheck"]["test"] for service in stays.values())
    own = [words[1:] for service in stays.values() if "priors" in (words := service["healthcheck"]["test"])]
    assert own
    for _, *words in own:
        assert CliRunner().invoke(app, [*words, "--help"]).exit_code == 0, words


def test_the_cluster_is_joined_migrated_and_distributed_in_this_order(whole: dict[str, Any]) -> None:
    services = whole["services"]
    assert set(services["join"]["depends_on"]) == {"database", "node-1", "node-2"}
    done = {"condition": "service_completed_successfully"}
    for name, before in (
        ("migrate", "join"),
        ("distribute", "migrate"),
        ("api", "distribute"),
        ("worker", "distribute"),
    ):
        assert services[name]["depends_on"][before] == done
    assert services["distribute"]["command"] == ["priors", "store", "distribute"]


def test_only_nodes_are_on_the_network_on_which_nodes_trust_each_other(whole: dict[str, Any], repository: Path) -> None:
    on_it = {name for name, service in whole["services"].items() if "nodes" in service.get("networks", ())}
    assert on_it == {"database", "node-1", "node-2", "join"}
    network = whole["networks"]["nodes"]
    assert network["internal"]
    (subnet,) = (item["subnet"] for item in network["ipam"]["config"])
    rules = (repository / "docker" / "citus" / "pg_hba.conf").read_text()
    trusted = {line.split()[3] for line in rules.splitlines() if line.startswith("host") and line.endswith("trust")}
    assert trusted == {"127.0.0.1/32", "::1/128", subnet}


def test_one_address_for_several_processes(whole: dict[str, Any], repository: Path) -> None:
    services = whole["services"]
    assert "ports" not in services["api"]
    assert services["proxy"]["ports"] == ["${PUBLISH:-127.0.0.1:8000}:8080"]
    assert services["proxy"]["read_only"] is True
    for mount in services["proxy"]["volumes"]:
        assert (repository / mount.split(":")[0]).is_file()


def test_the_port_is_open_to_this_machine_alone(compose: dict[str, Any]) -> None:
    assert compose["services"]["api"]["ports"] == ["${PUBLISH:-127.0.0.1:8000}:${PRIORS_PORT:-8000}"]


def test_every_setting_of_the_file_of_settings_reaches_ours(compose: dict[str, Any]) -> None:
    for name in OURS:
        service = compose["services"][name]
        assert service["env_file"] == [{"path": ".env", "required": False}]
        # What stands in `environment` wins over the file, so it must give way to the file itself.
        for variable, value in service["environment"].items():
            if variable.startswith("PRIORS_"):
                assert value.startswith(f"${{{variable}:"), variable


def test_secrets_must_be_given(compose: dict[str, Any], repository: Path) -> None:
    assert "${PRIORS_API_KEY:?" in compose["services"]["api"]["environment"]["PRIORS_API_KEY"]
    given = (repository / "docker" / "example.env").read_text()
    assert re.findall(r"(?m)^(POSTGRES_PASSWORD|PRIORS_API_KEY)=(.*)$", given) == [
        ("POSTGRES_PASSWORD", ""),
        ("PRIORS_API_KEY", ""),
    ]


def test_every_image_is_pinned(compose: dict[str, Any], whole: dict[str, Any], repository: Path) -> None:
    images = [service["image"] for used in (compose, whole) for service in used["services"].values()]
    for recipe in (repository / "docker").rglob("Dockerfile"):
        images += re.findall(r"(?m)^FROM (\S+)", recipe.read_text())
    for image in images:
        assert re.search(r":.*\d", image), image
        assert not image.endswith(":latest")


def test_the_image_is_not_root_and_carries_the_model(recipe: list[tuple[str, str]]) -> None:
    users = [rest for name, rest in recipe if name == "USER"]
    assert users
    assert users[-1].split(":")[0] not in {"0", "root"}
    runs = " ".join(rest for name, rest in recipe if name == "RUN")
    assert "priors store prepare-model" in runs
    assert runs.count("--require-hashes") == 2
    assert any(name == "HEALTHCHECK" for name, _ in recipe)


def test_only_what_exists_is_copied(recipe: list[tuple[str, str]], repository: Path) -> None:
    for name, rest in recipe:
        if name == "COPY" and "--from" not in rest:
            for source in rest.split()[:-1]:
                assert (repository / source).exists(), source


def test_every_variable_is_a_setting(repository: Path) -> None:
    known = {f"PRIORS_{item.name.upper()}" for item in fields(Settings)}
    for name in (*ALL, "docker/Dockerfile", "docker/example.env"):
        used = set(re.findall(r"\bPRIORS_[A-Z_]+\b", (repository / name).read_text()))
        assert used <= known, name


def test_every_command_exists(compose: dict[str, Any]) -> None:
    for name in OURS:
        command = compose["services"][name]["command"]
        assert command[0] == "priors"
        assert CliRunner().invoke(app, [*command[1:], "--help"]).exit_code == 0, command


def test_the_compose_files_together_follow_the_specification(repository: Path, tmp_path: Path) -> None:
    files = []
    for names in TOGETHER:
        files.append(tmp_path / f"{'-'.join(names)}.yaml")
        files[-1].write_text(yaml.safe_dump(composed(*(repository / name for name in names))))
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", *map(str, files)]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("names", TOGETHER, ids="+".join)
def test_the_docker_client_accepts_the_compose_files(repository: Path, tmp_path: Path, names: tuple[str, ...]) -> None:
    docker = shutil.which("docker")
    has_compose = docker and subprocess.run([docker, "compose", "version"], capture_output=True, check=False)
    if not docker or not has_compose or has_compose.returncode:
        pytest.skip("there is no docker client with the compose plugin here")
    given = tmp_path / ".env"
    given.write_text("POSTGRES_PASSWORD=a\nPRIORS_API_KEY=b\n")
    files = [word for name in names for word in ("-f", str(repository / name))]
    words = [docker, "compose", "--env-file", str(given), *files, "config", "-q"]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
