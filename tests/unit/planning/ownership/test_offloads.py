# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who sets an offload is named, whatever the offload is called there."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import tune

from tests.support.fresh_host import booted, routed
from tests.support.hosts import files_of, lay_out

Call = Callable[..., Dict[str, Any]]
TUNED = {"/sys/fs/cgroup/system.slice/tuned.service/cgroup.procs": "812\n", "/etc/tuned/active_profile": "site\n"}
PROFILE, KEYFILE = "/etc/tuned/site/tuned.conf", "/etc/NetworkManager/system-connections/x.nmconnection"
OFFLOADS: Dict[str, Tuple[Dict[str, str], str]] = {
    "udev": ({"/etc/systemd/network/10-x.link": "[Match]\nDriver=ena\n[Link]\nTCPSegmentationOffload=0\n"}, ""),
    "NetworkManager": ({KEYFILE: "[connection]\ntype=ethernet\n[ethtool]\nfeature-tso=false\n"}, KEYFILE),
    "a script": ({"/etc/rc.local": "#!/bin/sh\nethtool -K ens5 tso off\n"}, "/etc/rc.local"),
    "a script, in full": (
        {"/etc/rc.local": "#!/bin/sh\nethtool -K ens5 tcp-segmentation-offload off\n"},
        "/etc/rc.local",
    ),
    "a script, in the kernel's words": (
        {"/etc/rc.local": "#!/bin/sh\nethtool -K ens5 tx-tcp-segmentation off\n"},
        "/etc/rc.local",
    ),
    "tuned": ({**TUNED, PROFILE: "[net]\nfeatures=tso off, gro on\n"}, "tuned"),
    "tuned, as wanted": ({**TUNED, PROFILE: "[net]\nfeatures=tso on gro off\n"}, "nobody"),
}


@pytest.mark.parametrize("now", [False, True])
@pytest.mark.parametrize("who", OFFLOADS)
def test_an_offload_has_an_owner_by_each_of_its_names(who: str, now: bool, tmp_path: Path, call: Call) -> None:
    files, owner = OFFLOADS[who]
    host = booted(tmp_path, routed(files_of("nitro")))
    lay_out(tmp_path, files)
    host.nics.features = {"ens5": {"tx-tcp-segmentation": now}}
    result = call(tune.main, host, check=True, concerns={"network_stack": {"offloads": {"tso": "enabled"}}})
    named = [finding["owner"] for finding in result["findings"] if finding["status"] == "refused"]
    assert named == ([] if owner == "nobody" else [owner or next(iter(files))])
