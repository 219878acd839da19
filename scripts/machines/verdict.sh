#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# verdict.sh CONSOLE RESULT STATUS: did a test machine do its work?
#
# QEMU exits with 0 after success, an oops and a panic alike. So the answer is yes
# only if the machine printed the agreed words, shut down in order and in time
# (STATUS, of timeout(1)), and its console shows nothing bad. If anything is wrong, print it and
# exit with 1.
#
# test-verdict.sh runs this some four hundred times, so it starts few processes.
set -euo pipefail

console=$1 result=$2 status=$3
bad=0

badness='\bBUG\b|WARNING:|Badness|Oops|Call [Tt]race:|Kernel panic|general protection|page fault|segfault at
Bad page|[Oo]ut of memory:|Objects remaining|refcount_t:|list_(add|del) corruption
soft lockup|hard LOCKUP|blocked for more than|detected (expedited )?stall|kthread starved for
NOHZ tick-stop error|register non-static key
INFO: lockdep is turned off|possible (recursive|circular) locking|possible irq lock inversion|inconsistent lock state
suspicious RCU usage|held lock freed|scheduling while atomic|sleeping function called|Invalid wait context
ODEBUG: .*object type|ODEBUG disabled|KASAN:|KCSAN:|KMSAN:|KFENCE:|UBSAN:|kmemleak: [0-9]+ new suspected'

# Print stdin without the lines of expected reports that would look bad. Such a report must be
# complete. All of its other lines are judged, because another report may be among them.
#
# If a test makes an allocation fail, vmalloc() complains and prints a call trace. The kernel itself
# has races: the title of a KCSAN report names the two functions and their modules. But these may be
# helpers that were called with our memory, such as rb_erase(). So a report with one of our functions
# in a stack is not expected, unless it is in hrtimer, poll() or the idle loop: these have races of
# their own, whoever calls them.
without_expected() {
	awk '
		/vmalloc error: size/ { unfinished("vmalloc"); trace = 1; ends = "pages reserved$" }
		/Call [Tt]race:/ && trace { trace = 0; next }
		/BUG: KCSAN: data-race in [a-z_][^][]* \/ [^][]*$/ {
			unfinished("KCSAN")
			if (!/hrtimer|poll|idle/)
				title = $0
			ends = "Reported by Kernel Concurrency Sanitizer"
			next
		}
		{ print }
		/\[twheel/ && title {
			print "Badness: our function is in a stack of" substr(title, index(title, "BUG:") + 4)
			title = ""
		}
		ends && $0 ~ ends { ends = title = ""; trace = 0 }
		END { unfinished("the end") }
		function unfinished(what) {
			if (ends)
				print "Badness: a report did not end before " what
		}'
}

wrong() { echo "verdict: $*"; bad=1; }

case $status in
0) ;;
124) wrong "timed out" ;;
137 | 152) wrong "killed: out of time or CPU time" ;;
*) wrong "the machine ended with status $status" ;;
esac

# read succeeds if it finds a NUL, and then leaves out what follows.
IFS= read -r -d '' said <"$result" && said+='?'
case $said in
$'twheel-verdict: ok\n') ;;
'') wrong "the machine gave no verdict" ;;
*) wrong "the machine said: ${said//[^[:print:][:space:]]/?}" ;;
esac
! IFS= read -r -d '' messages <"$console" || wrong "NUL bytes on the console"
messages=${messages//$'\r'/}
case $messages in
*'vmalloc error: size'* | *'BUG: KCSAN'*) messages=$(without_expected <<<"$messages") ;;
esac
# User-mode Linux can only halt, and then ends. QEMU would not end on a halt.
case $messages in
*'reboot: Power down'* | *'reboot: Restarting system'* | *'reboot: System halted'*) ;;
*) wrong "no orderly shutdown" ;;
esac
if grep -aE "$badness" <<<"$messages"; then
	wrong "these lines on the console"
fi
exit $bad
