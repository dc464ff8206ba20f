# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the command on the host says to people and to the systemd journal. PRIVATE to the collection."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress

from .._error import NearmetalError


def print_line(text: str) -> None:
    """One message on standard output. Raises NearmetalError when it can't be written, as on a full disk."""
    if sys.stdout is None:  # started without one
        raise NearmetalError("the output can't be written: there is no standard output")
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except OSError as error:
        # Python writes what is left when it ends, and would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno != errno.EPIPE:
            raise NearmetalError(f"the output can't be written: {os.strerror(error.errno or 0)}") from None


def print_error(text: str) -> None:
    """One message on standard error, whatever a file or an option brought into it."""
    from .._words import sentence

    if sys.stderr is not None:  # started without one
        with suppress(OSError):  # a full disk: the exit status says that there is an error
            sys.stderr.write(f"{sentence(text)}\n")
