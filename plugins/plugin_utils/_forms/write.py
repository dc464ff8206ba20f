# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as files, written atomically and readable by their owner only. PRIVATE to the collection."""

from __future__ import annotations

import itertools
import os
from typing import List

from ...module_utils._error import NearmetalError
from .._files import ELSEWHERE, write_together
from .._report import commands, document, model, summary
from .._report.model import Report
from . import ci, html, markdown, prometheus

FORMS = (
    ("report.json", document.dump),
    ("report.md", markdown.render),
    ("report.html", html.render),
    ("report.prom", prometheus.render),
    ("report.junit.xml", ci.junit),
    ("report.sarif", ci.sarif),
)
LAST_GOOD = "last_good"  # the folder of the last report in which a host reported


def _keep_last(report: Report, directory: str) -> List[str]:
    """Move the last report with hosts to a folder of its own, if none of this one reported; the folder."""
    if report.states()[model.REPORTED]:
        return []
    try:
        _finished, hosts = document.load(os.path.join(directory, FORMS[0][0]))
    except NearmetalError:
        return []
    folder = os.path.join(directory, LAST_GOOD)
    if any(host.state == model.REPORTED for host in hosts):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        for name in (name for name, _form in FORMS if os.path.exists(os.path.join(directory, name))):
            os.replace(os.path.join(directory, name), os.path.join(folder, name))
    return [folder] if os.path.isdir(folder) else []


def write_all(report: Report, directory: str) -> List[str]:
    """Write every form, and the host files of its commands, into the directory, made with mode 0700; the forms' paths.

    A report without any host takes the place of none with hosts: that one is kept in LAST_GOOD, the last path.

    Raises NearmetalError when a file can't be written; those of the run before stay then, all of them.
    """
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        needed, kept = summary.hosts_files(report), []
        texts = itertools.chain(needed.items(), ((name, form(report)) for name, form in FORMS))  # one after the other
        paths = ((os.path.join(directory, name), text) for name, text in texts)
        written = write_together(paths, lambda: kept.extend(_keep_last(report, directory)))
        for name in os.listdir(directory):
            if commands.HOSTS_FILE.fullmatch(name) and name not in needed:
                os.unlink(os.path.join(directory, name))
        return [*written[len(needed) :], *kept]
    except OSError as error:
        raise NearmetalError(
            f"report_directory: can't write {error.filename or directory}: {error.strerror}; {ELSEWHERE}"
        ) from None
