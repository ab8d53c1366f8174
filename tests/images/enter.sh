#!/usr/bin/env bash
# Runs a command of an image's file tree as a pod would:  unshare --mount --pid --fork enter.sh TREE CONFIG COMMAND [ARGUMENT...]
# The root is read-only, /tmp is empty, /etc/ashlar is the folder CONFIG, and the command is process 1 of an unprivileged user.
set -euo pipefail
tree=$1 config=$2
shift 2
mount --make-rprivate /
mount --bind "$tree" "$tree"
mount -t tmpfs -o mode=1777 tmpfs "$tree/tmp"
mount --bind "$config" "$tree/etc/ashlar"
mount -t proc -o ro proc "$tree/proc"
mount -t tmpfs tmpfs "$tree/dev"
for device in null zero random urandom; do
  touch "$tree/dev/$device"
  mount --bind "/dev/$device" "$tree/dev/$device"
done
mount -o remount,bind,ro "$tree"
exec env -i PATH=/usr/bin:/usr/sbin chroot --userspec=10001:10001 "$tree" "$@"
