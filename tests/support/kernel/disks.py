# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks of the fake kernel, after the kernel's ABI/stable/sysfs-block.

Written apart from the engine. The kernel rounds times to its ticks and read-ahead to its pages, raises small
numbers of requests, refuses large ones, and sets that number again with each scheduler.
"""

from __future__ import annotations

import errno
import re
import shutil
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from tests.support.kernel.numbering import Numbering
from tests.support.kernel.udev import Udev

EBS, STORE = "Amazon Elastic Block Store", "Amazon EC2 NVMe Instance Storage"
DEFAULTS: Dict[str, Dict[str, Optional[str]]] = {
    "nvme": {"scheduler": "[none] mq-deadline", "io_timeout": "30000", "nr_requests": "1023", "nr_tags": "1023"},
    "vbd": {"scheduler": "[mq-deadline] none", "io_timeout": None, "nr_requests": "64", "nr_tags": "32"},
    "virtio_blk": {"scheduler": "[none] mq-deadline", "io_timeout": None, "nr_requests": "256", "nr_tags": "256"},
    "sd": {"scheduler": "[mq-deadline] none", "io_timeout": "30000", "nr_requests": "64", "nr_tags": "32"},
    "": {"scheduler": "none", "io_timeout": None, "nr_requests": "128", "nr_tags": None},
}
_COMMON = {
    "read_ahead_kb": "128",
    "nomerges": "0",
    "rq_affinity": "1",
    "zoned": "none",
    "max_sectors_kb": "1280",
    "max_hw_sectors_kb": "2048",
    "write_cache": "write back",
}
_QUEUE = re.compile(r"/sys/block/([^/]+)/queue/([a-z_]+)")
_LEAST, _MOST = 4, 2048


def disk_files(disks: List[Dict[str, Any]]) -> Dict[str, str]:
    """Path → text of these disks: name, driver, model, device, node, members, mount, partitions, and any queue file."""
    files: Dict[str, str] = {}
    mounts = ["21 1 0:20 / /proc rw,nosuid - proc proc rw"]
    for minor, disk in enumerate(disks):
        folder = _folder(disk)
        files.update(dict(_disk_files(disk, folder)))
        if disk.get("driver", "nvme") not in ("", "vbd"):  # Linux 5.15 and newer number them
            files[f"{folder}/diskseq"] = f"{disk.get('index', minor) + 1}\n"
        for part, suffix in enumerate(("", *disk.get("partitions", ()))):
            node = disk["name"] + suffix
            place = folder + (f"/{node}" if suffix else "")
            number = f"259:{16 * minor + part}"
            files[f"/sys/class/block/{node}"] = f"-> ../../{place[len('/sys/') :]}"
            files[f"/sys/dev/block/{number}"] = f"-> ../../{place[len('/sys/') :]}"
            files[f"{place}/dev"] = f"{number}\n"
            if suffix == disk.get("mounted", "") and "mount" in disk:
                mounts.append(f"{30 + minor} 1 {number} / {disk['mount']} rw - xfs /dev/{node} rw")
    files["/proc/self/mountinfo"] = "\n".join(mounts) + "\n"
    if any(disk.get("driver", "nvme") == "nvme" for disk in disks):
        files["/sys/module/nvme_core/parameters/io_timeout"] = "30\n"
        files["/sys/module/nvme/parameters/poll_queues"] = "0\n"
    return files


def _folder(disk: Dict[str, Any]) -> str:
    name, device, driver = disk["name"], disk.get("device", ""), disk.get("driver", "nvme")
    if driver == "nvme":
        return f"/sys/devices/pci0000:00/{device}/nvme/{name.split('n1')[0].split('c')[0]}/{name}"
    if driver == "head":
        return f"/sys/devices/virtual/nvme-subsystem/nvme-subsys{name[4]}/{name}"
    return f"/sys/devices/{device}/block/{name}" if driver else f"/sys/devices/virtual/block/{name}"


def _disk_files(disk: Dict[str, Any], folder: str) -> Iterator[Tuple[str, str]]:
    name, driver = disk["name"], disk.get("driver", "nvme")
    yield f"/sys/block/{name}", f"-> ../{folder[len('/sys/') :]}"
    above = folder.rsplit("/", 1)[0]
    if driver == "nvme":
        yield f"{folder}/device", f"-> ../../{above.rsplit('/', 1)[1]}"
        yield f"{above}/device", f"-> ../../../{disk['device']}"
        yield f"{above}/model", f"{disk['model']:<40}\n"
        yield f"{folder}/wwid", f"nvme.1d0f-{disk['device'].encode().hex()}-00000001\n"
        yield f"/sys/devices/pci0000:00/{disk['device']}/driver", "-> ../../../bus/pci/drivers/nvme"
        if "node" in disk:
            yield f"/sys/devices/pci0000:00/{disk['device']}/numa_node", f"{disk['node']}\n"
    elif driver == "head":
        yield f"{folder}/device", f"-> ../../{above.rsplit('/', 1)[1]}"
        yield f"{above}/model", f"{disk['model']:<40}\n"
    elif driver:
        yield f"{folder}/device", f"-> ../../../{disk['device'].rsplit('/', 1)[-1]}"
        yield f"/sys/devices/{disk['device']}/driver", f"-> ../../bus/drivers/{driver}"
    for member in disk.get("members", ()):
        yield f"{folder}/slaves/{member}", f"-> ../../../../../class/block/{member}"
    values = {**_COMMON, **DEFAULTS.get(driver, DEFAULTS[""]), **disk.get("queue", {})}
    tags = values.pop("nr_tags")
    for attribute, value in values.items():
        if value is not None:
            yield f"{folder}/queue/{attribute}", f"{value}\n"
    if tags is not None:
        # With one hardware queue the kernel schedules, with more it doesn't.
        for queue in range(1 if str(values["scheduler"]).startswith("[mq-deadline]") else 2):
            yield f"{folder}/mq/{queue}/nr_tags", f"{tags}\n"


class Disks:
    """The disks below `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.hz, self.page_kib = 250, 4
        self.numbers = Numbering(root / "sys/block", "diskseq")
        self.modules: Tuple[str, ...] = ("kyber", "bfq")

    def take(self, path: str, text: str) -> bool:
        """Carry out a write; whether the file belongs to this fake. Raises OSError as the kernel would."""
        match = _QUEUE.fullmatch(path)
        if not match:
            return False
        file, word = self._root / path.lstrip("/"), text.strip()
        if match[2] == "scheduler":
            self._schedule(file, word)
            return True
        if match[2] == "write_cache":
            if word not in ("write back", "write through"):
                raise OSError(errno.EINVAL, "Invalid argument", path)
            file.write_text(f"{word}\n")
            return True
        if not (word.isdigit() and int(word) < 1 << 32):
            raise OSError(errno.EINVAL, "Invalid argument", path)
        number = int(word)
        if match[2] == "io_timeout":
            number = self._timeout(number, path)
        elif match[2] == "nr_requests":
            number = self._requests(file, number)
        elif match[2] == "read_ahead_kb":
            number -= number % self.page_kib
        elif match[2] == "max_sectors_kb":
            if not self.page_kib <= number <= int((file.parent / "max_hw_sectors_kb").read_text()):
                raise OSError(errno.EINVAL, "Invalid argument", path)
        elif match[2] == "nomerges":
            number = 2 if number == 2 else min(number, 1)
        elif match[2] == "rq_affinity":
            number = number if number <= 2 else int(file.read_text())
        else:
            raise OSError(errno.EACCES, "Permission denied", path)
        file.write_text(f"{number}\n")
        return True

    def _timeout(self, milliseconds: int, path: str) -> int:
        """msecs_to_jiffies() to an unsigned int, and back by jiffies_to_msecs()."""
        if milliseconds == 0:
            raise OSError(errno.EINVAL, "Invalid argument", path)
        ticks = (milliseconds * self.hz + 999) // 1000
        if milliseconds > 0x7FFFFFFF:
            ticks = ((1 << 62) - 2) & 0xFFFFFFFF  # MAX_JIFFY_OFFSET
        return (ticks * 1000 + self.hz - 1) // self.hz & 0xFFFFFFFF

    def _requests(self, file: Path, number: int) -> int:
        tags = file.parent.parent / "mq/0/nr_tags"
        unscheduled = "[none]" in (file.parent / "scheduler").read_text()
        if not tags.exists() or number > (int(tags.read_text()) if unscheduled else _MOST):
            raise OSError(errno.EINVAL, "Invalid argument", str(file))
        return max(number, _LEAST)

    def _schedule(self, file: Path, word: str) -> None:
        offered = [word.strip("[]") for word in file.read_text().split()]
        if word not in offered and word not in self.modules:
            raise OSError(errno.EINVAL, "Invalid argument", str(file))
        if f"[{word}]" in file.read_text():
            return
        file.write_text(
            " ".join(f"[{name}]" if name == word else name for name in dict.fromkeys([*offered, word])) + "\n"
        )
        depth = int((file.parent.parent / "mq/0/nr_tags").read_text())
        (file.parent / "nr_requests").write_text(f"{depth if word == 'none' else 2 * min(depth, 128)}\n")

    def boot(self) -> None:
        """Send udev an event for each disk."""
        self.numbers.boot()
        for link in sorted((self._root / "sys/block").glob("*")):
            self.udev(link.name, "add")

    def attach(self, disk: Dict[str, Any]) -> None:
        """Attach a disk and send udev its event."""
        from tests.support.hosts import lay_out

        files = disk_files([disk])
        del files["/proc/self/mountinfo"]
        self.numbers.count()
        lay_out(self._root, files)
        self.numbers.register(disk["name"])
        self.udev(disk["name"], "add")

    def detach(self, name: str) -> None:
        """Detach a disk."""
        link = self._root / "sys/block" / name
        shutil.rmtree(link.resolve())
        link.unlink()
        (self._root / "sys/class/block" / name).unlink()

    def udev(self, name: str, action: str) -> None:
        """Apply the udev rules to an event of a disk."""
        Udev(self._root, self.take).event("block", name, action)
