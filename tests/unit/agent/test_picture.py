# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nearmetal topology`: the picture shows all that a host has, where it is, and which CPUs do the network's work."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Callable, Dict, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import command
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.picture.host import LOOKS
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.options import validate
from ansible_collections.nearmetal.ec2.plugins.module_utils._tasks.tuning import OPTIONS, forecast

from tests.support import hosts
from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import booted, fresh
from tests.support.hosts import CPU, NODE, built
from tests.support.report.svg import CPU_STYLES, Picture

Draw = Callable[..., Picture]
STORE = "Amazon EC2 NVMe Instance Storage"


@pytest.fixture
def draw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Draw:
    """The picture of a host, or of its capture."""

    def run(host: Any, *options: str, captured: bool = False) -> Picture:
        capsys.readouterr()
        words = ["topology", *options]
        if captured:
            assert command.main(["capture"], host) == 0
            (tmp_path / "host.json").write_text(capsys.readouterr().out)
            words += ["--from", str(tmp_path / "host.json")]
        assert command.main(words, None if captured else host) == 0
        return Picture(capsys.readouterr().out)

    return run


def host_of(tmp_path: Path, name: str, changes: Optional[Dict[str, str]] = None, **parts: Any) -> FakeKernel:
    """A host of tests/hosts with other parts, and other files."""
    whole = json.loads((hosts.FOLDER / f"{name}.json").read_text())
    return booted(tmp_path / "root", {**built({**whole, **parts}), **(changes or {})})


def caches(cpu: int, *found: str) -> Dict[str, str]:
    """The files of the caches of a CPU, each as "level type size CPUs"."""
    files = {}
    for index, text in enumerate(found):
        for key, value in zip(("level", "type", "size", "shared_cpu_list"), text.split()):
            files[f"{CPU}/cpu{cpu}/cache/index{index}/{key}"] = f"{value}\n"
    return files


def largest(tmp_path: Path) -> FakeKernel:
    """448 CPUs on 8 sockets, with a NIC of 32 queues and a disk on each node."""
    nodes = range(8)
    found: Dict[str, str] = {}
    for cpu in range(448):
        first = cpu % 224 // 28 * 28
        whole = f"{first}-{first + 27},{first + 224}-{first + 251}"
        found.update(caches(cpu, f"2 Unified 2048K {cpu % 224},{cpu % 224 + 224}", f"3 Unified 107520K {whole}"))
    nics = [{"name": f"ens{n}", "driver": "ena", "place": f"0000:1{n}:00.0", "queues": 32, "node": n} for n in nodes]
    disks = [{"name": f"nvme{n}n1", "device": f"0000:8{n}:00.0", "model": STORE, "node": n} for n in nodes]
    shape = {"sockets": 8, "cores": 28, "threads": 2, "nodes": 8}
    return host_of(tmp_path, "metal", found, shape=shape, nics=nics, disks=disks)


@pytest.mark.parametrize("name", hosts.names())
def test_every_cpu_nic_and_disk_is_drawn_once(name: str, tmp_path: Path, draw: Draw) -> None:
    host = fresh(tmp_path / "root", name)
    picture = draw(host)
    shape = json.loads((hosts.FOLDER / f"{name}.json").read_text())["shape"]
    assert picture.cpus() == list(range(shape["sockets"] * shape["cores"] * shape["threads"]))
    whole = json.loads((hosts.FOLDER / f"{name}.json").read_text())
    for nic in whole.get("nics", ()):
        assert sum(text.text.startswith(f"NIC {nic['name']} ") for text in picture.texts) == 1
    drawn = [text.text.split()[0] for text in picture.texts if text.style == "disk-text"]
    assert sorted(drawn) == sorted(disk["name"] for disk in whole.get("disks", ()))


