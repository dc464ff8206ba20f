# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the working copy ready: system packages, virtual environments from the locks, the symlink tree.

Runs on the system's own python3 (3.8 or newer) with nothing installed. Skips what is done already: each environment has
a stamp of its lock and its version of Python.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Dict, Iterator, List, Sequence

from dev import ROOT
from dev.programs import amazon_aws, pythons

COLLECTIONS = ROOT / ".ansible" / "collections"
LOCKS = ROOT / "requirements"
# Packages and files that the suites start hundreds of times. To compile all others would cost a minute.
STARTED_OFTEN = (
    *("_pytest", "ansible", "ansible_test", "ansiblelint", "boto3", "botocore", "click", "cryptography", "distro"),
    *("hypothesis", "jinja2", "markupsafe", "molecule", "packaging", "pluggy", "resolvelib", "rich"),
    *("typing_extensions.py", "urllib3", "xmltodict.py", "yaml"),
)


class SetupError(Exception):
    """A sentence that says what is missing and what to do."""


class Progress:
    """Prints a line for each step that is taken, with its time."""

    def __init__(self) -> None:
        self.steps = 0

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        self.steps += 1
        started = time.monotonic()
        print(f"  {title} …", end="", flush=True)
        try:
            yield
        except BaseException:
            print(" failed", flush=True)
            raise
        print(f" {time.monotonic() - started:.1f} s", flush=True)


def run(argv: Sequence[str], **more: str) -> None:
    """Run quietly. Raises SetupError with all output on failure."""
    environment = {**os.environ, "UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", **more}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        list(argv),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SetupError(f"`{' '.join(argv)}` failed ({done.returncode}):\n{done.stdout.rstrip()}")


def install_packages(packages: List[str], reason: str) -> None:
    """Install packages of the distribution, as root or through sudo."""
    if not shutil.which("apt-get"):
        raise SetupError(
            f"{reason}: install {' '.join(packages)} (or the packages that your distribution has for it) and run again."
        )
    prefix: List[str] = []
    if os.geteuid() != 0:
        if not shutil.which("sudo"):
            raise SetupError(f"{reason}: run `apt-get install {' '.join(packages)}` as root and run again.")
        prefix = ["sudo", "--"]
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y"]
    run([*apt, "update"])
    run([*apt, "install", "--no-install-recommends", *packages])


def controller_python(progress: Progress) -> Dict[str, Path]:
    """The interpreters of this machine, with at least one that can run ansible-core 2.19 and venv."""
    interpreters = pythons.find()
    if not pythons.first(interpreters, pythons.CONTROLLERS):
        # Ubuntu 22.04 has Python 3.10 as python3, and 3.11 as a package of its own.
        with progress.step("Python 3.11 from the distribution"):
            try:
                install_packages(["python3.11", "python3.11-venv"], "ansible-core 2.19 needs Python 3.11 to 3.13")
            except SetupError as error:
                raise SetupError(
                    "ansible-core 2.19 needs Python 3.11, 3.12 or 3.13 on this machine and the distribution "
                    f"offers none; install one so that `python3.11` starts, then run again.\n{error}"
                ) from error
        interpreters = pythons.find()
    version = pythons.first(interpreters, pythons.CONTROLLERS)
    if version is None:
        raise SetupError("Python 3.11 was installed but does not start: run `python3.11 --version` to see why.")
    has_venv = [str(interpreters[version]), "-I", "-c", "import ensurepip, venv"]
    if subprocess.run(has_venv, stderr=subprocess.DEVNULL, check=False).returncode:
        with progress.step(f"python{version}-venv"):
            install_packages([f"python{version}-venv"], "virtual environments need ensurepip")
    return interpreters


def ssh_client(progress: Progress) -> None:
    """Install the ssh client, by which Ansible reaches hosts and the lab."""
    if not shutil.which("ssh"):
        with progress.step("the ssh client"):
            install_packages(["openssh-client"], "Ansible needs the ssh client")


def stamp_of(lock: Path, version: str) -> str:
    """The stamp of an environment: the version of Python and a digest of the lock."""
    return f"{version} {hashlib.sha256(lock.read_bytes()).hexdigest()}"


def is_made(home: Path, lock: Path, version: str) -> bool:
    """Whether the environment is the one of this lock and its interpreter still exists."""
    stamp = home / ".stamp"
    return stamp.exists() and stamp.read_text() == stamp_of(lock, version) and (home / "bin/python").exists()


