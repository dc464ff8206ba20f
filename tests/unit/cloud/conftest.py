# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the cloud tests run a module: its real main(), in this process, with options as Ansible passes them."""

from __future__ import annotations

import importlib
import json
from typing import Any, Callable, Dict

import pytest
from ansible.module_utils.testing import patch_module_args

Run = Callable[..., Dict[str, Any]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """run("ebs", check=True, instance_ids=[…]) gives what the module prints; failure is `failed: True`."""

    def module(name: str, check: bool = False, **options: Any) -> Dict[str, Any]:
        main = importlib.import_module(f"ansible_collections.nearmetal.ec2.plugins.modules.{name}").main
        capsys.readouterr()
        with patch_module_args({**options, "_ansible_check_mode": check, "_ansible_diff": True}), pytest.raises(
            SystemExit
        ):
            main()
        result: Dict[str, Any] = json.loads(capsys.readouterr().out)
        result.pop("invocation", None)
        return result

    return module
