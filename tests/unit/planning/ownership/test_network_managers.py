# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom a network manager's file is for: by every key, in every folder, against the managers' own records."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.link_files import settings

from tests.support.hosts import lay_out

PLACE = "0000:00:05.0"
NIC = {
    "/sys/class/net/ens5/device": f"-> ../../../devices/pci0000:00/{PLACE}",
    f"/sys/devices/pci0000:00/{PLACE}/driver": "-> ../../../bus/pci/drivers/ena",
    "/sys/class/net/ens5/address": "02:ab:00:00:00:01\n",
    "/sys/class/net/ens5/ifindex": "2\n",
}
RECORD = "/run/udev/data/n2"
NETWORKD, LINK = "/etc/systemd/network/10-x.network", "/etc/systemd/network/10-x.link"
KEYFILE = "/etc/NetworkManager/system-connections/x.nmconnection"
SUSE = "/etc/sysconfig/network"
IFCFG = "/etc/sysconfig/network-scripts/ifcfg-x"
PLAN = "/etc/netplan/50-cloud-init.yaml"
DHCLIENT = "/etc/dhcp/dhclient.conf"
MTU: Mapping[str, Tuple[Dict[str, str], Optional[str]]] = {
    "dhclient": ({DHCLIENT: "timeout 60;\nsupersede interface-mtu 1400;\n"}, "1400"),
    "dhclient's default": ({DHCLIENT: "default interface-mtu 1400;\n#supersede interface-mtu 1400;\n"}, None),
    "dhclient for it": ({DHCLIENT: 'interface "ens5" {\n  supersede interface-mtu 1400;\n}\n'}, "1400"),
    "dhclient for another": ({DHCLIENT: 'interface "ens9" {\n  supersede interface-mtu 1400;\n}\n'}, None),
    "dhclient by its name": ({"/etc/dhcp/dhclient-ens5.conf": "supersede interface-mtu 1400;\n"}, "1400"),
    "profile put aside": ({f"{KEYFILE}~": "[connection]\ntype=ethernet\n[ethernet]\nmtu=1400\n"}, None),
    "profile of another name in /run": ({f"/run{KEYFILE[4:-13]}": "[connection]\n[ethernet]\nmtu=1400\n"}, None),
    "profile of a device that udev takes away": (
        {KEYFILE: "[connection]\ntype=ethernet\n[ethernet]\nmtu=1400\n", RECORD: "E:NM_UNMANAGED=1\n"},
        None,
    ),
    "ifcfg with a comment": ({IFCFG: "DEVICE='ens5' # first\nMTU='1400' # tunnel\n"}, "1400"),
    "ifcfg with a script": (
        {
            f"{SUSE}/ifcfg-ens5": "POST_UP_SCRIPT='compat:suse:mtu.sh'\n",
            f"{SUSE}/scripts/mtu.sh": "#!/bin/sh\nip link set dev $1 mtu 1400\n",
        },
        "1400",
    ),
    # systemd.network(5)
    "network by name": ({NETWORKD: "[Match]\nName=ens5\n[Link]\nMTUBytes=1400\n"}, "1400"),
    "network by glob": ({NETWORKD: "[Match]\nName=en*\n[Link]\nMTUBytes=1400\n"}, "1400"),
    "network by another glob": ({NETWORKD: "[Match]\nName=eth*\n[Link]\nMTUBytes=1400\n"}, None),
    "network by MAC": ({NETWORKD: "[Match]\nMACAddress=02:AB:00:00:00:01\n[Link]\nMTUBytes=1400\n"}, "1400"),
    "network by permanent MAC": (
        {NETWORKD: "[Match]\nPermanentMACAddress=02:ab:00:00:00:01\n[Link]\nMTUBytes=1400\n"},
        "1400",
    ),
    "network by driver": ({NETWORKD: "[Match]\nDriver=ixgbevf ena\n[Link]\nMTUBytes=1400\n"}, "1400"),
    "network by type": ({NETWORKD: "[Match]\nType=ether\n[Link]\nMTUBytes=1400\n"}, "1400"),
    "network of bonds": ({NETWORKD: "[Match]\nKind=bond\n[Link]\nMTUBytes=1400\n"}, None),
    "network by an alternative name": (
        {NETWORKD: "[Match]\nName=enp0s5\n[Link]\nMTUBytes=1400\n", RECORD: "E:ID_NET_NAME_PATH=enp0s5\n"},
        "1400",
    ),
    "network that networkd didn't take": (
        {
            NETWORKD: "[Match]\nName=ens5\nProperty=X\n[Link]\nMTUBytes=1400\n",
            "/etc/systemd/network/05-y.network": "[Match]\nOriginalName=eth0\n[Link]\nMTUBytes=1300\n",
            "/run/systemd/netif/links/2": f"NETWORK_FILE={NETWORKD}\n",
        },
        "1400",
    ),
    "network in /usr/local": (
        {f"/usr/local/lib/{NETWORKD[5:]}": "[Match]\nName=ens5\n[Link]\nMTUBytes=1400\n"},
        "1400",
    ),
    "network masked": ({f"/usr/lib/{NETWORKD[5:]}": "[Match]\nName=ens5\n[Link]\nMTUBytes=1400\n", NETWORKD: ""}, None),
    "network in kibibytes": ({NETWORKD: "[Match]\nName=ens5\n[Link]\nMTUBytes=2K\n"}, "2048"),
    "network with a fraction": ({NETWORKD: "[Match]\nName=ens5\n[Link]\nMTUBytes=1.5K\n"}, "1536"),
    "network taken back in a drop-in": (
        {NETWORKD: "[Match]\nName=ens5\n[Link]\nMTUBytes=1400\n", f"{NETWORKD}.d/a.conf": "[Link]\nMTUBytes=1450\n"},
        "1450",
    ),
    "network of a route": ({NETWORKD: "[Match]\nName=ens5\n[Route]\nMTUBytes=1400\n"}, None),
    # systemd.link(5)
    "link by the kernel's name": ({LINK: "[Match]\nOriginalName=eth0\n[Link]\nMTUBytes=1400\n"}, "1400"),
    "link that udev took": (
        {LINK: "[Match]\nOriginalName=eth3\n[Link]\nMTUBytes=1400\n", RECORD: f"E:ID_NET_LINK_FILE={LINK}\n"},
        "1400",
    ),
    "link that udev didn't take": (
        {
            LINK: "[Match]\nOriginalName=ens5\n[Link]\nMTUBytes=1400\n",
            RECORD: "E:ID_NET_LINK_FILE=/usr/lib/systemd/network/99-default.link\n",
        },
        None,
    ),
    "link that was written since": (
        {
            LINK: "[Match]\nMACAddress=02:ab:00:00:00:01\n[Link]\nMTUBytes=1400\n",
            RECORD: "E:ID_NET_LINK_FILE=/usr/lib/systemd/network/99-default.link\n",
        },
        "1400",
    ),
    "link by path": (
        {LINK: "[Match]\nPath=pci-0000:00:06.0\n[Link]\nMTUBytes=1400\n", RECORD: "E:ID_PATH=pci-0000:00:05.0\n"},
        None,
    ),
    # NetworkManager
    "profile by name": ({KEYFILE: "[connection]\ninterface-name=ens5\n[ethernet]\nmtu=1400\n"}, "1400"),
    "profile by MAC": (
        {KEYFILE: "[connection]\ntype=ethernet\n[ethernet]\nmac-address=02:AB:00:00:00:01\nmtu=1400\n"},
        "1400",
    ),
    "profile by another MAC": ({KEYFILE: "[ethernet]\nmac-address=02:AB:00:00:00:02\nmtu=1400\n"}, None),
    "profile for any": ({KEYFILE: "[connection]\ntype=802-3-ethernet\n[802-3-ethernet]\nmtu=1400\n"}, "1400"),
    "profile of another type": ({KEYFILE: "[connection]\ntype=wifi\n[ethernet]\nmtu=1400\n"}, None),
    "profile by globs": ({KEYFILE: "[match]\ninterface-name=en*;!ens6;\n[ethernet]\nmtu=1400\n"}, "1400"),
    "profile by driver": ({KEYFILE: "[match]\ndriver=vif;\n[ethernet]\nmtu=1400\n"}, None),
    "profile that says automatic": ({KEYFILE: "[connection]\ninterface-name=ens5\n[ethernet]\nmtu=0\n"}, None),
    "profile in use": (
        {
            KEYFILE: "[connection]\nuuid=aa\n[ethernet]\nmtu=1400\n",
            "/run/NetworkManager/system-connections/y.nmconnection": "[connection]\nuuid=bb\ninterface-name=ens5\n"
            "[ethernet]\nmtu=1300\n",
            "/run/NetworkManager/devices/2": "[device]\nconnection-uuid=aa\n",
        },
        "1400",
    ),
    "one for this interface before one for any": (
        {
            KEYFILE: "[ethernet]\nmtu=1400\n",
            f"{KEYFILE[:-14]}a.nmconnection": "[connection]\ninterface-name=ens5\n[ethernet]\nmtu=1300\n",
        },
        "1300",
    ),
    "a default of NetworkManager": (
        {"/etc/NetworkManager/conf.d/x.conf": "[connection-mtu]\nethernet.mtu=1400\n"},
        "1400",
    ),
    # ifcfg
    "ifcfg by device": ({IFCFG: 'NAME="x"\nDEVICE="ens5"\nMTU="1400"\n'}, "1400"),
    "ifcfg by HWADDR": ({IFCFG: "HWADDR=02:AB:00:00:00:01\nMTU=1400\n"}, "1400"),
    "ifcfg of another": ({f"{IFCFG[:-1]}ens5": "DEVICE=ens6\nMTU=1400\n"}, None),
    "ifcfg by its own name": ({f"{IFCFG[:-1]}ens5": "MTU='1400'\n"}, "1400"),
    "ifcfg of SUSE": ({"/etc/sysconfig/network/ifcfg-ens5": "STARTMODE=auto\nMTU=1400\n"}, "1400"),
    "a copy of ifcfg": ({f"{IFCFG}.bak": "DEVICE=ens5\nMTU=1400\n"}, None),
    # ifupdown
    "stanza": ({"/etc/network/interfaces": "auto ens5\niface ens5 inet dhcp\n\tmtu 1400\n"}, "1400"),
    "stanza with a command": (
        {"/etc/network/interfaces": "iface ens5 inet dhcp\n  post-up ip link set $IFACE mtu 1400\n"},
        "1400",
    ),
    "stanza of a pattern": ({"/etc/network/interfaces.d/x": "iface ens* inet dhcp\n  mtu 1400\n"}, "1400"),
    "stanza of another": (
        {"/etc/network/interfaces": "iface ens6 inet dhcp\n  mtu 1400\niface ens5 inet dhcp\n"},
        None,
    ),
    # netplan, before it has written its managers' files
    "netplan by name": (
        {PLAN: "network:\n  version: 2\n  ethernets:\n    ens5:\n      dhcp4: true\n      mtu: 1400\n"},
        "1400",
    ),
    "netplan by MAC": (
        {
            PLAN: 'network:\n  ethernets:\n    lan:\n      match:\n        macaddress: "02:AB:00:00:00:01"\n'
            "      mtu: 1400 # x\n"
        },
        "1400",
    ),
    "netplan in a line": ({PLAN: "network:\n  ethernets:\n    lan: {match: {driver: ena}, mtu: 1400}\n"}, "1400"),
    "netplan of another": (
        {PLAN: "network:\n  ethernets:\n    lan:\n      match: {name: eth*}\n      mtu: 1400\n"},
        None,
    ),
}
OTHERS: Mapping[str, Tuple[Dict[str, str], Dict[str, Any]]] = {
    "udev": (
        {
            LINK: "[Match]\nDriver=ena\n[Link]\nRxBufferSize=4096\nTxBufferSize=max\nCombinedChannels=4\n"
            "TransmitQueueLength=2000\n"
            "RxCoalesceSec=64us\nUseAdaptiveRxCoalesce=no\nGenericReceiveOffload=yes\n"
        },
        {
            "network.rings/rx": "4096",
            "network.rings/tx": None,
            "network.queues": "4",
            "network.txqueuelen": "2000",
            "network.coalesce/rx_usecs": "64",
            "network.coalesce/adaptive_rx": "0",
            "network.offloads/rx-gro": "1",
        },
    ),
    "NetworkManager": (
        {
            KEYFILE: "[ethtool]\nring-rx=0x1000\nring-tx=512\ncoalesce-rx-usecs=32\ncoalesce-adaptive-rx=1\n"
            "feature-tso=off\n[link]\ntx-queue-length=500\n"
        },
        {
            "network.rings/rx": "4096",
            "network.rings/tx": "512",
            "network.coalesce/rx_usecs": "32",
            "network.coalesce/adaptive_rx": "1",
            "network.offloads/tx-tcp-segmentation": "0",
            "network.offloads/tx-tcp6-segmentation": "0",
            "network.txqueuelen": "500",
        },
    ),
    "ifcfg": (
        {
            IFCFG: "DEVICE=ens5\n"
            'ETHTOOL_OPTS="-G ${DEVICE} rx 4096 tx 1024; -K ${DEVICE} gro off; -C ens5 rx-usecs 30"\n'
        },
        {
            "network.rings/rx": "4096",
            "network.rings/tx": "1024",
            "network.offloads/rx-gro": "0",
            "network.coalesce/rx_usecs": "30",
        },
    ),
    "ifcfg of SUSE": (
        {f"{SUSE}/ifcfg-ens5": "MTU=''\nETHTOOL_OPTIONS_ring='-G iface rx 4096'\n"},
        {"network.rings/rx": "4096"},
    ),
    "ifupdown": (
        {
            "/etc/network/interfaces": "iface ens5 inet dhcp\n  hardware-dma-ring-rx 4096\n  offload-gro off\n"
            "  up ethtool -L $IFACE combined 2\n"
        },
        {"network.rings/rx": "4096", "network.offloads/rx-gro": "0", "network.queues": "2"},
    ),
}


