# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation of modules, filters, callbacks and roles as a site in build/docs, made without a network."""

from __future__ import annotations

import shutil
import subprocess
import sys

from dev import ROOT

SITE = ROOT / "build" / "docs"
# Without these lines the build would look up other sites, and warn about each page and variable of ansible-core that it
# can't find there.
SETTINGS = """
project = title = html_short_title = "nearmetal.ec2"
intersphinx_mapping = {}
suppress_warnings = ["ref.ref", "ref.envvar"]
"""


def main() -> int:
    """Build the site; 1 when a page or a reference is broken."""
    shutil.rmtree(SITE, ignore_errors=True)
    SITE.mkdir(parents=True, mode=0o700)
    command = ["antsibull-docs", "sphinx-init", "--use-current", "--squash-hierarchy", "--dest-dir", str(SITE)]
    subprocess.run([*command, "nearmetal.ec2"], stdout=subprocess.DEVNULL, check=True)
    with (SITE / "conf.py").open("a", encoding="utf-8") as conf:
        conf.write(SETTINGS)
    done = subprocess.run(["./build.sh"], cwd=SITE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    output_lines = done.stdout.decode(errors="replace").splitlines()
    problems = [line for line in output_lines if "WARNING" in line or "ERROR" in line]
    if done.returncode or problems:
        print("\n".join(problems or output_lines))
        return 1
    pages = len(list((SITE / "build/html").rglob("*.html")))
    print(f"{pages} pages: {(SITE / 'build/html/index.html').relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
