#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# make-disk.sh UUID MIB ESP_MIB: in the current folder, root.tar becomes disk.qcow2 (one ext4 partition, and an empty
# one for UEFI behind it unless its size is 0), vmlinuz and initrd.img.
# fakeroot keeps owners and device nodes for those who aren't root; nothing is mounted.
set -eu
uuid=$1 mib=$2 esp_mib=$3 first_mib=1
root_mib=$((mib - first_mib - esp_mib))
truncate -s "${mib}M" disk.raw
{
    echo "start=${first_mib}MiB, size=${root_mib}MiB, type=83, bootable"
    [ "$esp_mib" = 0 ] || echo "type=ef"
} | sfdisk -q disk.raw
mkdir tree
fakeroot sh -eus "$uuid" "$root_mib" "$first_mib" <<'EOF'
tar -C tree -xf root.tar
mke2fs -q -F -t ext4 -U "$1" -d tree -E "offset=$(($3 * 1024 * 1024))" disk.raw "$(($2 * 1024))k"
EOF
cp tree/boot/vmlinuz-* vmlinuz
cp tree/boot/initrd.img-* initrd.img
rm -r tree root.tar
qemu-img convert -f raw -O qcow2 disk.raw disk.qcow2
rm disk.raw
