# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""MariaDB and MySQL. PRIVATE to the collection."""

from __future__ import annotations

from .program import Check, Page, Program, Wish

_PAGE = Page(reference="MariaDB guide, Linux", read="2026-11-27", again="2027-11-27")
_MYSQL = Page(reference="MySQL manual, disk I/O", read="2026-11-28", again="2027-11-28")
_UNIT = Page(reference="MariaDB guide, its unit", read="2026-11-28", again="2027-11-28")

MARIADB = Program(
    "MariaDB",
    "nvme_storage",
    (Wish("block_storage.scheduler", "none", "its guide asks for it on SSDs and NVMe disks", _PAGE),),
    processes=("mariadbd",),
    packages=("mariadb-server",),
    checks=(
        Check("Max locked memory", 262144, _UNIT, "it warns at its start and does without io_uring"),
        Check("Max open files", 32184, _UNIT, "with its own defaults it opens fewer tables"),
    ),
    left="`mq-deadline` on `st1` and `sc1` volumes: name them in `block_storage.disks`",
)

MYSQL = Program(
    "MySQL",
    "nvme_storage",
    (
        Wish(
            "block_storage.scheduler",
            "none",
            "its manual recommends no scheduler or that of deadlines, with requests that needn't wait",
            _MYSQL,
            also=("mq-deadline",),
        ),
    ),
    processes=("mysqld",),
    packages=("mysql-community-server", "mysql-server-8.0", "mysql-server"),
    left="it says of its choice of a scheduler: measure it; huge pages for `large_pages`, as many as its buffer pool"
    " takes: `hugepages.pages`",
)