@pytest.mark.parametrize("name", MTU)
def test_whose_mtu_it_is(name: str, tmp_path: Path) -> None:
    files, mtu = MTU[name]
    lay_out(tmp_path, {**NIC, **files})
    found = settings(Host(str(tmp_path)), networkd=True)[PLACE]
    assert found.get("network.mtu", (None, None))[1] == mtu
    if mtu is not None:
        assert found["network.mtu"][0].partition(".d/")[0] in "".join(files)


@pytest.mark.parametrize("name", OTHERS)
def test_rings_queues_and_the_like(name: str, tmp_path: Path) -> None:
    files, expected = OTHERS[name]
    lay_out(tmp_path, {**NIC, **files})
    found = settings(Host(str(tmp_path)), networkd=True)[PLACE]
    assert {setting: value for setting, (_file, value) in found.items()} == expected


@pytest.mark.parametrize("list_of", ["interface-name=;", "mac-address=\u00b2", f"mac-address={'9' * 5000}"])
def test_a_profile_with_an_odd_list_is_for_no_interface(list_of: str, tmp_path: Path) -> None:
    nic = {
        "/sys/class/net/ens5/device": "-> ../../../0000:00:05.0",
        "/sys/class/net/ens5/address": "02:00:00:00:00:01\n",
    }
    profile = f"[ethernet]\nmtu=1400\n{list_of}\n[connection]\n{list_of}\n"
    lay_out(tmp_path, {**nic, "/etc/NetworkManager/system-connections/a": profile})
    assert settings(Host(str(tmp_path)), False) == {"0000:00:05.0": {}}
