# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What benchmark_install brings, it takes away again: no more, no less, also after a run that was killed.

The package managers are programs of a few lines on a PATH of their own, with a file as their database.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmarks import packages
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmarks.benchmark import Tool, tools_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmarks.registry import BENCHMARKS, options_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.benchmark import brought, session
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost

TOOL = Tool("measurer", ("--version",), {"debian": "measurer-tools", "amzn": "measurer"})
SERVER = Tool("server", (), {"debian": "server"}, "server")
OTHER = Tool("nobody-has-it", (), {"debian": "other"})
APT = r"""#!/bin/sh
case " $* " in
*" --simulate "*)
    cat "$0.answer" ;;
*)
    echo "libmeasure1:amd64 installed" >>"$DATABASE"
    [ -e "$0.dies" ] && kill -KILL "$PPID"
    [ -e "$0.fails" ] && echo "E: No space left" >&2 && exit 100
    echo "measurer-tools installed" >>"$DATABASE"
    printf "#!/bin/sh\n" >"${0%/*}/measurer"; chmod 755 "${0%/*}/measurer" ;;
esac
"""
DPKG = r"""#!/bin/sh
[ -e "$0.locked" ] && echo "dpkg: error: the frontend lock is taken" >&2 && exit 2
shift
for name; do
    grep -v "^$name " "$DATABASE" >"$DATABASE.new"; mv "$DATABASE.new" "$DATABASE"
done
rm -f "${0%/*}/measurer"
"""
DNF = r"""#!/bin/sh
echo "libmeasure 70" >>"$DATABASE"; echo "glibc 70" >>"$DATABASE"; echo "measurer 70" >>"$DATABASE"
printf "#!/bin/sh\n" >"${0%/*}/measurer"; chmod 755 "${0%/*}/measurer"
"""
RPM = r"""#!/bin/sh
[ "$1" = -qa ] && exec cat "$DATABASE"
[ "$1" = -q ] && echo measurer && exit 0
exec "${0%/*}/dpkg" "$@"
"""
COMING = """Inst libmeasure1 (1.0 Debian:12 [amd64])
Inst measurer-tools (1.0 Debian:12 [amd64])
Conf measurer-tools (1.0 Debian:12 [amd64])
"""


class Machine:
    """A host with a package manager of ours."""

    def __init__(self, folder: Path, release: str, **programs: str) -> None:
        self.bin, self.database = folder / "bin", folder / "database"
        self.bin.mkdir()
        (folder / "root/etc").mkdir(parents=True)
        (folder / "root/run").mkdir()
        (folder / "root/var/lib").mkdir(parents=True)
        (folder / "root/etc/os-release").write_text(release)
        self.host = WritableHost(str(folder / "root"))
        for name, text in programs.items():
            program = self.bin / name.replace("_", "-")
            program.write_text(text.replace("$DATABASE", str(self.database)))
            program.chmod(0o755)
        (self.bin / "apt-get.answer").write_text(COMING)

    def present(self) -> List[str]:
        return self.database.read_text().splitlines()

    def records(self) -> List[str]:
        return [name for name in self.host.names("/var/lib/nearmetal") if not name.startswith(".")]


@pytest.fixture
def debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path, "ID=debian", apt_get=APT, dpkg=DPKG, dpkg_query='#!/bin/sh\ncat "$DATABASE"\n')
    machine.database.write_text("mine installed\nonce-mine not-installed\n")
    use(machine, monkeypatch)
    return machine


@pytest.fixture
def amazon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path, 'ID="amzn"', dnf=DNF, rpm=RPM, dpkg=DPKG)
    machine.database.write_text("mine 12\nglibc 3\n")
    use(machine, monkeypatch)
    return machine


