#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# emulated.sh CPU CMD...: run CMD while this machine's kernel runs programs of CPU by QEMU. As root, in a mount
# namespace of its own; what it registered with the kernel is gone afterwards.
set -eu
cpu=$1
shift
known=/proc/sys/fs/binfmt_misc
if ! [ -e "$known/register" ] && ! mount -t binfmt_misc binfmt_misc "$known"; then
    echo "this kernel can't be told to run programs of $cpu: binfmt_misc can't be mounted here, as in many containers" >&2
    exit 1
fi
if ! [ -e "$known/qemu-$cpu" ]; then
    cat "/usr/lib/binfmt.d/qemu-$cpu.conf" > "$known/register"
    trap 'echo -1 > "$known/qemu-$cpu"' EXIT
fi
"$@"
