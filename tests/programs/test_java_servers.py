# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers on Java as judges of a simulated host: Java itself, Cassandra, Kafka, and OpenSearch's own checks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dev.programs import jars
from tests.programs import servers
from tests.programs.judge import THP, Server, judge
from tests.unit.conftest import Modules

CASSANDRA = """cluster_name: t
commitlog_sync: periodic
commitlog_sync_period: 10s
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider: [{{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{{seeds: 127.0.0.1}}]}}]
"""
KAFKA = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
log.dirs={place}/logs
"""
# What Cassandra's start script opens to it of Java.
OPENED = "java.base/java.lang java.base/java.nio java.base/sun.nio.ch java.base/jdk.internal.ref java.base/java.io"
OPENS = " ".join(f"--add-opens={name}=ALL-UNNAMED --add-exports={name}=ALL-UNNAMED" for name in OPENED.split())
# The machine itself, with each collector: where huge pages are off, it says so and does without.
COLLECTS = "java -Xmx256m -XX:+{} -XX:+UseTransparentHugePages -Xlog:gc+init,pagesize -version"
NO_PAGES = ("UseTransparentHugePages disabled",)
NEVER = ((f"{THP}/enabled", "always madvise [never]\n"),)
JAVA = "java -Xmx256m -XX:TieredStopAtLevel=1 -cp {place}:{jars}"
SERVERS_BY_NAME = {
    "cassandra": Server(
        f"{JAVA} {OPENS} -Dcassandra.config=file://{{place}}/config -Dcassandra.storagedir={{place}}/data"
        " org.apache.cassandra.service.CassandraDaemon",
        "Initializing system|ERROR",
        ("vm.max_map_count. 65530 is too low",),
        (("Unable to lock JVM memory", "Max locked memory is 65536, not unlimited"),),
        CASSANDRA,
        of_itself=r"\] (?:INFO|DEBUG|TRACE) |jemalloc|JMX|OutOfMemoryError|commitlog volume|free across"
        "|Security ?Manager|terminally deprecated|report this to the maintainers",
    ),
    "java": Server(COLLECTS.format("UseG1GC"), "^$", NO_PAGES, changes=NEVER),
    # It says nothing of its host: its guide asks for more files.
    "kafka": Server(
        f"{JAVA} -Dlog4j2.level=INFO kafka.Kafka {{place}}/config",
        "Kafka Server started|Exception",
        config=KAFKA,
        prepare=f"{JAVA} kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAA -c {{place}}/config",
        of_itself="controller activation",
    ),
    "opensearch": Server(
        f"{JAVA} org.opensearch.bootstrap.Judge {{place}}",
        "judged|Exception",
        ("max virtual memory areas vm.max_map_count .65530. is too low",),
        (("max file descriptors .1024.", "Max open files is 1024, not 65535"),),
        prepare=f"javac -d {{place}} -cp {{jars}} {Path(__file__).parent}/Judge.java",
    ),
    "shenandoah": Server(COLLECTS.format("UseShenandoahGC"), "^$", NO_PAGES, changes=NEVER),
    "zgc": Server(COLLECTS.format("UseZGC"), "^$", NO_PAGES, changes=NEVER),
}


@pytest.mark.parametrize("name", SERVERS_BY_NAME)
def test_no_warning_about_the_host_is_left_or_a_finding_says_why(
    name: str, tmp_path: Path, place: Path, call: Modules
) -> None:
    def words(text: str) -> "list[str]":
        program, *arguments = text.format(place=place, jars=jars.class_path(name)).split()
        return [shutil.which(program) or program, *arguments]

    server = SERVERS_BY_NAME[name]
    (place / "config").write_text(server.config.format(place=place))
    if server.prepare:
        servers.run(words(server.prepare))
    judge(name, server, words(server.argv), tmp_path, place, call)
