# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Print the judgment of a record; exit status 0 if nothing speaks against it and its report. PRIVATE."""

from __future__ import annotations

import sys

from ....module_utils._error import NearmetalError
from . import judge

if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit("usage: judge RECORD [REPORT]: nearmetal-report/prove/<host>-<time>-<seed>.jsonl and .json")
    try:
        judged = judge(*sys.argv[1:])
    except NearmetalError as error:
        raise SystemExit(f"judge: {error}") from None
    print("\n  ".join(judged["lines"]))
    raise SystemExit(not judged["agrees"])
