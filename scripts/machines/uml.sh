#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# uml.sh NAME SECONDS RUN FILE...: the same as boot.sh, in user-mode Linux. UML= is the kernel's
# name for own-kernel.sh, "uml" by default. APPEND= is more kernel parameters. Logs
# are in build/uml/NAME.
#
# The files of the serial lines are opened for appending, because guest.sh empties them.
. "$(dirname "$0")/../lib.sh"

logs=$top/build/uml/$1 limit=$2 mem=${MEM:-512}
shift 2
mkdir -p "$logs"

# room DIR: how many MiB are free where DIR is
room() { df --output=avail -B 1M "$1" | tail -n 1 | tr -d ' '; }

# UML's memory is a file in TMPDIR. On a disk the host writes it back now and then, and the next
# write to each page is a fault that costs more than a timer. So it is in the host's memory, unless
# /dev/shm is missing, noexec, or too small for this machine and some others beside it.
in_memory() {
	[ "$(findmnt -nf -o FSTYPE /dev/shm)" = tmpfs ] &&
		! findmnt -nf -o OPTIONS /dev/shm | grep -qw noexec &&
		[ "$(room /dev/shm)" -ge $((4 * mem)) ] &&
		[ "$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)" -ge $((4 * mem)) ]
}

export TMPDIR=$logs
! in_memory || TMPDIR=/dev/shm
[ "$(room "$TMPDIR")" -ge "$mem" ] ||
	die "a machine's memory is a file in $TMPDIR: $mem MiB, and there is room for $(room "$TMPDIR")"
kernel=$("$top/scripts/kernels/own-kernel.sh" "${UML:-uml}")
"$top/scripts/machines/initramfs.sh" "$logs/initramfs" "$@"
exec 3>>"$logs/console" 4>>"$logs/result" 5>>"$logs/report"
export NEVER_RAN="user-mode Linux ran no program on this host"
# shellcheck disable=SC2086 # parameters are words
exec "$top/scripts/machines/guest.sh" "$limit" "$logs" "$kernel/linux" \
	mem="${mem}M" uml_dir="$logs" initrd="$logs/initramfs" con=null ssl=null \
	ssl0=null,fd:3 ssl1=null,fd:4 ssl2=null,fd:5 console=ttyS0 \
	panic=-1 oops=panic panic_on_warn=1 slub_debug=U ${APPEND:-}
