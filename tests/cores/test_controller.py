# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user does first, with the ansible-core of the environment that NEARMETAL_CORE names.

pytest itself runs with the oldest ansible-core that has all tests. Ansible's programs run as a user starts them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Mapping

import pytest
from moto.server import ThreadedMotoServer

from dev import ROOT, build, suites
from dev.programs import pythons
from tests.support.simulated import simulate
from tests.unit.roles.tune.test_wrong_concerns import require_sentences, said_of_concerns

VENV = ROOT / os.environ["NEARMETAL_CORE"]
CLOCK = "sys/devices/system/clocksource/clocksource0/current_clocksource"
# Signs that Ansible or our callback met something that it doesn't know, which leaves the exit code at 0.
BROKEN = re.compile(
    r"Traceback|Callback dispatch|Unexpected Exception|does not support Ansible|DEPRECAT|has no attribute"
)


def start(folder: Path, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
    """A program of that ansible-core."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "NEARMETAL_"))}
    environment = {
        **clean,
        "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "ANSIBLE_COLLECTIONS_PATH": str(folder / "collections"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_STDOUT_CALLBACK": "nearmetal.ec2.fleet",
        "COLUMNS": "100",
        **more,
    }
    command = [str(VENV / "bin" / words[0]), *words[1:]]
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


class Repository:
    """A folder with the collection installed, and an inventory."""

    def __init__(self, folder: Path, collections: Path) -> None:
        self.folder = folder
        (folder / "collections").symlink_to(collections)

    def hosts(self, **hosts: Mapping[str, Any]) -> None:
        """Write the inventory."""
        (self.folder / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))

    def run(self, playbook: str, *words: str, code: int = 0, **more: str) -> str:
        """The output of ansible-playbook, in one line per paragraph, so that a sentence can be looked for."""
        done = start(self.folder, "ansible-playbook", "-i", "hosts.json", playbook, *words, **more)
        assert done.returncode == code, done.stdout
        assert not BROKEN.search(done.stdout), done.stdout
        return " ".join(done.stdout.split())

    def report(self) -> Dict[str, Any]:
        """What the last run reported, per host."""
        plain = json.loads((self.folder / "nearmetal-report/report.json").read_text())
        return {host["name"]: host for host in plain["hosts"]}

    def files(self) -> Dict[str, bytes]:
        """Every file of every host, but a run's lock and an interrupt's delivery, which the next one moves."""
        left_out = ("lock", "effective_affinity_list")
        found = [path for path in self.folder.glob("*/root/**/*") if path.is_file() and path.name not in left_out]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in found}


@pytest.fixture(scope="session")
def collections(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tarball, built and installed by this ansible-core."""
    folder = tmp_path_factory.mktemp("installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}")
        tarball = build.build(folder)
    done = start(folder, "ansible-galaxy", "collection", "install", "--offline", str(tarball), "-p", "collections")
    assert done.returncode == 0, done.stdout
    return folder / "collections"


@pytest.fixture
def repository(tmp_path: Path, collections: Path) -> Repository:
    return Repository(tmp_path, collections)


def changed(output: str) -> List[str]:
    return re.findall(r"(\d+) changed", output)


def test_audit_tune_and_restore_with_the_callback(repository: Repository) -> None:
    kinds = {"old": "xen_hvm", "big": "nitro_big"}
    repository.hosts(**{name: simulate(repository.folder / name, kind) for name, kind in kinds.items()})
    before = repository.files()
    assert "AUDIT 2 hosts: 2 reported" in repository.run("nearmetal.ec2.audit", "--diff")
    assert repository.files() == before, "an audit changes nothing"
    assert {name: host["state"] for name, host in repository.report().items()} == dict.fromkeys(kinds, "reported")
    output = repository.run("nearmetal.ec2.tune", "-e", "tune_workload=in_memory_database", "-e", "tune_serial=100%")
    assert "TUNE 2 hosts: 2 reported" in output
    assert changed(output)
    assert (repository.folder / "old/root" / CLOCK).read_text().strip() == "tsc"
    assert not changed(repository.run("nearmetal.ec2.in_memory_database", "-e", "tune_serial=100%"))
    assert "RESTORE 2 hosts" in repository.run("nearmetal.ec2.restore", "-e", "tune_serial=100%")
    assert repository.files() == before


def test_a_role_with_ansibles_own_callback(repository: Repository) -> None:
    repository.hosts(h=simulate(repository.folder / "h", "xen_hvm"))
    play = [{"hosts": "all", "gather_facts": False, "roles": ["nearmetal.ec2.clocksource"]}]
    (repository.folder / "play.json").write_text(json.dumps(play))
    wrong = ("-e", "clocksource_sorce=tsc", "-e", "clocksource_of_ours=1")
    output = repository.run("play.json", *wrong, ANSIBLE_STDOUT_CALLBACK="ansible.builtin.default")
    assert "clocksource_sorce isn't an option and has no effect: is clocksource_source meant?" in output
    assert "of_ours" not in output.replace("-e clocksource_of_ours", "")
    assert "changed=1" in output


def test_mistakes_are_named(repository: Repository) -> None:
    repository.hosts(h=simulate(repository.folder / "h", "nitro"))
    output = repository.run("nearmetal.ec2.tune", "-e", "tune_worload=web", "--check")
    assert "tune_worload isn't an option and has no effect: is tune_workload meant?" in output
    output = repository.run("nearmetal.ec2.audit", "-e", "audit_baseline=absent.json", code=2)
    assert "absent.json" in output
    assert "No report written: no host was planned" in output


def test_a_workload_of_the_inventory_that_a_playbook_spells_otherwise_is_warned_of(repository: Repository) -> None:
    host = simulate(repository.folder / "h", "nitro")
    said = "of the inventory has no effect in this playbook, which tunes for cache"
    for own, contrary in (("{{ 'web' }}", True), (["cache"], False), (None, False)):
        repository.hosts(h={**host, "tune_workload": own} if own else host)
        output = repository.run("nearmetal.ec2.cache", "--check")
        assert (f"tune_workload: web {said}" in output) == contrary
        assert (said in output) == contrary


def test_a_wrong_workload_of_all_hosts_is_said_once(repository: Repository) -> None:
    repository.hosts(**{name: simulate(repository.folder / name, "nitro") for name in ("one", "two", "three")})
    output = repository.run("nearmetal.ec2.audit", "-e", "tune_workload=wbe", code=2)
    assert output.count("workload 'wbe' is unknown") == 1
    assert "is web meant?" in output


def test_how_many_may_reboot_at_once_is_looked_at_in_check_mode_too(repository: Repository) -> None:
    repository.hosts(h=simulate(repository.folder / "h", "nitro"))
    for given in ("lots", "101%", "-1"):
        output = repository.run("nearmetal.ec2.tune", "--check", "-e", f"tune_reboot_at_once={given}", code=2)
        assert f"tune_reboot_at_once must be a number of hosts or 0% to 100%, not '{given}'" in output
    for given in ("{{ 5 }}%", "0%", "3"):
        repository.run("nearmetal.ec2.tune", "--check", "-e", f"tune_reboot_at_once='{given}'")


def test_mistakes_in_concerns_have_their_sentences(tmp_path: Path, collections: Path) -> None:
    require_sentences(said_of_concerns(tmp_path, VENV, collections))


def test_a_python_that_is_too_old_or_absent_is_named(repository: Repository) -> None:
    old = repository.folder / "old-python"
    # Python 3.6 as far as a module meets it: it answers, and knows no annotations of the future.
    old.write_text(
        '#!/bin/sh\n[ "$1" = -c ] && { echo "Python 3.6.15"; exit 0; }\n'
        'echo "SyntaxError: future feature annotations is not defined" >&2; exit 1\n'
    )
    old.chmod(0o755)
    ends = repository.folder / "python-that-ends"
    ends.write_text('#!/bin/sh\necho "the disk is full" >&2; exit 1\n')
    ends.chmod(0o755)
    denies = repository.folder / "denies"
    denies.write_text('#!/bin/sh\necho "sudo: a password is required" >&2; exit 1\n')
    denies.chmod(0o755)
    local = {"ansible_connection": "local", "ansible_become": False}
    up = {"ansible_become": True, "ansible_become_user": "nobody"}
    repository.hosts(
        old={**local, "ansible_python_interpreter": str(old)},
        absent={**local, "ansible_python_interpreter": "/usr/bin/no-python"},
        no_word={**local, **up, "ansible_become_exe": str(denies), "ansible_python_interpreter": sys.executable},
        by_env={**local, "ansible_python_interpreter": "/usr/bin/env no-python"},
        ends={**local, "ansible_python_interpreter": str(ends)},
        no_sudo={**local, **up, "ansible_become_exe": "no-sudo", "ansible_python_interpreter": sys.executable},
        no_path={**local, **up, "ansible_become_exe": "/opt/no-sudo", "ansible_python_interpreter": sys.executable},
        sudo={**simulate(repository.folder / "h", "nitro"), **up, "ansible_python_interpreter": "/usr/bin/no-python"},
    )
    for playbook in ("nearmetal.ec2.audit", "nearmetal.ec2.restore"):
        output = repository.run(playbook, "-e", "tune_serial=100%", code=2)
        said = rf"{old} on the host is Python 3\.6\.15; with ansible-core \S+ nearmetal needs Python 3\.\d or"
        assert re.search(said, output)
        assert "the host has no Python at /usr/bin/no-python; with ansible-core" in output
        assert "the host has no Python at /usr/bin/env no-python; with ansible-core" in output
        assert f"has no Python at {ends}" not in output
        assert "can't become nobody on the host: sudo: a password is required; give the password with -K" in output
        for program in ("no-sudo", "/opt/no-sudo"):
            # Since 2.19 Ansible's own local connection ends with what the shell said.
            ours = f"the host has no {program}, with which Ansible would become nobody: install it"
            assert ours in output or f": {program}: not found" in output


def test_the_oldest_boto3_that_is_promised_asks_the_api(repository: Repository) -> None:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        task = {
            "nearmetal.ec2.instance_info": {"regions": ["eu-west-1"], "filters": {"tag:workload": "web"}},
            "register": "found",
        }
        shown = {"ansible.builtin.debug": {"msg": "{{ found.instances | length }} instances, {{ found.failed }}"}}
        play = [{"hosts": "localhost", "gather_facts": False, "tasks": [task, shown]}]
        (repository.folder / "play.json").write_text(json.dumps(play))
        repository.hosts()
        aws = {
            "AWS_ENDPOINT_URL": "http://{}:{}".format(*server.get_host_and_port()),
            "AWS_ACCESS_KEY_ID": "AKIATEST",
            "AWS_SECRET_ACCESS_KEY": "x",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        assert "0 instances, False" in repository.run("play.json", **aws)
    finally:
        server.stop()


def test_python_3_7_imports_what_a_host_gets(tmp_path: Path) -> None:
    """Only these ansible-cores manage such hosts, and not every machine has such a Python to try it with."""
    found = pythons.find(("3.7",)) if VENV.name.endswith(("2.16", "2.17")) else {}
    (ansible,) = VENV.glob("lib/python3.*/site-packages/ansible")
    (tmp_path / "ansible").symlink_to(ansible)
    plugins = ROOT / "plugins"
    files = [path for name in ("modules", "module_utils") for path in (plugins / name).rglob("*.py")]
    names = [path.relative_to(plugins).with_suffix("").as_posix().replace("/", ".") for path in files]
    lines = [f"import ansible_collections.nearmetal.ec2.plugins.{name}" for name in names if "__main__" not in name]
    for python in found.values():
        environment = {"PYTHONPATH": f"{ROOT / '.ansible/collections'}:{tmp_path}", "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run([str(python), "-c", "\n".join(lines)], env=environment, check=True)


def test_the_environment_has_what_it_stands_for() -> None:
    shown = subprocess.run([str(VENV / "bin/ansible"), "--version"], capture_output=True, text=True, check=True).stdout
    assert f"[core {dict(suites.CORES).get(VENV.name, VENV.name.rpartition('-')[2])}." in shown
