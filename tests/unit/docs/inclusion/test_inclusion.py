# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A user's repository (tests/inclusion) with the tarball installed, run on simulated hosts of several classes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Sequence

import pytest
import yaml

from dev import build
from tests.support.simulated import simulate

REPOSITORY = Path(__file__).resolve().parents[3] / "inclusion"
BIN = Path(sys.executable).parent
NOBODY = 65534
# Not root, but able to read everything: the interpreter and this checkout may be below /root.
AS_NOBODY = (
    *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
    *("--inh-caps=-all,+dac_read_search", "--ambient-caps=+dac_read_search"),
)
KINDS = {"redis-1": "xen_hvm", "redis-2": "nitro_big", "web-1": "graviton", "web-2": "nitro_burstable"}
PAIR = {"redis-1": "xen_hvm", "web-2": "nitro_burstable"}
GROUPS = {"redis": ["redis-1", "redis-2"], "web": ["web-1", "web-2"]}


def somebodys() -> Dict[str, str]:
    """The environment without what this project sets: with its path ansible-galaxy finds the collection installed."""
    return {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}


class Repository:
    """The repository with its hosts, in a folder of its own."""

    def __init__(self, folder: Path, collections: Path) -> None:
        shutil.copytree(REPOSITORY, folder, dirs_exist_ok=True)
        self.folder, self.collections = folder, collections
        self.command: Sequence[str] = ()  # the command that runs ansible-playbook

    def hosts(self, kinds: Mapping[str, str]) -> None:
        """Simulate these hosts, and write the inventory."""
        plain: Dict[str, Any] = {"all": {"hosts": {}, "children": {}}}
        for name, kind in kinds.items():
            plain["all"]["hosts"][name] = simulate(self.folder / name, kind)
        for group, names in GROUPS.items():
            plain["all"]["children"][group] = {"hosts": {name: {} for name in names if name in kinds}}
        (self.folder / "hosts.json").write_text(json.dumps(plain))

    def run(self, *words: str, code: int = 0) -> str:
        """Run ansible-playbook and return its output."""
        return self.start(*self.command, str(BIN / "ansible-playbook"), "-i", "hosts.json", *words, code=code)

    def start(self, *command: str, code: int = 0) -> str:
        """Run one of Ansible's programs and return its output."""
        environment = {
            **somebodys(),
            "ANSIBLE_COLLECTIONS_PATH": str(self.collections),
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_LOCAL_TEMP": str(self.folder / "home/local"),
            "ANSIBLE_REMOTE_TMP": str(self.folder / "home/remote"),
            "HOME": str(self.folder / "home"),
        }
        done = subprocess.run(
            list(command),
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def value(self, host: str, path: str) -> str:
        """The text of a file of a simulated host."""
        return (self.folder / host / "root" / path.lstrip("/")).read_text().strip()

    def snapshot(self) -> Dict[str, bytes]:
        """Every file of every host, but the lock of a run."""
        files = [path for path in self.folder.glob("*/root/**/*") if path.is_file() and path.name != "lock"]
        return {str(path): path.read_bytes() for path in files}


CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
THP = "/sys/kernel/mm/transparent_hugepage/enabled"
SYSCTL = "/proc/sys/net"


@pytest.fixture(scope="session")
def collections(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tarball of this checkout, built and installed as a user does, without a network."""
    folder = tmp_path_factory.mktemp("installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
        tarball = build.build(folder)
    shutil.copy(tarball, folder / "nearmetal-ec2.tar.gz")
    shutil.copy(REPOSITORY / "requirements.yml", folder)
    command = [
        str(BIN / "ansible-galaxy"),
        "collection",
        "install",
        "--offline",
        "-r",
        "requirements.yml",
        "-p",
        "there",
    ]
    subprocess.run(command, cwd=folder, env=somebodys(), check=True, capture_output=True)
    return folder / "there"


@pytest.fixture
def repository(tmp_path: Path, collections: Path) -> Repository:
    return Repository(tmp_path, collections)


def changed(output: str) -> List[str]:
    """The hosts that the recap calls changed."""
    rows = [line.split(":") for line in output.splitlines() if " ok=" in line]
    return [name.strip() for name, counts in rows if "changed=0" not in counts]


def test_one_role(repository: Repository) -> None:
    repository.hosts(PAIR)
    before = repository.snapshot()
    assert "redis-1" in changed(repository.run("one_role.yml", "--check"))
    assert repository.snapshot() == before
    assert "redis-1" in changed(repository.run("one_role.yml"))
    assert repository.value("redis-1", CLOCK) == "tsc"
    assert changed(repository.run("one_role.yml")) == []


def test_three_roles_between_tasks_of_ones_own(repository: Repository) -> None:
    repository.hosts({"redis-2": "nitro_big"})
    repository.run("three_roles.yml")
    assert repository.value("redis-2", THP) == "always madvise [never]"
    assert repository.value("redis-2", f"{SYSCTL}/core/somaxconn") == "8192"


def test_a_mixed_fleet_by_its_group_vars(repository: Repository) -> None:
    repository.hosts(KINDS)
    repository.run("tune.yml")
    assert repository.value("redis-1", CLOCK) == "tsc"
    assert repository.value("redis-1", THP) == "always madvise [never]"
    assert repository.value("redis-2", f"{SYSCTL}/core/somaxconn") == "16384"
    assert repository.value("web-1", THP) == "always [madvise] never"
    assert repository.value("web-1", f"{SYSCTL}/ipv4/ip_local_port_range").split() == ["32768", "60999"]
    assert repository.value("web-1", f"{SYSCTL}/ipv4/tcp_max_syn_backlog") == "512", "waived, by a date of YAML"
    assert changed(repository.run("tune.yml")) == []


def test_in_a_play_that_gathers_facts(repository: Repository) -> None:
    repository.hosts({"web-1": "graviton"})
    repository.run("with_facts.yml")
    assert repository.value("web-1", f"{SYSCTL}/ipv4/tcp_keepalive_time") == "300"


def test_whole_playbooks_imported(repository: Repository) -> None:
    repository.hosts(PAIR)
    before = repository.snapshot()
    output = repository.run("whole.yml")
    assert set(changed(output)) == set(PAIR)
    assert repository.snapshot() == before, "restore brought everything back"


def test_with_limit_and_tags(repository: Repository) -> None:
    repository.hosts(PAIR)
    before = repository.snapshot()
    repository.run("tune.yml", "--tags", "nothing")
    assert repository.snapshot() == before
    output = repository.run("tune.yml", "--limit", "web", "--tags", "tune")
    assert changed(output) == ["web-2"]
    assert repository.value("redis-1", CLOCK) == "xen"


def test_module_defaults_of_the_group(repository: Repository) -> None:
    repository.hosts({"redis-1": "not_ec2"})
    before = repository.snapshot()
    repository.run("defaults.yml")
    assert repository.value("redis-1", THP) == "always madvise [never]"
    repository.run("defaults.yml", "--tags", "back")
    assert repository.snapshot() == before
    guide = (EXAMPLES.parent / "inclusion.md").read_text("utf-8")
    shown = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)[0])
    (play,) = yaml.safe_load((REPOSITORY / "defaults.yml").read_text())
    assert play["module_defaults"] == shown["module_defaults"]


@pytest.fixture
def readable(collections: Path) -> Iterator[Repository]:
    """A repository that everybody may read: Ansible asks access(2), which knows no capabilities.

    Not below pytest's folder, which each run of pytest closes when it starts, to those beside it too.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield Repository(folder, Path(shutil.copytree(collections, folder / "installed")))


def test_a_user_who_is_not_root_becomes_root_where_it_is_needed(readable: Repository) -> None:
    repository = readable
    host = simulate(repository.folder / "redis-1", "xen_hvm", user="somebody")
    groups = {"redis": {"hosts": {"redis-1": {}}}}
    (repository.folder / "hosts.json").write_text(json.dumps({"all": {"hosts": {"redis-1": host}, "children": groups}}))
    for path in [repository.folder, *repository.folder.rglob("*")] if os.geteuid() == 0 else []:
        os.lchown(path, NOBODY, NOBODY)
    repository.command = AS_NOBODY if os.geteuid() == 0 else ()
    refused = repository.run("defaults.yml", "-e", "ansible_become=false", code=2)
    assert "nearmetal needs root on the host" in refused
    repository.run("tune.yml")
    assert repository.value("redis-1", CLOCK) == "tsc"


EXAMPLES = REPOSITORY.parents[1] / "docs" / "examples"


def test_the_bake_of_the_guide(repository: Repository) -> None:
    repository.hosts({"redis-1": "xen_hvm"})
    shutil.copy(EXAMPLES / "bake.yml", repository.folder)
    repository.run("bake.yml", "-e", "workload=cache")
    assert repository.value("redis-1", CLOCK) == "xen", "nothing that runs is touched"
    kept = repository.value("redis-1", "/etc/sysctl.d/99-nearmetal-network_stack.conf")
    assert "net.core.busy_poll = 50" in kept
    assert "i-0" not in repository.value("redis-1", "/var/lib/nearmetal/wanted.json")


def test_the_playbook_of_the_guide_that_runs_on_the_instance_itself(repository: Repository) -> None:
    repository.hosts({"localhost": "nitro"})
    shutil.copy(EXAMPLES / "site.yml", repository.folder)
    assert changed(repository.run("site.yml", "--check")) == ["localhost"]


def test_the_playbook_for_an_instance_that_has_started(repository: Repository) -> None:
    repository.hosts({"web-1": "graviton", "web-2": "nitro_burstable"})
    shutil.copy(EXAMPLES / "started.yml", repository.folder)
    assert changed(repository.run("started.yml", "-e", "target=web-1")) == ["web-1"]
    assert "name: started.yml" in (EXAMPLES.parent / "inclusion.md").read_text("utf-8")


def test_the_last_command_of_the_user_data_pulls_and_tunes(repository: Repository) -> None:
    """ansible-pull as cloud-init starts it, from a repository that has site.yml alone, on a simulated host."""
    repository.hosts({"localhost": "nitro"})
    source = repository.folder / "fleet"
    source.mkdir()
    shutil.copy(EXAMPLES / "site.yml", source)
    git = ("git", "-c", "user.name=x", "-c", "user.email=x@example.com", "-C", str(source))
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "x")):
        subprocess.run([*git, *words], check=True)
    words = yaml.safe_load((EXAMPLES / "user-data").read_text())["runcmd"][-1]
    named = {
        words[0]: str(BIN / "ansible-pull"),
        words[2]: str(source),
        "localhost,": str(repository.folder / "hosts.json"),
    }
    repository.start(*(named.get(word, word) for word in words), "--directory", str(repository.folder / "checkout"))
    assert repository.value("localhost", f"{SYSCTL}/ipv4/tcp_keepalive_time") == "300"


def test_the_other_examples_are_what_they_say() -> None:
    environment = yaml.safe_load((EXAMPLES / "execution-environment.yml").read_text())
    assert environment["version"] == 3
    assert set(environment) == {"version", "images", "dependencies"}
    named = environment["dependencies"]["galaxy"]
    assert yaml.safe_load((REPOSITORY.parents[1] / "galaxy.yml").read_text())["repository"] in (
        named["collections"][0]["name"].removesuffix(".git")
    )
    (resource,) = yaml.safe_load((EXAMPLES / "association.yml").read_text())["Resources"].values()
    assert resource["Properties"]["Parameters"]["PlaybookFile"] == ["site.yml"]
    packer = (EXAMPLES / "bake.pkr.hcl").read_text()
    for name in ("bake.yml", "requirements.yml"):
        assert f'"{name}"' in packer
        assert (EXAMPLES / name).exists()
    guide = (EXAMPLES.parent / "inclusion.md").read_text("utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", guide):
        assert (EXAMPLES.parent / target).exists(), target
