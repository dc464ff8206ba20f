# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nearmetal capture` and `nearmetal plan --from`: no secret leaves the host, and the plan is that host's own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import command
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.allowed import rule_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import WORKLOADS
from ansible_collections.nearmetal.ec2.plugins.modules import capture, tune
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._ansible import plays

from tests.support import hosts
from tests.support.fake_kernel import FakeKernel
from tests.support.files.processes import process
from tests.support.fresh_host import fresh
from tests.support.knobs import every_knob

Call = Callable[..., Dict[str, Any]]
Run = Callable[..., str]
INSTANCE, MAC, UUID = "i-0123456789abcdef0", "0e:a1:b2:c3:d4:e5", "ec2a1b2c-3d4e-5f60-7182-93a4b5c6d7e8"
SERIAL, ADDRESS = "4f7Tz9-SERIAL", "10.31.7.254"
SECRETS = {
    "/proc/cmdline": (
        "root=UUID=hunter2-root ro clocksource=tsc db_password=hunter2 luks.key=hunter2 tsc=reliable nosmt=hunter2;x\n"
    ),
    "/sys/devices/virtual/dmi/id/product_serial": SERIAL,
    "/sys/devices/virtual/dmi/id/product_uuid": UUID,
    "/sys/devices/virtual/dmi/id/chassis_asset_tag": SERIAL,
    "/sys/class/net/ens5/address": MAC,
    "/sys/class/net/ens5/ifalias": "hunter2",
    "/etc/sysctl.d/99-zz-site.conf": (
        "# hunter2\nkernel.core_pattern = |/bin/hunter2\nnet.core.somaxconn = 128\nnet.core.rmem_max = hunter2;\n"
    ),
    "/etc/sysctl.d/99-nearmetal-numa.conf": "# edited: hunter2\nkernel.hostname = hunter2\n",
    "/etc/systemd/system/redis.service": "[Service]\nEnvironment=TOKEN=hunter2\n",
    "/etc/systemd/system/irqbalance.service.d/site.conf": "[Service]\nEnvironment=TOKEN=hunter2\n",
    "/etc/default/irqbalance": "IRQBALANCE_ARGS=--hint=hunter2\n",
    "/etc/tuned/active_profile": "site\n",
    "/etc/tuned/site/tuned.conf": (
        "[main]\nsummary=hunter2\n[variables]\npassword=hunter2\n[sysctl]\nkernel.domainname=hunter2\n"
        "net.core.somaxconn=2048\n[bootloader]\ncmdline_site=+nosmt token=hunter2\n[script]\nscript=/opt/hunter2\n"
    ),
    "/sys/fs/cgroup/system.slice/tuned.service/cgroup.procs": "812\n",
    "/etc/chrony.conf": "server hunter2.example.com iburst\nserver 169.254.169.123 prefer\nkeyfile /etc/hunter2\n",
    "/etc/systemd/timesyncd.conf.d/site.conf": "[Time]\nNTP=hunter2.example.com 169.254.169.123\n",
    "/proc/swaps": "Filename Type Size Used Priority\n/srv/hunter2/swap file 4096 0 -2\n",
    "/etc/os-release": 'ID=amzn\nVERSION_ID="2023"\nPRETTY_NAME="of hunter2"\nHOME_URL=http://hunter2/\n',
    "/proc/net/route": (
        "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
        "ens5\t00000000\tFE071F0A\t0003\t0\t0\t512\t00000000\t0\t0\t0\n"
        "ens5\t0A071F0A\t00000000\t0005\t0\t0\t512\tFFFFFFFF\t0\t0\t0\n"
    ),
    "/dev/kmsg": (
        "6,1,100,-;Kernel command line: clocksource=tsc db_password=hunter2\n"
        "6,2,200,-;clocksource: Switched to clocksource tsc\n"
        f"6,3,300,-;ena 0000:00:05.0: addr {MAC}\n"
        "5,4,400,-;audit: user hunter2 logged in\n"
    ),
    "/var/lib/nearmetal/boot_arguments.json": '{"arguments": "hunter2"}',
    "/boot/grub/grub.cfg": "password_pbkdf2 root hunter2\n",
    "/proc/cpuinfo": (
        "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu tsc constant_tsc nonstop_tsc hypervisor\n"
        f"Serial\t\t: {SERIAL}\n\n"
    ),
    "/proc/1/mounts": (
        "/dev/disk/by-uuid/hunter2 / ext4 rw,relatime 0 0\n//nas/hunter2 /mnt cifs rw,password=hunter2 0 0\n"
    ),
}
# Stored options whose values are the user's own names.
NAMES: Dict[str, Dict[str, Any]] = {
    "hugepages": {"thp": "never", "group": "hunter2", "mount": {"path": "/srv/hunter2"}},
    "numa": {"balancing": "disabled", "services": [{"unit": "hunter2.service", "nodes": "0", "policy": "bind"}]},
    "block_storage": {
        "disks": [{"kind": "ebs", "scheduler": "none"}, {"mount": "/srv/hunter2", "scheduler": "none"}],
    },
    "network_irq": {"policy": "dedicated", "compute_units": ["hunter2.service"]},
}
SAFE = ("hunter2", SERIAL, UUID[:12], MAC, INSTANCE, ADDRESS, "FE071F0A", "0A071F0A")


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command of the host and return its output."""

    def run(host: Any, *words: str, code: int = 0) -> str:
        capsys.readouterr()
        assert command.main(list(words), host) == code
        printed = capsys.readouterr()
        return printed.out + printed.err

    return run


def planned(text: str) -> List[Dict[str, Any]]:
    """Findings without what a capture can't know: the unit, boot loader and instance id."""
    return [
        finding
        for finding in json.loads(text)["findings"]
        if finding["concern"] != "unit" and finding["knob"] != "persist"
    ]


