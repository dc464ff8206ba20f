# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs on a host: recorded forms of /proc, and this machine's own kernel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, List, Mapping, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import running
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.running import Program
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import listening, program

from tests.support.files.processes import first, process, together

Build = Callable[[Mapping[str, str]], Host]


def test_programs_have_their_processes_and_the_ports_on_which_they_listen(host_of: Build) -> None:
    files = together(
        first(),
        process(70, "nginx", "/usr/sbin/nginx", ports=[80, 443]),
        process(71, "nginx", "/usr/sbin/nginx", connections=3),
        # Debian's redis-server is a link to another name.
        process(812, "redis-server", "/usr/bin/redis-check-rdb", ports=[6379], connections=2),
        process(900, "bash", "/usr/bin/bash"),
    )
    found = running.observe(host_of(files))
    assert found.processes == 5
    assert found.programs == (Program("nginx", 2, 0, (80, 443)), Program("redis-server", 1, 0, (6379,)))


def test_a_script_with_the_name_of_a_program_is_not_that_program(host_of: Build) -> None:
    """A kernel thread and a process that has ended run no file; a script runs its interpreter's."""
    files = together(
        process(70, "nginx"),
        process(71, "redis-server", "/usr/bin/dash"),
        process(72, "haproxy", "/usr/bin/python3.11"),
        process(73, "memcached-exporter", "/usr/bin/memcached-exporter"),
    )
    assert running.observe(host_of(files)).programs == ()


@pytest.mark.parametrize("name", ["nginx\n\x1b[2J", "nginx\nredis-server", "../nginx", "", "nginx ", "NGINX"])
def test_text_that_looks_like_a_name_is_ignored(name: str, host_of: Build) -> None:
    assert running.observe(host_of(process(70, name, "/tmp/nginx"))).programs == ()


def test_a_program_that_was_replaced_while_it_ran_is_still_recognized(host_of: Build) -> None:
    (found,) = running.observe(host_of(process(70, "nginx", "/usr/sbin/nginx (deleted)"))).programs
    assert found.name == "nginx"


@pytest.mark.parametrize(
    ("path", "main_class", "version"),
    [
        ("/opt/kafka/bin/../libs/kafka_2.13-3.7.0.jar:/opt/kafka/libs/x.jar", "kafka.Kafka", "3.7.0"),
        ("/usr/share/cassandra/apache-cassandra-5.0.2.jar", "org.apache.cassandra.service.CassandraDaemon", "5.0.2"),
        ("/opt/kafka/libs/kafka-clients-3.7.0.jar", "kafka.Kafka", ""),
        ("/opt/elasticsearch-8.15.3/lib/*", "org.elasticsearch.bootstrap.Elasticsearch", "8.15.3"),
        ("/usr/share/elasticsearch/lib/elasticsearch-core-8.15.3.jar", "org.elasticsearch.bootstrap.Elasticsearch", ""),
    ],
)
def test_the_version_of_a_java_program_is_in_the_name_of_its_jar(
    path: str, main_class: str, version: str, host_of: Build
) -> None:
    words = ["java", "-cp", path, main_class]
    (found,) = running.observe(host_of(process(70, "java", "/usr/lib/jvm/bin/java", words, [9092]))).programs
    assert found.version == version


MONGOD = "/opt/mongodb-linux-x86_64-rhel90-8.0.4/bin/mongod"
JAVA = "/opt/elasticsearch-8.15.3/jdk/bin/java"
AT_A_LINK = ["java", "-Des.path.home=/opt/elasticsearch", "org.elasticsearch.bootstrap.Elasticsearch"]


@pytest.mark.parametrize(
    ("processes", "version"),
    [
        ([("mongod", MONGOD, [])], "8.0.4"),
        ([("mongod", MONGOD.replace("x86_64", "aarch64"), [])], "8.0.4"),
        ([("mongod", "/srv/mongodb-linux-x86_64-enterprise-ubuntu2204-7.0.14/bin/mongod", [])], "7.0.14"),
        ([("mongod", "/usr/local/bin/mongod", [])], ""),
        ([("mongod", "/opt/mongodb/bin/mongod", [])], ""),
        ([("mongod", MONGOD.replace("8.0.4", "8.0.4-rc0"), [])], ""),
        ([("mongod", MONGOD, []), ("mongod", MONGOD, [])], "8.0.4"),
        ([("mongod", MONGOD, []), ("mongod", MONGOD.replace("8.0.4", "7.0.14"), [])], ""),
        ([("mongod", MONGOD, []), ("mongod", "/usr/bin/mongod", [])], ""),
        ([("java", JAVA, AT_A_LINK)], "8.15.3"),
        ([("java", "/opt/jdk/bin/java", AT_A_LINK)], ""),
    ],
)
def test_the_version_of_an_archive_is_in_its_folders_name_unless_two_differ(
    processes: Any, version: str, host_of: Build
) -> None:
    files = [process(70 + number, *what, ports=[27017]) for number, what in enumerate(processes)]
    (found,) = running.observe(host_of(together(first(), *files))).programs
    assert (found.version, found.packaged) == (version, False)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["java", "-cp", "/srv/app.jar", "com.example.Main"], "java"),
        (["java", "-cp", "/opt/spark/jars/*", "org.apache.spark.executor.CoarseGrainedExecutorBackend"], "spark"),
        (["java", "-Xmx8g", "x" * 200_000, "io.trino.server.TrinoServer"], "trino"),
        (["java", "org.apache.hadoop.hdfs.server.datanode.DataNode"], "hadoop"),
        (["java", "-Dproc_regionserver", "org.apache.hadoop.hbase.regionserver.HRegionServer"], "java"),
        (["java", "-Dfs.impl=org.apache.hadoop.fs.S3", "-Dx=a.B,org.apache.spark.C", "kafka.Kafka"], "kafka"),
    ],
)
def test_a_java_program_is_named_by_its_main_class(words: Any, name: str, host_of: Build) -> None:
    (found,) = running.observe(host_of(process(70, "java", "/usr/lib/jvm/bin/java", words, [8080]))).programs
    assert found == Program(name, 1, 0, (8080,))


