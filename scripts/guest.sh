#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# guest.sh SECONDS LOGDIR COMMAND...: run a test machine, show its report while it
# runs, and end with the verdict as exit status.
#
# COMMAND is the machine. It has three lines, each a file in LOGDIR: console is the
# kernel's alone, so that no message breaks into a line of a test; result is the
# verdict; report is what the tests print. The emulator's own words are in "host".
. "$(dirname "$0")/lib.sh"

limit=$1 logs=$2
shift 2

mkdir -p "$logs"
for file in console result report; do
	: >"$logs/$file"
done
# timeout passes the signals on; the first of them comes if this shell dies.
setpriv --pdeathsig TERM timeout -k 5 "$limit" "$@" </dev/null >"$logs/host" 2>&1 &
pid=$!
trap 'kill "$pid" 2>/dev/null || :' EXIT
trap 'exit 130' INT TERM

# In the background, for a trap would wait for what is in the foreground.
tail -n +1 -s 0.2 --pid="$pid" -f "$logs/report" &
status=0
wait "$pid" || status=$?
trap - EXIT
wait

"$top/scripts/verdict.sh" "$logs/console" "$logs/result" "$status" >"$logs/verdict" || {
	sed 's/^/# /' "$logs/verdict" "$logs/host"
	echo "# the end of the console:"
	tail -n 20 "$logs/console" | tr -d '\r\0' | sed 's/^/#   /'
	echo "# logs: $logs"
	exit 1
}