def test_a_picture_of_an_m4_10xlarge(tmp_path: Path, draw: Draw) -> None:
    shape = {"sockets": 2, "cores": 10, "threads": 2, "nodes": 2}
    picture = draw(host_of(tmp_path, "xen_hvm_4_sockets", shape=shape))
    assert picture.description.startswith("2 sockets, 2 NUMA nodes, 20 cores, 40 online CPUs, ")
    assert picture.cpus() == list(range(40))
    assert sum(box.style == "core" for box in picture.boxes) == 20
    assert [text.text for text in picture.texts if text.text.startswith("Socket")] == ["Socket 1 of 2", "Socket 2 of 2"]


def test_nics_and_disks_are_at_their_nodes(tmp_path: Path, draw: Draw) -> None:
    disks = [
        {"name": "nvme0n1", "device": "0000:00:04.0", "model": "Amazon Elastic Block Store", "node": 0},
        {"name": "nvme1n1", "device": "0000:81:00.0", "model": STORE, "node": 1},
        {"name": "nvme2n1", "device": "0000:82:00.0", "model": STORE, "node": 1},
        {"name": "md0", "driver": "", "members": ["nvme1n1", "nvme2n1"]},
        {"name": "md1", "driver": "", "members": ["nvme0n1", "nvme1n1"]},
        {"name": "nvme3n1", "device": "0000:83:00.0", "model": STORE, "node": -1},
    ]
    host = host_of(tmp_path, "metal", disks=disks)
    for captured in (False, True):
        picture = draw(host, captured=captured)
        assert picture.heading_around("NIC ens5")[:11] == "NUMA node 1"
        places = {name: picture.heading_around(name)[:11] for name in ("nvme0n1 EBS", "nvme1n1 instance")}
        assert places == {"nvme0n1 EBS": "NUMA node 0", "nvme1n1 instance": "NUMA node 1"}
        assert picture.heading_around("md0 on nvme1n1, nvme2n1")[:11] == "NUMA node 1"
        for name in ("md1 on nvme0n1, nvme1n1", "nvme3n1"):
            assert picture.heading_around(name) == "Devices that the kernel puts near no NUMA node"


def test_a_report_has_the_disks_of_a_host_whose_workload_plans_none(tmp_path: Path) -> None:
    result = forecast(fresh(tmp_path / "root", "metal"), validate("tune", OPTIONS, {"workload": ["web"]}))
    disks = {disk["name"]: disk["below"] for disk in result["topology"]["disks"]}
    assert disks == {"nvme0n1": [], "nvme1n1": [], "nvme2n1": [], "md0": ["nvme1n1", "nvme2n1"], "dm-0": ["md0"]}


def test_on_a_host_of_one_node_every_device_is_there(tmp_path: Path, draw: Draw) -> None:
    picture = draw(fresh(tmp_path / "root", "nitro"))
    assert {picture.heading_around(name)[:11] for name in ("NIC ens5", "nvme0n1", "nvme1n1")} == {"NUMA node 0"}


def test_a_virtio_disk_is_at_the_node_of_what_carries_it(tmp_path: Path, draw: Draw) -> None:
    disk = {"name": "vda", "driver": "virtio_blk", "device": "pci0000:00/0000:00:07.0/virtio2", "model": ""}
    files = {"/sys/devices/pci0000:00/0000:00:07.0/numa_node": "1\n"}
    host = host_of(tmp_path, "metal", files, disks=[disk])
    assert draw(host, captured=True).heading_around("vda virtio")[:11] == "NUMA node 1"


