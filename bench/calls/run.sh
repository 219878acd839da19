#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# run.sh: where the instructions of a single call go, by function; `make bench-calls`. calls.c says
# which calls, and profile.c how they are counted.
#
#	LEAST=n	functions that take fewer instructions are one row (10)
#	DOC=f	write the report there too
#
# The processor is one without fast string operations. QEMU counts every byte that such a one
# copies as an instruction.
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
cd "$top"

out=build/calls
flags=(-O2 -g -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Werror -Iinclude/uapi)

scripts/deps.sh build rig bench-user
KDIR=$(scripts/kdir.sh)
export KDIR
modules
mkdir -p $out
gcc "${flags[@]}" -shared -fPIC -fvisibility=hidden -o $out/profile.so bench/calls/profile.c
gcc "${flags[@]}" -static -o $out/calls bench/calls/calls.c -luring
echo "mode=bench tests=calls" >$out/run
MODEL=qemu64 ICOUNT=1 PLUGIN=$top/$out/profile.so,out=$top/$out/counts \
	scripts/machines/boot.sh bench-calls 1200 $out/run twheel.ko twheel_chardev.ko $out/calls >$out/log ||
	{ grep -v '^symbol' $out/log; exit 1; }
{
	echo "# Where the instructions of a single call go"
	echo
	echo "Written by \`bench/calls/report.awk\`, not by hand. \`bench/calls/calls.c\` says which calls."
	echo
	echo "* command: make bench-calls"
	echo "* kernel: $(kernel_release), one CPU (qemu64), in $(qemu-system-x86_64 --version | head -n 1)"
	echo "* commit: $(source_id), $(date -u +%Y-%m-%d)"
	awk -v least="${LEAST:-10}" -v symbols=$out/symbols -f bench/calls/report.awk $out/log $out/counts
} >$out/report
cat $out/report
[ -z "${DOC:-}" ] || document "$DOC" <$out/report