def test_no_secret_is_in_a_capture(tmp_path: Path, call: Call, say: Run) -> None:
    host = FakeKernel(
        tmp_path, hosts.files_of("nitro", {"/sys/devices/virtual/dmi/id/board_asset_tag": f"{INSTANCE}\n"})
    )
    call(
        tune.main,
        host,
        concerns={"network_stack": {"somaxconn": 8192}},
        waivers=[{"knob": "network_stack.somaxconn", "reason": "hunter2", "expires": "2999-01-01"}],
    )
    wanted = tmp_path / "var/lib/nearmetal/wanted.json"
    stored = json.loads(wanted.read_text())
    for concern, options in NAMES.items():
        stored["concerns"][concern] = {**stored["concerns"]["network_stack"], "options": options, "by": {}}
    wanted.write_text(json.dumps(stored))
    hosts.lay_out(tmp_path, SECRETS)
    text = say(host, "capture")
    assert [secret for secret in SAFE if secret in text] == []
    captured = json.loads(text)
    files = captured["files"]
    assert files["/proc/cmdline"] == "ro clocksource=tsc tsc=reliable\n"
    assert files["/etc/sysctl.d/99-zz-site.conf"] == "net.core.somaxconn = 128\n"
    assert files["/dev/kmsg"] == "6,2,200,-;clocksource: Switched to clocksource tsc\n"
    assert files["/etc/tuned/site/tuned.conf"].splitlines()[-2:] == ["cmdline_site=nosmt", "[script]"]
    assert files["/proc/1/mounts"] == "- / - rw 0 0\n"
    assert captured["wanted"]["network_stack"]["somaxconn"] == 8192
    assert captured["wanted"]["hugepages"]["thp"] == "never"
    assert captured["wanted"]["numa"]["balancing"] == "disabled"
    assert [disk["kind"] for disk in captured["wanted"]["block_storage"]["disks"]] == ["ebs"]
    assert captured["wanted"]["network_irq"]["policy"] == "dedicated"


@pytest.mark.parametrize("name", [name for name in hosts.names() if name != "container"])
def test_a_plan_from_a_capture_is_the_hosts_own(name: str, tmp_path: Path, say: Run, call: Call) -> None:
    host = fresh(tmp_path / "root", name)
    place = tmp_path / "host.json"
    place.write_text(say(host, "capture"))
    for workload in WORKLOADS:
        on_host = call(tune.main, host, check=True, workload=workload)
        plan = planned(say(None, "plan", "--from", str(place), "--workload", workload, "--json"))
        assert plan == planned(json.dumps(on_host)), workload
    assert "instance_id" in json.loads(say(None, "plan", "--from", str(place), "--json"))["platform"]


FIRST_NAMESPACE, OWN_NAMESPACE = "-> pid:[4026531836]", "-> pid:[4026532201]"
IN_DOCKER = f"0::/system.slice/docker-{'0a' * 32}.scope\n"