def use(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{machine.bin}:/usr/bin:/bin"
    monkeypatch.setattr(session, "PATH", path)
    # Of the machine that runs the tests no package manager is used.
    monkeypatch.setattr(packages, "MANAGERS", [m for m in packages.MANAGERS if (machine.bin / m.program).exists()])
    monkeypatch.setattr(brought, "MANAGERS", packages.MANAGERS)


def test_what_came_goes_at_the_end_and_nothing_else(debian: Machine) -> None:
    before = debian.present()
    with brought.installation(debian.host, [TOOL], install=True) as came:
        assert came.packages == ("libmeasure1:amd64", "measurer-tools")
        assert debian.records() == ["benchmark_packages"]
        with debian.database.open("a") as stream:
            stream.write("of-the-operator installed\n")
    assert debian.present() == [*before, "of-the-operator installed"]
    assert debian.records() == []


def test_without_the_option_nothing_is_installed(debian: Machine) -> None:
    before = debian.present()
    with brought.installation(debian.host, [TOOL], install=False) as came:
        assert (came.packages, debian.present()) == ((), before)


def test_a_tool_that_is_there_brings_nothing(debian: Machine) -> None:
    (debian.bin / "measurer").write_text("#!/bin/sh\n")
    (debian.bin / "measurer").chmod(0o755)
    with brought.installation(debian.host, [TOOL], install=True) as came:
        assert (came.packages, debian.records()) == ((), [])


@pytest.mark.parametrize("when", ["while it installs", "while it measures"])
def test_after_a_run_that_was_killed_the_next_one_takes_it_away(when: str, debian: Machine) -> None:
    before = debian.present()
    if when == "while it installs":
        (debian.bin / "apt-get.dies").touch()
    child = os.fork()
    if child == 0:
        with brought.installation(debian.host, [TOOL], install=True):
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    while len(debian.present()) < len(before) + 2:
        assert (debian.bin / "apt-get.dies").exists(), "the package manager goes on to its end"
    assert debian.records() == ["benchmark_packages"]
    while debian.records():  # the package manager has the lock until its end
        with brought.installation(debian.host, [], install=False):
            pass
    assert debian.present() == before


def test_an_install_that_fails_is_taken_away_and_named(debian: Machine) -> None:
    before = debian.present()
    (debian.bin / "apt-get.fails").touch()
    with pytest.raises(NearmetalError) as raised, brought.installation(debian.host, [TOOL], install=True):
        pass
    assert str(raised.value) == (
        "measurer-tools can't be installed: apt-get install failed with code 100: E: No space left; look at"
        " `apt-get update`"
    )
    assert (debian.present(), debian.records()) == (before, [])


def test_what_can_t_be_taken_away_is_named_and_tried_again(debian: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    before = debian.present()
    (debian.bin / "dpkg.locked").touch()
    monkeypatch.setattr(brought, "_PAUSE", 0.0)
    with brought.installation(debian.host, [TOOL], install=True) as came:
        pass
    assert came.not_removed == (
        "the host still has 2 packages of the benchmark (libmeasure1:amd64, measurer-tools), because dpkg --purge"
        " failed with code 2: dpkg: error: the frontend lock is taken; the next benchmark tries again to remove what is"
        " left"
    )
    (debian.bin / "dpkg.locked").unlink()
    with brought.installation(debian.host, [], install=False):
        assert (debian.present(), debian.records()) == (before, [])


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("Inst libc6 [2.36] (2.37 Debian [amd64])\n", "the install would also change or remove libc6, which couldn't"),
        ("Remv mine [1.0]\n", "the install would also change or remove mine, which couldn't be taken back: "),
        ("Inst --purge (1.0 Debian [amd64])\n", "some of the names aren't names of packages"),
        (
            "Inst mine (1.0 Debian [amd64])\n",
            "mine was installed on this host earlier, and its settings are still there",
        ),
    ],
)
def test_an_install_that_couldn_t_be_taken_back_is_refused(answer: str, words: str, debian: Machine) -> None:
    before = debian.present()
    (debian.bin / "apt-get.answer").write_text(answer)
    with pytest.raises(NearmetalError) as raised, brought.installation(debian.host, [TOOL], install=True):
        pass
    assert str(raised.value).startswith(f"measurer-tools can't be installed: {words}")
    assert (debian.present(), debian.records()) == (before, [])


