# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first boot of an instance with the user data of docs/examples, as it stands there, by the real cloud-init.

The host reaches no network. So its git and pip are told where the repositories and the packages lie on its own disk.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev import ROOT
from lab.host import Host, instance, planned

EXAMPLES = ROOT / "docs/examples"
SEED = "/var/lib/cloud/seed/nocloud"
FILES = {
    "/etc/pip.conf": "[global]\nno-index = true\nfind-links = /srv/wheels\n",
    "/etc/gitconfig": """\
[safe]
    directory = *
[url "/srv/collection"]
    insteadOf = https://github.com/nearmetal/ec2.git
[url "/srv/fleet"]
    insteadOf = https://git.example.com/fleet.git
""",
    "/etc/apt/sources.list": "",
    # The lab knows the host by its key, and logs in as root. Of the second stage, the one that makes the script: others
    # need what the lab hasn't got, and would leave the boot degraded.
    "/etc/cloud/cloud.cfg.d/99_lab.cfg": """\
ssh_deletekeys: false
disable_root: false
network: {config: disabled}
cloud_config_modules: [runcmd]
""",
    f"{SEED}/meta-data": "instance-id: i-00000000000000da7\n",
}
CLEAN = "cloud-init clean --logs && rm -f /etc/network/interfaces.d/50-cloud-init"
ENABLE = "sed -i s/cloud-init=disabled/ds=nocloud/ /etc/default/grub.d/10_lab.cfg && update-grub 2>&1"
KEEPALIVE = "cat /proc/sys/net/ipv4/tcp_keepalive_time"
FIRST_BOOT_SECONDS = 1500.0


def repository(folder: Path, tag: str = "") -> None:
    """Make a git repository of what a folder holds."""
    git = ("git", "-c", "user.name=x", "-c", "user.email=x@example.com", "-C", str(folder))
    for words in (("init", "-q"), ("add", "--all"), ("commit", "-q", "-m", "x"), *([("tag", tag)] if tag else [])):
        subprocess.run([*git, *words], check=True)


def served(folder: Path) -> bytes:
    """What the first boot asks the network for, as an archive: wheels, the collection by its tag, and site.yml."""
    for name in ("wheels", "collection", "fleet"):
        (folder / name).mkdir(parents=True)
    pip = [str(ROOT / ".venv-uv/bin/pip"), "download", "--quiet", "--dest", str(folder / "wheels")]
    guest = ["--only-binary=:all:", "--python-version=3.11", "--platform=manylinux2014_x86_64"]
    subprocess.run([*pip, *guest, "ansible-core>=2.16,<2.20"], check=True)
    tracked = subprocess.run(["git", "-C", str(ROOT), "archive", "HEAD"], stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder / "collection")], input=tracked, check=True)
    repository(folder / "collection", "0.2.0")
    (folder / "fleet/site.yml").write_text((EXAMPLES / "site.yml").read_text("utf-8"), "utf-8")
    repository(folder / "fleet")
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz", compresslevel=1) as tar:
        tar.add(folder, ".")
    return archive.getvalue()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A host whose next boot is its first with user data."""
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path / "instances"))
    with instance.running("first_boot") as started:
        started.run("tar -xz -C /srv", stdin=served(tmp_path / "served"))
        for path, content in FILES.items():
            started.run(f"mkdir -p {path.rpartition('/')[0]}")
            started.put(content.encode(), path)
        started.put((EXAMPLES / "user-data").read_bytes(), f"{SEED}/user-data")
        started.run(f"{ENABLE}; {CLEAN}")
        yield started


def test_an_instance_tunes_itself_at_its_first_boot(host: Host) -> None:
    assert host.run(KEEPALIVE).strip() == "7200"
    host.reboot()
    assert host.wait(
        lambda: any(f"status: {end}" in host.run("cloud-init status || true") for end in ("done", "error")),
        FIRST_BOOT_SECONDS,
        5.0,
    ), host.run("tail -50 /var/log/cloud-init-output.log")
    log = host.run("cat /var/log/cloud-init-output.log")
    assert "status: done" in host.run("cloud-init status || true"), log
    assert "failed=0" in log
    assert host.run(KEEPALIVE).strip() == "300", log
    assert "Everything is as wanted" in host.run("nearmetal status")

    host.reboot()
    assert planned.wait(host) in ("inactive", "absent")
    assert host.run(KEEPALIVE).strip() == "300", "no later boot needs cloud-init"
