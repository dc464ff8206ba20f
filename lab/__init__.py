# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab: real kernels in emulated EC2-like hosts, on this machine alone."""