def test_two_runs_that_install_don_t_meet(debian: Machine) -> None:
    with brought.installation(debian.host, [TOOL], install=True):
        with pytest.raises(NearmetalError) as raised, brought.installation(debian.host, [OTHER], install=True):
            pass
        assert str(raised.value).startswith("another benchmark on this host has installed packages and is still ")
        with brought.installation(debian.host, [TOOL], install=False):
            assert "measurer-tools installed" in debian.present(), "another's packages stay while it runs"
        assert "measurer-tools installed" in debian.present()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"format": 2}',
        '{"format": 1, "manager": "sh", "packages": [], "before": [], "complete": true}',
        '{"format": 1, "manager": "apt-get", "packages": ["--force-all"], "before": [], "complete": true}',
    ],
)
def test_a_record_that_nearmetal_didn_t_write_is_refused_by_name(text: str, debian: Machine) -> None:
    before = debian.present()
    folder = Path(debian.host.real("/var/lib/nearmetal"))
    folder.mkdir(mode=0o700)
    (folder / "benchmark_packages").write_text(text)
    with pytest.raises(NearmetalError) as raised, brought.installation(debian.host, [], install=False):
        pass
    assert str(raised.value).startswith("/var/lib/nearmetal/benchmark_packages names packages that a benchmark ")
    assert debian.present() == before


@pytest.mark.parametrize("tools", [[SERVER], [TOOL, SERVER]], ids=["alone", "beside a tool"])
def test_packages_of_services_are_left_to_the_operator(tools: List[Tool], debian: Machine) -> None:
    before = debian.present()
    with pytest.raises(NearmetalError) as raised, brought.installation(debian.host, tools, install=True):
        pass
    assert str(raised.value).startswith("benchmark.install doesn't install server, because the package has a service")
    assert (debian.present(), debian.records()) == (before, [])


def test_every_server_of_a_benchmark_is_left_to_the_operator() -> None:
    """Debian's scripts of these packages remove /var/lib/redis and /etc/redis, or stop the host's own service."""
    tools = [
        tool for name in ("web", "cache", "key_value") for tool in tools_of(BENCHMARKS[name], options_of(name, {}))
    ]
    packages_of_services = {tool.packages["debian"] for tool in tools if tool.of_service}
    assert packages_of_services == {"nginx-light", "memcached", "redis-server", "redis-tools"}


def test_an_install_by_rpm_that_was_broken_off_is_left_to_the_operator(amazon: Machine) -> None:
    record = packages.Brought("dnf", ("measurer",), frozenset(["mine"]), complete=False)
    folder = Path(amazon.host.real("/var/lib/nearmetal"))
    folder.mkdir(mode=0o700)
    (folder / "benchmark_packages").write_text(packages.to_text(record))
    with amazon.database.open("a") as stream:
        stream.write("measurer 80\nof-the-operator 80\n")
    before = amazon.present()
    with pytest.raises(NearmetalError) as raised, brought.installation(amazon.host, [], install=False):
        pass
    assert "but the install of measurer was interrupted: remove the packages that you don't need" in str(raised.value)
    assert amazon.present() == before


def test_of_a_transaction_of_rpm_only_what_is_new_goes(amazon: Machine) -> None:
    with brought.installation(amazon.host, [TOOL], install=True) as came:
        assert came.packages == ("libmeasure", "measurer")
    # What the transaction brought up to date stays.
    assert amazon.present() == ["mine 12", "glibc 3", "glibc 70"]


def test_a_host_without_a_package_manager_is_named() -> None:
    with pytest.raises(NearmetalError, match=r"has none of apt-get, dnf, yum, zypper: install the tools yourself$"):
        packages.manager_of(lambda _program: None)
