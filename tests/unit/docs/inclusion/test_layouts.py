# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The repositories of tests/inclusion/layouts, each started as its kind of repository is: from the built tarball."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import MappingProxyType
from typing import Any, Dict, List, Mapping, Tuple

import pytest

from dev import build
from tests.support.simulated import simulate

LAYOUTS = Path(__file__).resolve().parents[3] / "inclusion/layouts"
BIN = Path(sys.executable).parent
CLOCK = "sys/devices/system/clocksource/clocksource0/current_clocksource"
KINDS = {"redis-1": "xen_hvm", "redis-2": "nitro_big", "web-1": "graviton", "web-2": "nitro_burstable"}
AGENT = "root/usr/local/lib/nearmetal/nearmetal.pyz"
MITOGEN = {
    "ANSIBLE_STRATEGY": "mitogen_linear",
    "ANSIBLE_STRATEGY_PLUGINS": str(Path(sysconfig.get_path("purelib")) / "ansible_mitogen/plugins/strategy"),
}
KERNEL = "{{ lookup('file', ansible_python_interpreter | dirname ~ '/root/proc/sys/kernel/osrelease') }}"
LOOK: List[Dict[str, Any]] = [
    {
        "hosts": "all",
        "gather_facts": False,
        "tasks": [
            {"nearmetal.ec2.host_facts": {}, "become": True, "register": "found"},
            {
                "ansible.builtin.assert": {"that": ["found.ansible_facts.nearmetal.platform.kernel == expected"]},
                "vars": {"expected": KERNEL},
            },
        ],
    }
]


@pytest.fixture(scope="module")
def tarball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
        return build.build(tmp_path_factory.mktemp("built"))


NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


class Project:
    """A copy of a layout with simulated hosts."""

    def __init__(self, layout: str, folder: Path, tarball: Path) -> None:
        self.folder = folder / layout
        self.place = folder / "hosts"  # outside the project, as real hosts are
        self.tarball = tarball
        shutil.copytree(LAYOUTS / layout, self.folder)

    def hosts(self) -> Dict[str, Dict[str, Any]]:
        """Simulate the hosts; their variables."""
        return {name: simulate(self.place / name, kind) for name, kind in KINDS.items()}

    def install(self, into: str) -> None:
        """Install the collection below this folder of the project."""
        self.run("ansible-galaxy", "collection", "install", "--offline", str(self.tarball), "-p", into)

    def run(self, *words: str, environment: Mapping[str, str] = NO_VARIABLES, below: str = "") -> str:
        """The output of a program in the project's folder, which must not fail."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        done = subprocess.run(
            [str(BIN / words[0]), *words[1:]],
            cwd=self.folder / below,
            env={**clean, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def clock(self, host: str) -> str:
        """The clock source that a host uses now."""
        return (self.place / host / "root" / CLOCK).read_text().strip()

    def state(self) -> Dict[str, Tuple[int, bytes]]:
        """What tuning has written on every host, but for what differs with the time and the order of the run."""
        found = [path for path in self.place.glob("*/root/[sp]*/**/*") if path.is_file()]
        return {str(path.relative_to(self.place)): (path.stat().st_mode, path.read_bytes()) for path in found}


def test_a_project_with_its_collections_and_inventory_below_ansible(tmp_path: Path, tarball: Path) -> None:
    """As DebOps lays a project out."""
    project = Project("debops", tmp_path, tarball)
    project.install("ansible/collections")
    for name, variables in project.hosts().items():
        (project.folder / f"ansible/inventory/host_vars/{name}").mkdir(parents=True)
        (project.folder / f"ansible/inventory/host_vars/{name}/connection.json").write_text(json.dumps(variables))
    project.run("ansible-playbook", "ansible/playbooks/site.yml", "--limit", "our_redis[0]")
    assert project.clock("redis-1") == "tsc"
    assert not (project.place / "redis-2/root/var/lib/nearmetal").exists()
    project.run("ansible-playbook", "ansible/playbooks/site.yml")
    assert "changed=0" in project.run("ansible-playbook", "ansible/playbooks/site.yml", "--limit", "redis-1")


def test_a_project_that_awx_runs(tmp_path: Path, tarball: Path) -> None:
    """As AWX does: the inventory is a script, collections and extra variables are beside the project, and the callback
    is AWX's own."""
    project = Project("awx", tmp_path, tarball)
    project.install("../requirements_collections")
    hosts = project.hosts()
    groups = {"redis": ["redis-1", "redis-2"], "web": ["web-1", "web-2"]}
    listed = {"_meta": {"hostvars": hosts}, **{group: {"hosts": names} for group, names in groups.items()}}
    script = tmp_path / "inventory/hosts"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(listed)}\nEND\n")
    script.chmod(0o700)
    (tmp_path / "env").mkdir()
    (tmp_path / "env/extravars").write_text(json.dumps({"tune_workload": "web", "awx_job_id": 7, "tune_serial": 2}))
    environment = {
        "ANSIBLE_COLLECTIONS_PATH": f"{tmp_path}/requirements_collections:/usr/share/ansible/collections",
        "ANSIBLE_RETRY_FILES_ENABLED": "False",
        "ANSIBLE_FORCE_COLOR": "True",
        "JOB_ID": "7",
    }
    job = ["ansible-playbook", "-i", str(tmp_path / "inventory"), "-e", f"@{tmp_path}/env/extravars", "tune.yml"]
    before = project.state()
    assert "web-2" in project.run(*job, "--check", "--forks", "5", environment=environment)
    assert project.state() == before
    project.run(*job, environment=environment)
    assert project.clock("redis-1") == "tsc"


