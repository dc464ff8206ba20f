# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program is the judge: what a real server says of an untuned host and of one that was tuned for it.

None of its warnings about the host is left, or a finding of the audit says why.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterator, NamedTuple, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._programs.registry import program_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import WORKLOADS
from ansible_collections.nearmetal.ec2.plugins.modules import tune

from dev.programs.unpacked import SERVERS
from tests.programs import servers
from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import routed
from tests.support.hosts import files_of
from tests.unit.conftest import Modules

THP = "/sys/kernel/mm/transparent_hugepage"
UNTUNED = {
    f"{THP}/enabled": "[always] madvise never\n",
    "/proc/sys/vm/overcommit_memory": "0\n",
    "/proc/sys/net/core/somaxconn": "128\n",
}
# What MariaDB says of the empty network in which it runs here.
EMPTY_NETWORK = "MAC address|WSREP"
FEW_FILES, LITTLE_LOCKED = ("n", 1024), ("l", 64)


class Server(NamedTuple):
    """How a server is started, what it prints when it is ready, and its warnings about the host and its limits."""

    argv: str
    ready: str
    of_host: Tuple[str, ...] = ()  # gone when the host is tuned
    of_limits: Tuple[Tuple[str, str], ...] = ()  # stay, each with words of the finding that says why
    config: str = ""
    prepare: str = ""


NGINX = """daemon off; pid {place}/pid; error_log stderr notice; events {{ worker_connections 4096; }}
http {{ access_log off; client_body_temp_path {place}/b; proxy_temp_path {place}/p; fastcgi_temp_path {place}/f;
uwsgi_temp_path {place}/u; scgi_temp_path {place}/s; server {{ listen unix:{place}/socket; }} }}
"""
HAPROXY = """global
 maxconn 4096
defaults
 mode http
 timeout connect 1s
 timeout client 1s
 timeout server 1s
frontend one
 bind unix@{place}/socket
"""
BIN, SBIN, POSTGRES = "usr/bin", "usr/sbin", "usr/lib/postgresql/*/bin"
REDIS = f"{BIN}/redis-server --dir {{place}} --disable-thp no"
SERVERS_BY_NAME = {
    "redis": Server(
        REDIS,
        "Ready to accept connections|ready to exit",
        ("Transparent Huge Pages .* support", "Memory overcommit must be enabled", "TCP backlog .* lower value of 128"),
        ((r"maximum open files|Current maximum|maxclients", "Max open files is 1024, not 10032"),),
    ),
    "memcached": Server(
        f"{BIN}/memcached -vv -s {{place}}/socket -c 4096",
        "server listening",
        (),
        (("failed to set rlimit for open files", "a hard limit of open files that is as large as its `-c`"),),
    ),
    "nginx": Server(
        f"{SBIN}/nginx -p {{place}} -c {{place}}/config",
        "start worker process ",
        (),
        (("worker_connections exceed open file resource limit", "`LimitNOFILE=`, of at least its `worker_conn"),),
        NGINX,
    ),
    "haproxy": Server(
        f"{SBIN}/haproxy -W -db -f {{place}}/config",
        "New worker",
        (),
        (("Cannot raise FD limit|too low for maxconn", "open files of twice its `maxconn`"),),
        HAPROXY,
    ),
    "varnish": Server(
        f"{SBIN}/varnishd -F -n {{place}}/name -a {{place}}/socket -b none", "said Child starts|Child launched OK"
    ),
    "mariadb": Server(
        f"{SBIN}/mariadbd --no-defaults --datadir={{place}}/data --lc-messages-dir={{home}}/usr/share/mysql"
        " --socket={place}/socket --skip-networking",
        "ready for connections",
        (),
        (
            ("io_uring_queue_init.. failed with ENOMEM", "Max locked memory is 65536, not 262144"),
            ("max_open_files", "Max open files is 1024, not 32184"),
        ),
        prepare=f"{BIN}/mariadb-install-db --no-defaults --datadir={{place}}/data --basedir={{home}}/usr"
        " --auth-root-authentication-method=normal",
    ),
    "postgresql": Server(
        f"{POSTGRES}/postgres -D {{place}}/data -c listen_addresses= -c unix_socket_directories={{place}}"
        " -c huge_pages=on -c shared_buffers=400GB",
        "ready to accept connections",
        (),
        (("could not map anonymous shared memory|huge pages", "postgres -C shared_memory_size_in_huge_pages"),),
        prepare=f"{POSTGRES}/initdb -D {{place}}/data",
    ),
}


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Modules:
    return Modules(capsys)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody may use, as the server runs as nobody."""
    with tempfile.TemporaryDirectory(prefix="nearmetal-") as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


def words(text: str, place: Path) -> "list[str]":
    program, *arguments = text.format(place=place, home=SERVERS.home).split()
    return [SERVERS.path(program), *arguments]


def started(host: FakeKernel, server: Server, place: Path) -> servers.Started:
    (place / "config").write_text(server.config.format(place=place))
    return servers.start(
        Path(host.root), words(server.argv, place), server.ready, (FEW_FILES, LITTLE_LOCKED), str(place)
    )


def untuned(root: Path, changes: Dict[str, str]) -> FakeKernel:
    return FakeKernel(root, routed({**files_of("metal"), **changes}))


def service(name: str, limits: str) -> Dict[str, str]:
    """The files of the program's service, which has such limits."""
    process = program_of(name).processes[0]
    return {
        f"/sys/fs/cgroup/system.slice/{name}.service/cgroup.procs": "812\n",
        "/proc/812/comm": f"{process}\n",
        "/proc/812/exe": f"-> /usr/bin/{process}",
        "/proc/812/cmdline": f"{process}\0",
        "/proc/812/limits": limits,
        "/proc/812/fd/0": "-> /dev/null",
        "/proc/812/ns/net": "-> net:[4026531840]",
    }