@pytest.mark.parametrize(
    ("files", "host_class"),
    [
        ({"/.dockerenv": "", "/proc/self/ns/pid": FIRST_NAMESPACE, "/proc/self/cgroup": "0::/init.scope\n"}, "nitro"),
        ({"/.dockerenv": "", "/proc/self/ns/pid": FIRST_NAMESPACE, "/proc/self/cgroup": IN_DOCKER}, "container"),
        (
            {
                "/.dockerenv": "",
                "/proc/self/ns/pid": FIRST_NAMESPACE,
                "/proc/self/cgroup": "0::/\n",
                "/proc/1/cgroup": "0::/../../../init.scope\n",
            },
            "container",
        ),
        ({"/run/.containerenv": "", "/proc/self/ns/pid": OWN_NAMESPACE}, "container"),
    ],
    ids=["marker left in an image", "host's namespace", "control groups of its own", "namespace of its own"],
)
def test_a_capture_knows_whether_it_was_made_in_a_container(
    files: Dict[str, str], host_class: str, tmp_path: Path, say: Run
) -> None:
    text = say(FakeKernel(tmp_path / "root", hosts.files_of("nitro", files)), "capture")
    assert "0a0a" not in text, "the name of a container"
    place = tmp_path / "host.json"
    place.write_text(text)
    planned_host = json.loads(say(None, "plan", "--from", str(place), "--json"))
    assert planned_host["platform"]["host_class"] == host_class


def test_a_capture_keeps_what_tuned_and_the_boot_loader_set_for_each_knob() -> None:
    of_tuned, arguments = rule_of("/etc/tuned/site/tuned.conf"), rule_of("/proc/cmdline")
    assert of_tuned is not None
    assert arguments is not None
    for knob in every_knob():
        if knob.lever == "boot.arguments":
            assert arguments(f"{knob.place}=1 token=1") == f"{knob.place}=1\n"
        for setting in knob.tuned:
            kind, _dot, option = setting.partition(".")
            line = f"cmdline_site={option}" if kind == "cmdline" else f"{option}=1"
            assert of_tuned(f"{line}\nsecret=1\n") == f"{line}\n", setting
        for path in knob.at_boot:
            assert rule_of(path.replace("*", "0")) is not None, path


@pytest.mark.parametrize(("masked", "owner"), [(False, "tuned"), (True, "")])
def test_a_capture_knows_whether_tuned_starts_with_the_host(
    masked: bool, owner: str, tmp_path: Path, say: Run, call: Call
) -> None:
    units = "/etc/systemd/system"
    tuned = {
        "/etc/tuned/active_profile": "site\n",
        "/etc/tuned/site/tuned.conf": "[vm]\ntransparent_hugepages=always\n",
        f"{units}/multi-user.target.wants/tuned.service": "-> /usr/lib/systemd/system/tuned.service",
    }
    mask = {f"{units}/tuned.service": "-> /dev/null"} if masked else {}
    host = FakeKernel(tmp_path / "root", hosts.files_of("nitro", {**tuned, **mask}))
    place = tmp_path / "host.json"
    place.write_text(say(host, "capture"))
    plan = planned(say(None, "plan", "--from", str(place), "--workload", "in_memory_database", "--json"))
    assert plan == planned(json.dumps(call(tune.main, host, check=True, workload="in_memory_database")))
    assert [finding["owner"] for finding in plan if finding["knob"] == "thp"] == [owner]


