# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian's servers as judges of a simulated host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import WORKLOADS
from ansible_collections.nearmetal.ec2.plugins.modules import tune

from dev.programs.unpacked import SERVERS
from tests.programs import servers
from tests.programs.judge import UNTUNED, Server, judge, started, untuned
from tests.support.fake_kernel import FakeKernel
from tests.unit.conftest import Modules

NGINX = """daemon off; pid {place}/pid; error_log stderr notice; events {{ worker_connections 4096; }}
http {{ access_log off; client_body_temp_path {place}/b; proxy_temp_path {place}/p; fastcgi_temp_path {place}/f;
uwsgi_temp_path {place}/u; scgi_temp_path {place}/s; server {{ listen unix:{place}/socket; }} }}
"""
APACHE = """ServerRoot {place}
ServerName localhost
PidFile {place}/pid
ErrorLog "|/bin/cat"
LoadModule mpm_event_module {home}/usr/lib/apache2/modules/mod_mpm_event.so
Listen 127.0.0.1:8080
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
    "apache": Server(f"{SBIN}/apache2 -D FOREGROUND -f {{place}}/config", "resuming normal operations", config=APACHE),
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
        of_itself="MAC address|WSREP",
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


def words(text: str, place: Path) -> "list[str]":
    program, *arguments = text.format(place=place, home=SERVERS.home).split()
    return [SERVERS.path(program), *arguments]


@pytest.mark.parametrize("name", SERVERS_BY_NAME)
def test_no_warning_about_the_host_is_left_or_a_finding_says_why(
    name: str, tmp_path: Path, place: Path, call: Modules
) -> None:
    server = SERVERS_BY_NAME[name]
    (place / "config").write_text(server.config.format(place=place, home=SERVERS.home))
    if server.prepare:
        servers.run(words(server.prepare, place))
    judge(name, server, words(server.argv, place), tmp_path, place, call)


def asked_against(host: FakeKernel, place: Path) -> Any:
    """What Redis says of the host when it starts, and in its own check of the system."""
    found = started(host, SERVERS_BY_NAME["redis"], words(REDIS, place), place)
    assert found.files, found.text
    check = servers.start(Path(host.root), [SERVERS.path(f"{BIN}/redis-server"), "--check-system"], "^$", ())
    return [*found.warnings("WARNING"), *check.warnings("overcommit.*WARNING|THP.*WARNING|xen-clocksource.*WARNING")]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_no_workload_sets_what_redis_asks_against(workload: str, tmp_path: Path, place: Path, call: Modules) -> None:
    host = untuned(tmp_path / "host", UNTUNED)
    assert not call(tune.main, host, workload=workload, program="redis").get("failed")
    assert asked_against(host, place) == []