@pytest.mark.parametrize("name", SERVERS_BY_NAME)
def test_no_warning_about_the_host_is_left_or_a_finding_says_why(
    name: str, tmp_path: Path, place: Path, call: Modules
) -> None:
    server = SERVERS_BY_NAME[name]
    if server.prepare:
        servers.run(words(server.prepare, place))
    before = started(untuned(tmp_path / "before", UNTUNED), server, place)
    for pattern in (*server.of_host, *(pattern for pattern, _says in server.of_limits)):
        assert before.warnings(pattern), f"{name} doesn't say {pattern} of the untuned host:\n{before.text}"
    host = untuned(tmp_path / "host", {**UNTUNED, **service(name, before.limits)})
    result = call(tune.main, host, workload=program_of(name).workload, program=name)
    assert not result.get("failed"), result["msg"]
    after = started(host, server, place)
    explained = "|".join([EMPTY_NETWORK, *(pattern for pattern, _says in server.of_limits)])
    found = [line for line in after.warnings("(?i)warn|alert|fatal") if not re.search(explained, line)]
    assert "\n".join(found) == ""
    audit = call(
        tune.main, host, check=True, workload=program_of(name).workload, program=name, concerns={"service_check": {}}
    )
    reasons = "\n".join(finding["reason"] for finding in audit["findings"])
    for pattern, says in server.of_limits:
        assert not after.warnings(pattern) or says in reasons, f"{after.text}\n{reasons}"


def asked_against(host: FakeKernel, place: Path) -> Any:
    """What Redis says of the host when it starts, and in its own check of the system."""
    found = started(host, SERVERS_BY_NAME["redis"], place)
    assert found.limits, found.text
    check = servers.start(Path(host.root), [SERVERS.path(f"{BIN}/redis-server"), "--check-system"], "^$", ())
    return [*found.warnings("WARNING"), *check.warnings("overcommit.*WARNING|THP.*WARNING|xen-clocksource.*WARNING")]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_no_workload_sets_what_redis_asks_against(workload: str, tmp_path: Path, place: Path, call: Modules) -> None:
    host = untuned(tmp_path / "host", UNTUNED)
    assert not call(tune.main, host, workload=workload, program="redis").get("failed")
    assert asked_against(host, place) == []
