# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask the running irqbalance by its own socket which interrupts it moves; prints their names."""

import glob
import os
import pathlib
import re
import socket
import struct

with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(glob.glob("/run/irqbalance/irqbalance*.sock")[0])
    credentials = struct.pack("3i", os.getpid(), os.getuid(), os.getgid())
    connection.sendmsg([b"stats"], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, credentials)])
    for number in re.findall(r"IRQ (\d+) ", connection.recv(65536).decode()):
        print(pathlib.Path(f"/sys/kernel/irq/{number}/actions").read_text().strip())