def test_a_process_of_a_container_is_counted_as_one_with_the_ports_of_its_own_network(host_of: Build) -> None:
    files = together(
        first(),
        process(70, "redis-server", "/usr/local/bin/redis-server", ports=[6379], pids=7, net=8),
        process(71, "redis-server", "/usr/bin/redis-server", ports=[6380]),
    )
    (found,) = running.observe(host_of(files)).programs
    assert found == Program("redis-server", 2, 1, (6379, 6380), packaged=False)


@pytest.mark.parametrize(
    ("executable", "words", "packaged"),
    [
        ("/usr/bin/mongod", ["mongod"], True),
        ("/usr/lib/postgresql/17/bin/postgres", ["postgres"], True),
        ("/usr/bin/mongod (deleted)", ["mongod"], True),
        ("/program", ["mongod"], True),
        ("/usr/local/bin/mongod", ["mongod"], False),
        ("/opt/mongodb/bin/mongod", ["mongod"], False),
        ("/home/app/mongodb-8.0.4/bin/mongod", ["/usr/bin/mongod"], False),
        ("/snap/mongodb/12/usr/bin/mongod", ["mongod"], False),
        ("/app/bin/mongod", ["mongod"], False),
        ("/opt/jdk/bin/java", ["java", "-Des.path.home=/usr/share/elasticsearch", "-Dx=y"], True),
        ("/usr/lib/jvm/bin/java", ["java", "-Dopensearch.path.home=/home/me/opensearch"], False),
    ],
)
def test_only_what_a_package_may_have_brought_has_its_version(executable: str, words: Any, packaged: bool) -> None:
    assert program.is_packaged(executable, "".join(words)) is packaged


class Counted(Host):
    """A host of 3,000 processes, every other one of a known program, that counts what is asked."""

    asked = 0

    def __init__(self) -> None:
        super().__init__()
        processes = [
            process(1, "postgres", "/usr/bin/postgres", ports=[5432], connections=999),
            process(2, "sh", "/bin/sh"),
        ]
        self._files = [processes[1], processes[0]]

    def names(self, path: str) -> List[str]:
        if path == "/proc":
            return [str(pid) for pid in range(1, 3001)]
        return [str(number) for number in range(1200)] if path.endswith("/fd") else []

    def link(self, path: str) -> Optional[str]:
        return self._like(path, "")[3:] or None

    def _read(self, path: str, limit: int, records: bool) -> Optional[str]:
        return self._like(path, "")[:limit]

    def _like(self, path: str, nothing: str) -> str:
        self.asked += 1
        pid, _slash, rest = path[len("/proc/") :].partition("/")
        return self._files[int(pid) % 2].get(f"/proc/{2 - int(pid) % 2}/{rest}", nothing)


def test_a_host_of_many_processes_costs_a_short_read_for_each() -> None:
    """For known programs the file and namespace are read too, and for the first of them a few descriptors."""
    host = Counted()
    (found,) = running.observe(host).programs
    assert (found.processes, found.ports) == (1500, (5432,))
    assert host.asked < 3000 + 2 * 1500 + 8 * 300


def test_a_malformed_line_of_the_table_is_ignored() -> None:
    row = process(7, "nginx", "/x", ports=[80])["/proc/7/net/tcp"].splitlines()[1]
    assert listening.parse(row) == {"7004": 80}
    for broken in (row.replace(" 0A ", " 01 "), row[:60], row.replace("7004", "x"), row.replace(":0050", ":50"), ""):
        assert listening.parse(broken) == {}
    assert listening.parse(listening.render({"12": 80, "13": 443})) == {"12": 80, "13": 443}


def test_every_name_is_found_in_what_the_kernel_keeps_of_it() -> None:
    for name in set(program.names()) - set(program.PACKAGES.values()):
        assert program.by_comm(f"{name[:15]}\n") == name


LISTEN = (
    "import socket, sys\n"
    "for family, host in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):\n"
    "    try:\n"
    "        one = socket.socket(family); one.bind((host, 0)); one.listen(); print(one.getsockname()[1], flush=True)\n"
    "        globals()[host] = one\n"
    "    except OSError:\n"
    "        print(0, flush=True)\n"
    "sys.stdin.read()\n"
)


def test_this_machines_kernel_shows_a_program_that_listens(tmp_path: Path) -> None:
    """A copy of Python under that name: the kernel shows it as it shows every server."""
    place = tmp_path / "slurmd"
    shutil.copy(os.path.realpath(sys.executable), place)
    home = sys.base_prefix
    with subprocess.Popen(
        [str(place), "-S", "-c", LISTEN],
        env={"PYTHONHOME": home, "LD_LIBRARY_PATH": f"{home}/lib"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        ports = {int(server.stdout.readline()) for _family in range(2)} - {0}
        (found,) = [program for program in running.observe(Host()).programs if program.name == "slurmd"]
        server.communicate("")
    assert ports
    assert ports <= set(found.ports)
    assert found.processes >= 1