def uv_command(python: Path, version: str, progress: Progress) -> str:
    """uv in an environment of its own, itself installed from a lock."""
    home = ROOT / ".venv-uv"
    lock = LOCKS / "uv.txt"
    if not is_made(home, lock, version):
        with progress.step("uv, the installer"):
            run([str(python), "-m", "venv", "--clear", str(home)])
            run([str(home / "bin/pip"), "install", "--quiet", "--require-hashes", "-r", str(lock)])
            (home / ".stamp").write_text(stamp_of(lock, version))
    return str(home / "bin" / "uv")


def environment(uv: str, folder: str, lock_name: str, version: str, python: Path, progress: Progress) -> None:
    """One virtual environment, exactly as its lock says."""
    home = ROOT / folder
    lock = LOCKS / lock_name
    if is_made(home, lock, version):
        return
    with progress.step(f"{folder}, Python {version}"):
        # An environment that may be in use is updated in place.
        stamp = home / ".stamp"
        if not stamp.exists() or not stamp.read_text().startswith(f"{version} ") or not (home / "bin/python").exists():
            run([uv, "venv", "--clear", "--python", str(python), str(home)])
        run([uv, "pip", "sync", "--require-hashes", str(lock)], VIRTUAL_ENV=str(home))
        compile_started_often(home)
        stamp.write_text(stamp_of(lock, version))


def compile_started_often(home: Path) -> None:
    """Write the bytecode that neither uv nor the suites write: Ansible then starts in half the time."""
    packages = [str(path) for name in STARTED_OFTEN for path in home.glob(f"lib/python3.*/site-packages/{name}")]
    run([str(home / "bin/python"), "-m", "compileall", "-q", *packages])


def symlink_tree() -> None:
    """Make the link to this working copy by which Ansible and Python find the collection."""
    link = COLLECTIONS / "ansible_collections" / "nearmetal" / "ec2"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink() or os.readlink(str(link)) != "../../../..":
        fresh = link.with_name("ec2.new")
        if fresh.is_symlink():
            fresh.unlink()
        fresh.symlink_to("../../../..")
        os.replace(str(fresh), str(link))


def lab_packages(uv_python: Path) -> None:
    """Install what the lab needs, such as QEMU; `lab doctor` names the packages."""
    done = subprocess.run([str(uv_python), "-m", "lab", "doctor", "--install"], cwd=str(ROOT), check=False)
    if done.returncode:
        raise SetupError("The lab can't run on this machine: see the lines above (`python3 -m lab doctor`).")


def set_up(with_lab: bool, with_tests: bool) -> None:
    """All steps in order; with_lab also installs what the lab needs, with_tests all that the suites run on."""
    progress = Progress()
    started = time.monotonic()
    interpreters = controller_python(progress)
    version = pythons.first(interpreters, pythons.CONTROLLERS) or ""
    uv = uv_command(interpreters[version], version, progress)
    environment(uv, ".venv", "dev.txt", version, interpreters[version], progress)
    ssh_client(progress)
    symlink_tree()
    if with_tests:
        for_tests(uv, interpreters, progress)
    if with_lab:
        lab_packages(ROOT / ".venv/bin/python")
    summary = f"{progress.steps} steps" if progress.steps else "nothing to do"
    print(f"Set-up: {summary} ({time.monotonic() - started:.1f} s). Pythons: {' '.join(interpreters)}", flush=True)


def for_tests(uv: str, interpreters: Dict[str, Path], progress: Progress) -> None:
    """The environments of all other versions, and what else the suites need."""
    newest = pythons.first(interpreters, pythons.CONTROLLERS_NEWEST)
    if newest:
        environment(uv, ".venv-newest", "newest.txt", newest, interpreters[newest], progress)
    for core, versions in pythons.CORES.items():
        fitting = pythons.first(interpreters, versions)
        if fitting:
            environment(uv, f".venv-core-{core}", f"core-{core}.txt", fitting, interpreters[fitting], progress)
    for version, python in interpreters.items():
        environment(uv, f".venv-target-{version}", "target.txt", version, python, progress)
    if not amazon_aws.is_present():
        with progress.step("amazon.aws, for the tests of the inventory"):
            amazon_aws.fetch(ROOT / ".venv-uv/bin/python")


def main(arguments: Sequence[str]) -> int:
    """Set up, and say in a sentence what stopped it."""
    parser = argparse.ArgumentParser("python -m dev.setup", description=__doc__)
    parser.add_argument("--no-lab", action="store_true", help="leave out what emulated hosts need")
    parser.add_argument("--no-tests", action="store_true", help="leave out what only tests need")
    parsed = parser.parse_args(arguments)
    (ROOT / ".cache").mkdir(exist_ok=True)
    with (ROOT / ".cache" / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            set_up(with_lab=not parsed.no_lab and (ROOT / "lab").is_dir(), with_tests=not parsed.no_tests)
        except SetupError as error:
            print(f"Set-up stopped: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