def test_who_does_the_work_of_the_network(tmp_path: Path, draw: Draw) -> None:
    queues = "/sys/class/net/ens5/queues"
    first = 25  # the interrupt of queue 0
    host = host_of(
        tmp_path,
        "metal",
        {
            **{f"/proc/irq/{first + queue}/effective_affinity_list": "4\n" for queue in range(4)},
            f"/proc/irq/{first + 4}/effective_affinity_list": "5\n",
            f"/proc/irq/{first + 5}/effective_affinity_list": "0\n",
            f"/proc/irq/{first + 6}/effective_affinity_list": "6-7\n",
            f"/proc/irq/{first + 7}/effective_affinity_list": "7\n",
            f"{queues}/rx-4/rps_cpus": "3005\n",
            f"{queues}/tx-5/xps_cpus": "0101\n",
        },
    )
    picture = draw(host)
    assert picture.queues() == [
        "queues 0-3 → CPU 4",
        "queue 4 → CPU 5 · helpers 0,2,12-13",
        "queue 5 → CPU 0 on node 0 · sends for 0,8",
        "queue 6 → one of CPUs 6-7",
        "queue 7 → CPU 7",
    ]
    assert picture.cpus("answers") == [0, 4, 5, 7]
    assert picture.cpus("may") == [6]
    assert picture.cpus("helps") == [2, 12, 13]
    assert "queue 4 → CPU 5 · helpers 0,2,12-13" in picture.description
    titles = [title.text for title in picture.root.iter("{http://www.w3.org/2000/svg}title")]
    assert "CPU 0: handles the interrupts of ens5 queue 5; helps with ens5 queue 4" in titles


def test_a_queue_that_any_cpu_may_serve(tmp_path: Path, draw: Draw) -> None:
    anywhere = {f"/proc/irq/{interrupt}/effective_affinity_list": "0-15\n" for interrupt in range(25, 33)}
    assert draw(host_of(tmp_path, "metal", anywhere)).queues() == ["queues 0-7 → any CPU"]


def test_a_nic_that_is_down_gives_no_cpu_work(tmp_path: Path, draw: Draw) -> None:
    picture = draw(host_of(tmp_path, "metal", {"/sys/class/net/ens5/flags": "0x1002\n"}))
    assert picture.cpus("idle") == list(range(16))
    assert any(text.text.endswith(", 8 queues, down, default route") for text in picture.texts)


def test_interrupts_of_unknown_cpus(tmp_path: Path, draw: Draw) -> None:
    host = fresh(tmp_path / "root", "metal")
    for path in (tmp_path / "root/proc/irq").glob("*/*_affinity_list"):
        path.unlink()
    assert draw(host).queues() == ["queues 0-7 → CPU not known"]


