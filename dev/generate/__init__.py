# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generates roles, the tables of their READMEs and common parts of RETURN from the modules' documentation."""
