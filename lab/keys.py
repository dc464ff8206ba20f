# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The key pair that opens every lab host, and the host key that every lab host shows: made once per cache."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from lab import cache, process
from lab.progress import Progress

HOST_ALIAS = "nearmetal-lab"


@dataclasses.dataclass(frozen=True)
class Keys:
    """Files in the cache."""

    identity: Path
    host_key: Path
    known_hosts: Path

    def public(self) -> bytes:
        """Both public halves: what an image is made with."""
        return b"".join(path.with_suffix(".pub").read_bytes() for path in (self.identity, self.host_key))


def obtain(progress: Progress) -> Keys:
    """The keys of this cache."""
    folder = cache.obtain("keys", "1", _make, progress)
    return Keys(folder / "identity", folder / "host", folder / "known_hosts")


def _make(folder: Path) -> None:
    for name in ("identity", "host"):
        process.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"nearmetal lab {name}", "-f", str(folder / name)],
            folder / "log",
        )
    (folder / "known_hosts").write_text(
        f"{HOST_ALIAS} {(folder / 'host.pub').read_text(encoding='ascii')}", encoding="ascii"
    )
