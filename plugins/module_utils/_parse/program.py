# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which program a process runs, by the kernel's data about it. Pure. PRIVATE to the collection.

The name comes from /proc/PID/comm, which a process may choose, and which anybody may give to a file. So only the
names in this list are ever reported, and a script of such a name doesn't count as the program.
"""

from __future__ import annotations

import re
from typing import List, Mapping, Optional, Tuple

_LONGEST = 15  # characters that the kernel keeps of a name (TASK_COMM_LEN)

# Process name → program, where they differ.
_RENAMED: Mapping[str, str] = {"Suricata-Main": "suricata", "jsvc": "java"}
_NAMES = (
    "apache2",
    "asd",
    "caddy",
    "clickhouse-server",
    "dragonfly",
    "envoy",
    "haproxy",
    "hdbindexserver",
    "httpd",
    "java",
    "keydb-server",
    "mariadbd",
    "memcached",
    "mongod",
    "mysqld",
    "nginx",
    "pbs_mom",
    "postgres",
    "redis-server",
    "scylla",
    "slurmd",
    "suricata",
    "traefik",
    "valkey-server",
    "varnishd",
)
_BY_COMM: Mapping[str, str] = {**_RENAMED, **{name[:_LONGEST]: name for name in _NAMES}}

# The package of the main class → the program that runs on a Java virtual machine.
PACKAGES: Mapping[str, str] = {
    "org.apache.spark.": "spark",
    "org.apache.hadoop.": "hadoop",
    "org.apache.flink.": "flink",
    "io.trino.": "trino",
    "kafka.Kafka": "kafka",
    "org.apache.cassandra.": "cassandra",
    "org.elasticsearch.": "elasticsearch",
    "org.opensearch.": "opensearch",
}
# A program's jar, or the folder of its archive: its name has the version.
_VERSIONED = {
    name: re.compile(rf"{words}-([0-9]{{1,4}}(?:\.[0-9]{{1,4}}){{1,3}})(?:\.jar|/|-D)", re.ASCII)
    for name, words in (
        ("cassandra", r"/apache-cassandra"),
        ("elasticsearch", r"/elasticsearch"),
        ("flink", r"/flink-dist"),
        ("kafka", r"/kafka_[0-9.]{1,8}"),
        ("mongod", r"/mongodb-linux[a-z0-9_-]{1,40}"),
        ("opensearch", r"/opensearch"),
        ("spark", r"/spark-core_[0-9.]{1,8}"),
    )
}
# An option's value may name a class of such a package without running it, as Kafka's does. HBase, whose classes begin
# with Hadoop's name, is no sign of Hadoop: it scans no files, but answers requests for rows.
_NAMED = {package: re.compile(rf"(?<![=,]){re.escape(package)}(?!hbase\.)", re.ASCII) for package in PACKAGES}
# The file that a script's process runs.
_INTERPRETER = re.compile(r"(?:ba|da|k|z|a|tc|c)?sh|busybox|perl|python|ruby|node|php|lua|tclsh", re.ASCII)
_VERSION = re.compile(r"[0-9][0-9.]{0,8}$", re.ASCII)
# Not /usr/local, /opt, /home, or /snap. A capture calls all files /program, and has the versions that count.
_PACKAGED = re.compile(r"/(?:(?:usr/)?(?:s?bin|lib|lib64|libexec|share)/|program$)", re.ASCII)
_HOME = re.compile(r"-D(?:es|opensearch)\.path\.home=(/[^ =]{1,200})", re.ASCII)
_COLLECTOR = re.compile(r"-XX:\+Use(?:Z|Shenandoah)GC", re.ASCII)
_DELETED = " (deleted)"


def names() -> Tuple[str, ...]:
    """Every program that is known."""
    return tuple(sorted({*_NAMES, *PACKAGES.values()}))


def by_comm(text: str) -> Optional[str]:
    """The program that has this name; None for all others."""
    return _BY_COMM.get(text[:-1] if text.endswith("\n") else text)


def on_java(command_line: str) -> str:
    """What a Java virtual machine runs: a known program, or java."""
    return next((PACKAGES[package] for package in packages(command_line)), "java")


def is_on_java(name: str) -> bool:
    """Whether a program runs on a Java virtual machine."""
    return name == "java" or name in PACKAGES.values()


def version_in(name: str, text: str) -> str:
    """The version of a program in the names of files with which it runs, or ""."""
    named = _VERSIONED[name].search(text) if name in _VERSIONED else None
    return named[1] if named else ""


def packages(command_line: str) -> List[str]:
    """The known packages that a command line names; its words may follow each other without a separator."""
    return [package for package, named in _NAMED.items() if named.search(command_line)]


def collectors(command_line: str) -> List[str]:
    """The options by which Java is given a collector that asks something of its host."""
    return _COLLECTOR.findall(command_line)


def file_name(executable: str) -> str:
    """The name of the file that a process runs, also after an upgrade has replaced it."""
    path = executable[: -len(_DELETED)] if executable.endswith(_DELETED) else executable
    return path.rsplit("/", 1)[-1]


def is_packaged(executable: str, command_line: str) -> bool:
    """Whether packages bring files where this one is; of a program on Java, that is its home."""
    home = _HOME.search(command_line)
    return _PACKAGED.match(home[1] if home else executable) is not None


def is_interpreter(name: str) -> bool:
    """Whether a file of this name runs scripts, as python3.11 does."""
    return _INTERPRETER.fullmatch(_VERSION.sub("", name)) is not None