def test_the_tuning_is_drawn_below_as_the_plan_says(
    tmp_path: Path, draw: Draw, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = draw(fresh(tmp_path / "root", "nitro_big"), "--workload", "web", captured=True)
    assert [text.text for text in picture.texts if text.style == "title"][1:] == ["Now", "After web"]
    assert command.main(["plan", "--json", "--workload", "web", "--from", str(tmp_path / "host.json")]) == 0
    planned = json.loads(capsys.readouterr().out)["queue_map"]
    wanted = [(row["queue"], row["wanted"]["cpus"]) for nic in planned for row in nic["queues"]]
    assert len(wanted) == 8
    drawn = [re.match(r"queue (\d+) → CPU (\d+)", text) for text in picture.queues()[2:]]
    assert [(int(found[1]), found[2]) for found in drawn if found] == wanted


def test_offline_cpus_are_drawn_apart(tmp_path: Path, draw: Draw) -> None:
    picture = draw(fresh(tmp_path / "root", "nitro"), "--workload", "hpc", captured=True)
    assert picture.cpus() == sorted([*range(8), *range(8)]), "all CPUs in both states"
    assert picture.cpus("offline") == [4, 5, 6, 7], "the second threads, which this workload takes offline"


def test_caches_with_their_sizes(tmp_path: Path, draw: Draw) -> None:
    found: Dict[str, str] = {}
    for cpu in range(16):
        pair, group = cpu % 8, cpu % 8 // 2 * 2
        files = (f"1 Data 48K {pair},{pair + 8}", f"3 Unified 32768K {group}-{group + 1},{group + 8}-{group + 9}")
        found.update(caches(cpu, *files))
    picture = draw(host_of(tmp_path, "metal_amd", found, shape={"sockets": 1, "cores": 8, "threads": 2, "nodes": 1}))
    boxes = [box for box in picture.boxes if box.style == "cache"]
    names = [text for text in picture.texts if text.text == "L3 32 MiB"]
    assert len(boxes) == len(names) == 4
    inside = [
        sorted(
            int(text.text)
            for text in picture.texts
            if text.style == "idle-text" and box.holds(text.left, text.y, text.right, text.y)
        )
        for box in boxes[1:]
    ]
    assert inside == [[2, 3, 10, 11], [4, 5, 12, 13], [6, 7, 14, 15]]
    assert any(text.text == "L1d 48 KiB per core" for text in picture.texts)


def test_a_cache_of_several_nodes_says_so(tmp_path: Path, draw: Draw) -> None:
    found: Dict[str, str] = {}
    for cpu in range(16):
        found.update(caches(cpu, "3 Unified 32768K 0-15"))
    picture = draw(host_of(tmp_path, "metal", found))
    assert sum(text.text == "L3 32 MiB, one for 16 CPUs, of which these are 8" for text in picture.texts) == 2
    assert picture.cpus() == list(range(16))


def test_nodes_without_cpus_and_sockets_that_share_a_node(tmp_path: Path, draw: Draw) -> None:
    files = {f"{NODE}/node1/cpulist": "\n", f"{NODE}/node1/meminfo": "Node 1 MemTotal:  1048576 kB\n"}
    host = host_of(tmp_path, "metal", files, shape={"sockets": 2, "cores": 4, "threads": 2, "nodes": 1})
    picture = draw(host)
    assert picture.cpus() == list(range(16))
    assert picture.heading_around("NIC ens5") == "NUMA node 1, 1 GiB, no online CPUs"
    assert picture.heading_around("Socket 1 of 2")[:11] == "NUMA node 0"


def test_sets_that_contradict_each_other_draw_no_cpu_twice(tmp_path: Path, draw: Draw) -> None:
    files = {f"{NODE}/node1/cpulist": "0-1\n", f"{CPU}/cpu3/topology/thread_siblings_list": "2-5\n"}
    for cpu in range(16):
        files.update(caches(cpu, f"3 Unified 4096K 0-{cpu}"))
    picture = draw(host_of(tmp_path, "metal", files))
    assert picture.cpus() == list(range(16))
    assert picture.heading_around("NIC ens5")[:11] == "NUMA node 1"


def test_a_host_that_says_nothing(tmp_path: Path, draw: Draw) -> None:
    assert "The kernel lists no CPUs." in [text.text for text in draw(WritableHost(str(tmp_path))).texts]


def test_the_largest_host_stays_legible_and_small(tmp_path: Path, draw: Draw) -> None:
    picture = draw(largest(tmp_path), "--workload", "web", captured=True)
    assert picture.cpus() == sorted([*range(448), *range(448)])
    assert len(picture.source) < 300_000
    page = picture.boxes[0]
    assert page.width <= 1200
    assert page.height < 6000, "eight nodes twice, 370 pixels each"
    for text in picture.texts:
        assert page.holds(text.left, text.y, text.right, text.y), text
    cells = [box for box in picture.boxes if box.style in (*CPU_STYLES, "queue", "disk")]
    taken = {(box.left // 4 + x, box.top // 4 + y) for box in cells for x in range(2) for y in range(2)}
    assert len(taken) == 4 * len(cells), "boxes of CPUs, queues or disks lie on each other"


@pytest.mark.parametrize("captured", [False, True])
def test_hostile_names_are_text(captured: bool, tmp_path: Path, draw: Draw) -> None:
    model = "]]></style><script>alert(1)</script>&amp;\"'\x1b[2J\ufffe"
    files = {
        "/sys/devices/virtual/dmi/id/product_name": "<svg onload='alert(1)'>" + "x" * 500 + "\n",
        "/sys/devices/pci0000:00/0000:00:04.0/nvme/nvme0/model": model + "\n",
    }
    host = host_of(tmp_path, "metal", files)
    if not captured:
        (tmp_path / "root/sys/class/net/ens5").rename(tmp_path / "root/sys/class/net/<a&'\"\x07>")
    picture = draw(host, captured=captured)
    tags = {found.tag.rpartition("}")[2] for found in picture.root.iter()}
    assert tags == {"svg", "title", "desc", "style", "rect", "text", "g"}
    assert {key for found in picture.root.iter() for key in found.attrib} == {
        *("viewBox", "width", "height", "class", "role", "aria-labelledby", "id", "x", "y", "rx")
    }
    assert any("]]></style><script>alert(1)</script>&amp;\"'" in text.text for text in picture.texts)
    assert max(len(text.text) for text in picture.texts) <= 160
    assert picture.source.isascii()
    assert "\x1b" not in picture.source
    if not captured:
        assert any(text.text.startswith("NIC <a&'\">") for text in picture.texts)


def test_it_can_be_read_with_any_device(tmp_path: Path, draw: Draw) -> None:
    picture = draw(fresh(tmp_path / "root", "metal"))
    assert picture.root.get("role") == "img"
    ids = {found.get("id"): found.text for found in picture.root}
    names = [ids[name] for name in picture.root.get("aria-labelledby", "").split()]
    assert names == ["Topology of m5.metal · x86_64 · 5.14.0-503.11.1.el9_5.x86_64", picture.description]
    assert "NIC ens5 (ena) 0000:7e:00.0 at node 1, 8 queues, default route: queues 0-7 → CPU 0" in picture.description
    assert "@media (prefers-color-scheme: dark)" in picture.source
    used = {style for found in picture.root.iter() for style in (found.get("class") or "").split()}
    assert used - {"host", "middle"} <= {*LOOKS}


BELOW = {
    **{f"{style}-text": style for style in (*CPU_STYLES, "queue", "disk")},
    "title": "page",
    "muted": "cache",
    "heading": "nic",
    "text": "node",
}


@pytest.mark.parametrize("page", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("text", BELOW)
def test_text_has_contrast(text: str, page: int) -> None:
    """WCAG 2.1: relative luminance, and a ratio of at least 4.5."""

    def luminance(color: str) -> float:
        parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    dark, light = sorted(luminance(LOOKS[name].fill[page]) for name in (text, BELOW[text]))
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_it_needs_no_root_and_writes_nothing(tmp_path: Path, draw: Draw) -> None:
    host = fresh(tmp_path / "root", "nitro")
    host.root_user = False
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    draw(host)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_what_cannot_be_drawn_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    host = fresh(tmp_path / "root", "nitro")
    assert command.main(["topology", "--workload", "web"], host) == 1
    assert "name its file with --from" in capsys.readouterr().err
    assert command.main(["topology", "--from", str(tmp_path / "absent.json")], host) == 1
    assert "No such file" in capsys.readouterr().err
    assert command.main(["capture"], host) == 0
    (tmp_path / "host.json").write_text(capsys.readouterr().out)
    assert command.main(["topology", "--from", str(tmp_path / "host.json"), "--workload", "wep"]) == 1
    printed = capsys.readouterr()
    assert (printed.out, "wep" in printed.err) == ("", True)


def test_the_guide_says_what_a_screen_reader_says(tmp_path: Path, draw: Draw) -> None:
    guide = (Path(__file__).resolve().parents[3] / "docs" / "topology.md").read_text("utf-8")
    said = guide.split("```text\n")[1].split("```")[0]
    picture = draw(fresh(tmp_path / "root", "xen_hvm_4_sockets"), "--workload", "web", captured=True)
    assert said.split() == picture.description.split()


def test_a_long_title_is_inside_the_picture(tmp_path: Path, draw: Draw) -> None:
    """Its letters are larger and bold; what is outside of an SVG isn't shown."""
    release = "5.10.245-241.976.amzn2.x86_64-with-a-suffix-of-somebody"
    host = host_of(tmp_path, "nitro", {"/proc/sys/kernel/osrelease": f"{release}\n"})
    source = draw(host).source
    (page,) = re.findall(r'<svg [^>]*width="(\d+)"', source)
    titles = re.findall(r'<text class="title" x="(\d+)"[^>]*>([^<]+)<', source)
    assert release in " ".join(line for _left, line in titles)
    assert all(int(left) + len(line) * 0.61 * 16 <= int(page) for left, line in titles)
