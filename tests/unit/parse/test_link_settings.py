# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of NetworkManager's: of devices, and of hardware addresses, also odd ones."""

from __future__ import annotations

from typing import List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse.link_settings import dhclient, has_device, listed

ENS5 = {"Name": "ens5 enp0s5", "MACAddress": "02:ab:00:00:00:01", "Driver": "ena", "Type": "ether"}
HAVE = (
    *("ens5", "enp0s5", "*", "ens*;", " ens5 , ens6", "ens6;;ens5", "interface-name:ens5", "interface-name:=ens5"),
    *("interface-name:~ens*", "mac:02:AB:00:00:00:01", "02:ab:00:00:00:01", "driver:ena", "type:ethernet"),
    *("except:ens6", "except:", "except:type:wifi,except:driver:vif", "*,except:ens6", "except:ens6;ens5"),
)
HAVE_NOT = (
    *("", " ", ",;", "ens6", ":", "mac:", "interface-name:", "driver:", "type:wifi", "s390-subchannels:0.0.1"),
    *("except:ens5", "except:*", "*;except:ens5", "except:ens5;ens5", "[", "*" * 9, "e" * 5000, "driver:e?"),
)


@pytest.mark.parametrize("text", HAVE)
def test_a_list_has_the_interface(text: str) -> None:
    assert has_device(text, ENS5)


@pytest.mark.parametrize("text", HAVE_NOT)
def test_a_list_has_not(text: str) -> None:
    assert not has_device(text, ENS5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2;171;0;0;0;1;", ["02:ab:00:00:00:01"]),
        ("2;171;0;0;0;256;", ["2", "171", "0", "0", "0", "256"]),
        ("2;171;0;0;0;", ["2", "171", "0", "0", "0"]),
        ("\u00b2;1;1;1;1;1", ["\u00b2", "1", "1", "1", "1", "1"]),
        ("02:AB:00:00:00:01;", ["02:AB:00:00:00:01"]),
        (" ; ", []),
    ],
)
def test_six_numbers_are_a_hardware_address(text: str, words: List[str]) -> None:
    assert listed(text) == words


def test_what_dhclient_takes_for_another_interface_is_in_its_block_whatever_that_has_inside() -> None:
    text = 'interface "ens9" {\n  if exists x { append y "z"; }\n  supersede interface-mtu 1400;\n}\n'
    assert [(name, options) for name, options in dhclient(text) if options] == [("ens9", (("", "mtu", "1400"),))]
