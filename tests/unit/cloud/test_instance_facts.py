# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module instance_facts: DMI decides whether the service is asked. On a small service of our own."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any, Dict

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.modules import instance_facts

from tests.support.lab.fake_imds import TOKEN, FakeImds


@pytest.mark.parametrize(("vendor", "status"), [("Amazon EC2", "ok"), ("QEMU", "not_ec2")])
def test_dmi_decides(tmp_path: Path, capsys: pytest.CaptureFixture[str], vendor: str, status: str) -> None:
    dmi = tmp_path / "sys/devices/virtual/dmi/id"
    dmi.mkdir(parents=True)
    for name, text in {
        "sys_vendor": vendor,
        "product_name": "m5.large",
        "board_asset_tag": "i-0123456789abcdef0",
    }.items():
        (dmi / name).write_text(text + "\n")
    server = FakeImds("127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    host = Host(str(tmp_path))
    host.metadata_service = ("127.0.0.1", server.server_port)
    with patch_module_args({}), pytest.raises(SystemExit):
        instance_facts.main(host)
    server.shutdown()
    server.server_close()
    output = capsys.readouterr().out
    result: Dict[str, Any] = json.loads(output)
    assert result["ansible_facts"]["nearmetal"]["instance"]["status"] == status
    assert bool(server.asked) == (status == "ok")
    assert TOKEN not in output
