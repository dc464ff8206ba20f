# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions out of rpm's database, in the form in which rpm 4.18 writes it."""

from __future__ import annotations

import sqlite3
import struct
import sys
from pathlib import Path
from typing import Optional, Sequence, Union

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.packages import version_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.service_load import observe

from tests.support.hosts import lay_out

AMAZON, FEDORA = "var/lib/rpm/rpmdb.sqlite", "usr/lib/sysimage/rpm/rpmdb.sqlite"


def header(name: str, version: str) -> bytes:
    """A package's header: the region's, the name's and the version's entries, and their texts."""
    texts = f"{name}\0{version}\0".encode()
    entries = struct.pack(">12I", 63, 7, len(texts), 16, 1000, 6, 0, 1, 1001, 6, len(name) + 1, 1)
    return struct.pack(">II", 3, len(texts)) + entries + texts


def database(root: Path, place: str, blob: Union[bytes, str]) -> Path:
    path = root / place
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as rpm:
        rpm.execute("CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob BLOB NOT NULL)")
        rpm.execute("CREATE TABLE Name (key TEXT NOT NULL, hnum INTEGER NOT NULL, idx INTEGER NOT NULL)")
        rpm.execute("INSERT INTO Packages VALUES (1, ?)", (blob,))
        rpm.execute("INSERT INTO Name VALUES ('mongodb-org-server', 1, 0)")
    rpm.close()
    return path


@pytest.mark.parametrize(
    ("place", "packages", "version"),
    [
        (AMAZON, ["mongodb-enterprise-server", "mongodb-org-server"], "8.0.4"),
        (FEDORA, ["mongodb-org-server"], "8.0.4"),
        (AMAZON, ["redis"], ""),
        ("var/lib/rpm/Packages", ["mongodb-org-server"], None),
    ],
)
def test_the_version_is_read_and_nothing_is_written(
    place: str, packages: Sequence[str], version: Optional[str], tmp_path: Path
) -> None:
    path = database(tmp_path, place, header("mongodb-org-server", "8.0.4"))
    assert version_of(Host(str(tmp_path)), packages) == version
    assert [found.name for found in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("blob", ["8.0.4", b"", b"\0\0\0\3", b"\xff" * 40, header("x", "rawhide")])
def test_a_header_without_a_version_names_none(blob: Union[bytes, str], tmp_path: Path) -> None:
    database(tmp_path, AMAZON, blob)
    assert version_of(Host(str(tmp_path)), ["mongodb-org-server"]) == ""


def test_a_file_that_is_no_database_is_as_none(tmp_path: Path) -> None:
    lay_out(tmp_path, {f"/{AMAZON}": "no database"})
    assert version_of(Host(str(tmp_path)), ["mongodb-org-server"]) is None


def test_a_python_without_sqlite_reads_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database(tmp_path, AMAZON, header("mongodb-org-server", "8.0.4"))
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    assert version_of(Host(str(tmp_path)), ["mongodb-org-server"]) is None


def test_a_service_has_the_version_of_its_package(tmp_path: Path) -> None:
    lay_out(
        tmp_path,
        {
            "/sys/fs/cgroup/system.slice/mongod.service/cgroup.procs": "812\n",
            "/proc/812/comm": "mongod\n",
            "/proc/812/exe": "-> /usr/bin/mongod",
        },
    )
    database(tmp_path, AMAZON, header("mongodb-org-server", "8.0.4"))
    assert observe(Host(str(tmp_path)))["mongod.service"].programs == {"mongod": "8.0.4"}
