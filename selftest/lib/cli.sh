# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# shellcheck shell=bash disable=SC2034,SC2154 # of other files
#
# What the tests that call twheel(1) share; they source it first. Their files are in $dir. If the
# caller's environment has TWHEEL=FILE, they test that command.
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%/*}/../../scripts/lib.sh"
# shellcheck source=selftest/lib/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"
cd "$top"

dir=$top/build/libtest/$(basename "$0" .sh) twheel=${TWHEEL:-$top/build/tools/twheel}
limit=()
mkdir -p "$dir"

builds() { quiet make -C tools/twheel; }

# gives STATUS COMMAND...: what it prints is in $dir/out, and $dir/err. A test may set limit to a
# command that stops COMMAND if it hangs.
gives() {
	local want=$1 status=0

	shift
	"${limit[@]}" "$@" >"$dir/out" 2>"$dir/err" </dev/null || status=$?
	[ "$status" = "$want" ] && return
	echo "'$*' gave $status, not $want"
	cat "$dir/out" "$dir/err"
	return 1
}

# until_true COMMAND...: within a minute, which is far beyond what anything takes on a busy host
until_true() {
	for _ in {1..1200}; do
		! "$@" || return 0
		sleep 0.05
	done
	echo "never: $*"
	cat "$dir/err"
	return 1
}

# in_time COMMAND...: something that a host that stands still can spoil. If COMMAND sees that it did,
# its status is 2, and it is done again; a mistake of twheel's shows each time.
in_time() {
	local status

	for _ in {1..20}; do
		status=0
		"$@" || status=$?
		[ "$status" = 2 ] || return "$status"
	done
	return 1
}

# knows PID MASK SIGNAL: in its MASK, such as SigIgn, that process has the signal.
knows() {
	local mask

	mask=$(sed -n "s/^$2:\t//p" "/proc/$1/status" 2>/dev/null)
	[ $((0x${mask:-0} >> ($(kill -l "$3") - 1) & 1)) = 1 ]
}
hears() { knows "$1" SigBlk "$2" || knows "$1" SigCgt "$2"; }

# A zombie has ended.
is_gone() { ! grep -qs '^State:.[^ZX]' "/proc/$1/status"; }

# ends STATUS: so does $pid, which runs in the background.
ends() {
	local status=0

	until_true is_gone "$pid" || kill -KILL "$pid"
	wait "$pid" || status=$?
	[ "$status" = "$1" ] && return
	echo "status $status, not $1"
	cat "$dir/err"
	return 1
}

# The values of a key in the lines of JSON.
values() { sed -n "s/.*\"$1\":\"*\([^,\"}]*\).*/\1/p" "$dir/out"; }

# completes WANT WORD...: the last of them
completes() {
	local want=$1

	shift
	# shellcheck disable=SC2016 # the other bash expands it
	[ "$(bash -c '. tools/twheel/completion.bash && COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) &&
		_twheel && echo "${COMPREPLY[*]}"' - "$@")" = "$want" ] && return
	echo "'$*' is not completed to '$want'"
	return 1
}