def test_the_collection_alone_plans_a_capture(tmp_path: Path, say: Run) -> None:
    place = tmp_path / "host.json"
    place.write_text(say(fresh(tmp_path / "root", "xen_hvm"), "capture"))
    guide = (Path(__file__).parents[4] / "docs" / "capture.md").read_text()
    module = re.search(r"python3 -m (\S+) plan --from host\.json", guide)
    assert module
    collections = next(path for path in sys.path if Path(path, "ansible_collections/nearmetal/ec2").exists())
    done = subprocess.run(
        [sys.executable, "-m", module[1], "plan", "--from", str(place)],
        env={"PYTHONPATH": collections},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "clocksource" in done.stdout


def print_to(target: str, place: Path) -> "subprocess.CompletedProcess[str]":
    """A plan from the capture, printed by a Python that knows no Unicode to a file or through a shell's pipe."""
    collections = next(path for path in sys.path if Path(path, "ansible_collections/nearmetal/ec2").exists())
    module = command.__name__
    return subprocess.run(
        ["bash", "-c", f'set -o pipefail; "$0" -m {module} plan --from "$1" {target}', sys.executable, str(place)],
        env={"PYTHONPATH": collections, "PYTHONIOENCODING": "ascii", "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_console_without_unicode_shows_the_plan_all_the_same(tmp_path: Path, say: Run) -> None:
    place = tmp_path / "host.json"
    place.write_text(say(fresh(tmp_path / "root", "xen_hvm"), "capture"))
    done = print_to("", place)
    assert (done.returncode, done.stderr) == (0, "")
    assert "xen ? tsc" in done.stdout
    full = print_to("> /dev/full", place)
    assert (full.returncode, full.stderr) == (1, "nearmetal: the output can't be written: No space left on device\n")
    assert print_to("| true", place).stderr == ""


def test_a_capture_is_planned_for_the_values_wanted_on_its_host(tmp_path: Path, call: Call, say: Run) -> None:
    host = fresh(tmp_path / "root", "xen_hvm")
    call(tune.main, host, concerns={"clocksource": {"source": "tsc"}, "hugepages": {"thp": "never"}})
    host.write_value("/sys/kernel/mm/transparent_hugepage/enabled", "always")
    place = tmp_path / "host.json"
    place.write_text(say(host, "capture"))
    lines = say(None, "plan", "--from", str(place)).splitlines()
    assert lines[0].startswith("captured on 20")
    assert lines[0].endswith("xen_hvm · 4.14.355-275.572.amzn2.x86_64")
    assert [line.split() for line in lines if "hugepages.thp" in line] == [
        ["would", "change", "hugepages.thp", "always", "→", "never"]
    ]
    assert [line.split() for line in lines if "clocksource.source" in line] == [["ok", "clocksource.source", "tsc"]]


BROKEN = [
    ("{", "it isn't JSON"),
    ('{"format": 2}', "its format isn't 1"),
    ('{"format": 1, "files": {}}', "a part of it is missing"),
]


@pytest.mark.parametrize(("text", "reason"), BROKEN)
def test_a_file_that_is_no_capture_is_refused(text: str, reason: str, tmp_path: Path, say: Run) -> None:
    (tmp_path / "host.json").write_text(text)
    assert reason in say(None, "plan", "--from", str(tmp_path / "host.json"), code=1)
    assert "No such file" in say(None, "plan", "--from", str(tmp_path / "absent.json"), code=1)


def test_control_characters_of_a_capture_never_reach_the_terminal(tmp_path: Path, say: Run) -> None:
    whole = json.loads(say(fresh(tmp_path / "root", "nitro"), "capture"))
    whole["captured"] = "\x1b[2J2026"
    (tmp_path / "host.json").write_text(json.dumps(whole))
    assert "\x1b" not in say(None, "plan", "--from", str(tmp_path / "host.json"))


def test_the_module_returns_what_the_command_prints(tmp_path: Path, call: Call, say: Run) -> None:
    host = fresh(tmp_path, "metal")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    result = call(capture.main, host)
    assert result["capture"] == json.loads(say(host, "capture"))
    assert not result["changed"]
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    host.root_user = False
    assert "set become: true" in call(capture.main, host)["msg"]


def test_the_guide_shows_what_is_printed(tmp_path: Path, say: Run) -> None:
    guide = (Path(__file__).resolve().parents[4] / "docs" / "capture.md").read_text("utf-8")
    shown = guide.split("```console\n")[1].split("```")[0].splitlines()[1:]
    (tmp_path / "host.json").write_text(say(fresh(tmp_path / "root", "xen_hvm"), "capture"))
    printed = say(None, "plan", "--from", str(tmp_path / "host.json"), "--workload", "cache").splitlines()
    assert [line.rstrip() for line in printed[1 : len(shown)]] == shown[1:]
    version = re.compile(r"nearmetal \d+\.\d+\.\d+ ")  # the guide may show an earlier one
    assert version.split(printed[0])[1] == version.split(shown[0])[1]


def test_a_play_that_only_captures_writes_no_report() -> None:
    modes = {
        name: plays.mode_of_task(
            SimpleNamespace(resolved_action=f"nearmetal.ec2.{name}", action=name, check_mode=False)
        )
        for name in ("capture", "confirm", "tune")
    }
    assert modes == {"capture": "", "confirm": "", "tune": "tune"}


def test_the_version_of_a_program_is_captured_and_decides_what_is_planned_for_it(tmp_path: Path, say: Run) -> None:
    process_files = process(812, "mongod", "/usr/bin/mongod", ports=[27017])
    paragraphs = [
        f"Package: {name}\nStatus: install ok installed\nVersion: {version}\n"
        for name, version in (("hunter2-agent", "1.0"), ("mongodb-org-server", "8.0.4-1"))
    ]
    changes = {**process_files, "/var/lib/dpkg/status": "\n".join(paragraphs)}
    host = FakeKernel(tmp_path / "root", hosts.files_of("metal", changes))
    text = say(host, "capture")
    kept = json.loads(text)["files"]["/var/lib/dpkg/status"]
    assert kept == "Package: mongodb-org-server\nStatus: install ok installed\nVersion: 8.0.4"
    place = tmp_path / "host.json"
    place.write_text(text)
    for word in ("auto", "mongodb"):
        printed = say(None, "plan", "--from", str(place), "--program", word, "--json")
        wanted = {finding["knob"]: finding["wanted"] for finding in planned(printed) if finding["wanted"]}
        assert (wanted["thp"], wanted["max_ptes_none"]) == ("always", "0"), word
    assert "name its file with --from" in say(host, "plan", "--program", "mongodb", code=1)
