# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running a tool of the distribution. PRIVATE to the collection.

The agent has no AnsibleModule, whose run_command would serve a module.
"""

from __future__ import annotations

import asyncio
from typing import Mapping, Optional, Sequence, Tuple


def to_end(argv: Sequence[str], environment: Mapping[str, str], timeout: float) -> Tuple[Optional[int], bytes, bytes]:
    """Exit code, output and errors of a program; TimeoutError when it doesn't end in so many seconds."""
    return asyncio.run(_to_end(argv, environment, timeout))


async def _to_end(
    argv: Sequence[str], environment: Mapping[str, str], timeout: float
) -> Tuple[Optional[int], bytes, bytes]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *argv, env=dict(environment), stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), timeout)
    except asyncio.TimeoutError:
        process.kill()
        await process.wait()
        raise TimeoutError from None
    return process.returncode, out, err