def changed(folder: Path, tarball: Path, settings: Mapping[str, str]) -> Tuple[Project, Dict[str, str]]:
    """A project whose hosts were looked at and tuned, and the environment of that, with the collection beside it."""
    project = Project("navigator", folder, tarball)
    project.install("../usr/share/ansible/collections")
    (project.folder / "inventory/hosts.json").write_text(json.dumps({"all": {"hosts": project.hosts()}}))
    (project.folder / "look.json").write_text(json.dumps(LOOK))
    environment = {"ANSIBLE_COLLECTIONS_PATH": f"{folder}/usr/share/ansible/collections", **settings}
    # What passed the stand-in by would tune the machine that runs the tests.
    project.run("ansible-playbook", "look.json", "-i", "inventory", environment=environment)
    project.run("ansible-playbook", "site.yml", "-i", "inventory", environment=environment)
    return project, environment


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory, tarball: Path) -> Project:
    """What Ansible does by its own strategy and number of forks."""
    return changed(tmp_path_factory.mktemp("usual"), tarball, NO_VARIABLES)[0]


def test_a_project_in_the_paths_of_an_execution_environment(usual: Project) -> None:
    """As ansible-navigator runs it: the collection is part of the image, and the project has only playbooks."""
    assert usual.clock("redis-1") == "tsc"
    assert (usual.folder / "reports/report.json").exists()


@pytest.mark.parametrize("more", [{"ANSIBLE_STRATEGY": "free"}, {"ANSIBLE_FORKS": "1"}, {"ANSIBLE_FORKS": "100"}])
def test_the_result_depends_on_neither_strategy_nor_forks(
    more: Dict[str, str], usual: Project, tmp_path: Path, tarball: Path
) -> None:
    assert changed(tmp_path, tarball, more)[0].state() == usual.state()


def test_mitogen_changes_hosts_as_ansible_does(usual: Project, tmp_path: Path, tarball: Path) -> None:
    project, environment = changed(tmp_path, tarball, MITOGEN)
    assert project.state() == usual.state()
    for host in KINDS:
        assert (project.place / host / AGENT).read_bytes() == (usual.place / host / AGENT).read_bytes()
    again = project.run("ansible-playbook", "site.yml", "-i", "inventory", environment=environment)
    assert f"Nothing is left to change on {len(KINDS)} hosts" in again
