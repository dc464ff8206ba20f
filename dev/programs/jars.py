# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that run on Java, out of Maven Central: their jars and those that they need, below .cache."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import List

from dev import ROOT

HOME = ROOT / ".cache" / "jars"
LOG4J = "org.apache.logging.log4j"
# Program → what Maven calls it, and what its release has beside it.
ARTIFACTS = {
    "cassandra": ("org.apache.cassandra:cassandra-all:5.0.5",),
    "kafka": ("org.apache.kafka:kafka_2.13:4.1.0", f"{LOG4J}:log4j-slf4j-impl:2.24.3"),
    "opensearch": ("org.opensearch:opensearch:2.19.3", f"{LOG4J}:log4j-core:2.24.3", f"{LOG4J}:log4j-api:2.24.3"),
}
_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
_POM = (
    '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>nearmetal</groupId>'
    "<artifactId>jars</artifactId><version>1</version><dependencies>{}</dependencies></project>"
)


def present() -> bool:
    """Whether Java and all jars are there, after trying to fetch those that aren't."""
    return all(map(shutil.which, ("java", "javac", "mvn"))) and all(map(_fetched, ARTIFACTS))


def class_path(program: str) -> str:
    """The jars of a program as java takes them, each named as the program's own start script does."""
    return ":".join(sorted(map(str, (HOME / program).glob("*.jar"))))


def _fetched(program: str) -> bool:
    place = HOME / program
    if place.exists():
        return True
    with tempfile.TemporaryDirectory() as folder:
        wanted: List[str] = [_DEPENDENCY.format(*name.split(":")) for name in ARTIFACTS[program]]
        (Path(folder) / "pom.xml").write_text(_POM.format("".join(wanted)))
        words = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={folder}/jars"]
        if subprocess.run(words, cwd=folder, capture_output=True, check=False).returncode:
            return False
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(f"{folder}/jars", place)
    return True
