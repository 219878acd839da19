#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# Only a good run may pass: verdict.sh and tap.awk on recorded runs of every kind. And if a host cannot
# run a machine, that is reported in one line.
. "$(dirname "$0")/../lib.sh"
# shellcheck source=selftest/lib/tap.sh
. "$top/selftest/lib/tap.sh"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
ok='twheel-verdict: ok'
boot='[    0.000000] Linux version 6.1.0
[    3.100000] twheel: loaded'
down='[    9.000000] reboot: Restarting system'

# verdict pass|fail NAME CONSOLE RESULT STATUS: check the verdict on a console whose lines end in LF,
# and on one whose lines end in CR LF.
verdict() {
	local got='' console

	printf '%b' "${3:+$3\n}" >"$tmp/console"
	printf '%b' "${4:+$4\n}" >"$tmp/result"
	printf '%b' "${3:+${3//\\n/\\r\\n}\r\n}" >"$tmp/console-cr"
	for console in "$tmp"/console{,-cr}; do
		# in a subshell, because a new shell takes longer than the verdict
		# shellcheck source=/dev/null
		if (. "$top/scripts/machines/verdict.sh" "$console" "$tmp/result" "$5") >"$tmp/out" 2>&1; then
			got+=pass
		else
			got+=fail
		fi
	done
	same "$1: $2" "$1$1" "$got"
}

good="$boot\n$down"
verdict pass "a good run" "$good" "$ok" 0
verdict fail "silence on both lines" "" "" 0
verdict fail "no verdict" "$good" "" 0
verdict fail "a verdict of fail" "$good" "twheel-verdict: fail test_read;" 0
verdict fail "a verdict without a newline" "$good" "$ok\c" 0
verdict fail "a verdict and more" "$good" "$ok\nmore" 0
verdict fail "a verdict and less" "$good" "twheel-verdict: o" 0
verdict fail "a NUL in the verdict" "$good" "$ok\0" 0
verdict fail "no shutdown" "$boot" "$ok" 0
verdict pass "a machine that cannot but halt" "$boot\n[    9.0] reboot: System halted" "$ok" 0
verdict fail "a timeout" "$good" "$ok" 124
verdict fail "a timeout that had to kill" "$good" "$ok" 137
verdict fail "more CPU time than it may take" "$good" "$ok" 152
verdict fail "a QEMU that failed" "$good" "$ok" 1
verdict fail "a NUL on the console" "$boot\n\0\n$down" "$ok" 0
verdict pass "a debugging kernel that says so" "$boot\n[    0.1] ODEBUG: selftest passed\n[    0.2] kmemleak: Kernel memory leak detector initialized\n$down" "$ok" 0
vmalloc='[    4.0] insmod: vmalloc error: size 8192, failed\n[    4.0] Call Trace:'
verdict pass "vmalloc() that complains" "$boot\n$vmalloc\n[    4.0] 9 pages reserved\n$down" "$ok" 0
verdict fail "and a trace after it" "$boot\n$vmalloc\n[    4.0] 9 pages reserved\n[    4.0] Call Trace:\n$down" "$ok" 0
verdict fail "and no end of it" "$boot\n$vmalloc\n$down" "$ok" 0
verdict fail "and one end for two" "$boot\n$vmalloc\n$vmalloc\n[    4.0] 9 pages reserved\n$down" "$ok" 0
kcsan='[    4.0] BUG: KCSAN: data-race in __hrtimer_run_queues / hrtimer_active'
sanitizer='[    4.0] Reported by Kernel Concurrency Sanitizer on:'
verdict pass "a race of the kernel's own" "$boot\n$kcsan\n$sanitizer\n$down" "$ok" 0
verdict fail "and no end of it" "$boot\n$kcsan\n$down" "$ok" 0
verdict fail "and ours after it" "$boot\n$kcsan\n$sanitizer\n$kcsan [twheel]\n$sanitizer\n$down" "$ok" 0
entry='[    4.0]  entry_del+0x1/0x2 [twheel]'
verdict pass "one in which hrtimer was called by ours" "$boot\n$kcsan\n$entry\n$sanitizer\n$down" "$ok" 0
helpers='[    4.0] BUG: KCSAN: data-race in rb_erase / rb_insert_color'
verdict pass "one in two helpers of the kernel's own" "$boot\n$helpers\n$sanitizer\n$down" "$ok" 0
verdict fail "one in two helpers that were called by ours" "$boot\n$helpers\n$entry\n$sanitizer\n$down" "$ok" 0
verdict pass "and by ours only after it" "$boot\n$helpers\n$sanitizer\n$entry\n$down" "$ok" 0
verdict fail "one with the kernel" "$boot\n${kcsan/ \// [twheel] /}\n$sanitizer\n$down" "$ok" 0
# What the kernel says, without the BUG: or WARNING: in front of most of it. Check each alone, and
# among the lines of a report that is expected.
while read -r line; do
	verdict fail "$line" "$boot\n[    4.000000] $line\n$down" "$ok" 0
	verdict fail "and in the complaint of vmalloc()" \
		"$boot\n$vmalloc\n[    4.000000] $line\n[    4.0] 9 pages reserved\n$down" "$ok" 0
	verdict fail "and in a race of the kernel's own" \
		"$boot\n$kcsan\n[    4.000000] $line\n$sanitizer\n$down" "$ok" 0
done <<'END'
WARNING: CPU: 1 PID: 77 at twheel.c:100 twheel_add+0x1/0x2 [twheel]
Badness at kernel/softirq.c:100
BUG: kernel NULL pointer dereference, address: 0000000000000008
unable to handle page fault for address: ffffa0c140000000
BUG twheel (Tainted: G           OE     ): Poison overwritten
BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 30s!
kernel BUG at twheel.c:100!
Oops: 0002 [#1] PREEMPT SMP NOPTI
Call Trace:
Call trace:
Kernel panic - not syncing: Fatal exception in interrupt
general protection fault, probably for non-canonical address
traps: test_read[80] general protection fault ip:401000
test_read[80]: segfault at 0 ip 0000000000401000 sp 00007ffc error 4
Bad page state in process test_read  pfn:12345
Out of memory: Killed process 80 (test_read)
Memory cgroup out of memory: Killed process 80 (test_limits)
Objects remaining in twheel on __kmem_cache_shutdown()
refcount_t: underflow; use-after-free.
list_del corruption, ffff888003a12345->next is LIST_POISON1
soft lockup - CPU#1 stuck for 22s! [insmod:75]
NMI watchdog: Watchdog detected hard LOCKUP on cpu 1
INFO: task test_read:80 blocked for more than 120 seconds.
rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:
rcu: INFO: rcu_preempt self-detected stall on CPU
rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 1-.... } 21 jiffies s: 9 root: 0x2/.
NOHZ tick-stop error: local softirq work is pending, handler #08!!!
INFO: trying to register non-static key.
rcu: rcu_preempt kthread starved for 5000 jiffies!
INFO: lockdep is turned off.
possible recursive locking detected
possible circular locking dependency detected
inconsistent lock state
suspicious RCU usage
held lock freed!
scheduling while atomic: test_read/80/0x00000002
sleeping function called from invalid context at mm/slab.h:509
[ Invalid wait context ]
ODEBUG: free active (active state 0) object type: hrtimer hint: twheel_fire
ODEBUG: Out of memory. ODEBUG disabled
KASAN: slab-use-after-free in twheel_cancel+0x1/0x2
KCSAN: data-race in twheel_add / twheel_fire
KFENCE: use-after-free read in twheel_cancel+0x1/0x2
UBSAN: shift-out-of-bounds in twheel.c:100:2
kmemleak: 1 new suspected memory leaks (see /sys/kernel/debug/kmemleak)
possible irq lock inversion dependency detected
KMSAN: uninit-value in twheel_add+0x1/0x2
list_add corruption. prev->next should be next
END

# tap "PASSED FAILED" NAME TAP STATUS [SKIPPED]
tap() {
	local got

	got=$(printf '%b' "$3" | awk -v status="$4" -v skips="$tmp/skips" -f "$top/scripts/tap.awk" | tail -n 1)
	same "$1: $2" "$1 ${5:-0}" "$got"
}

printf '# a comment\nno such hardware\ttest -e it\n' >"$tmp/skips"
tap "2 0" "two good points" "1..2\nok 1 - a\nok 2 - b\n" 0
tap "2 0" "a plan at the end" "ok 1 - a\nok 2\n1..2\n" 0
tap "3 0" "two streams" "1..1\nok 1 - a\nhello\n1..2\nok 1 - a\nok 2 - b\n" 0
tap "0 0" "a skip for a reason that is listed" "1..1\nok 1 - a # SKIP no such hardware\n" 0 1
tap "0 1" "a skip for another" "1..1\nok 1 - no such hardware # SKIP on amd64\n" 0
tap "0 1" "a skip for a comment" "1..1\nok 1 - a # SKIP # a comment\n" 0
tap "0 1" "silence" "" 0
tap "0 1" "a plan of nothing" "1..0 # SKIP no device\n" 0
tap "1 1" "a point that is not ok" "1..2\nok 1 - a\nnot ok 2 - b\n" 1
tap "1 1" "a point that is not ok, and status 0" "1..2\nok 1 - a\nnot ok 2 - b\n" 0
tap "1 1" "a death half-way" "1..3\nok 1 - a\n" 139
tap "1 2" "an end half-way after a failure" "1..3\nok 1 - a\nnot ok 2 - b\n" 0
tap "1 1" "more than was planned" "1..0\nok 1 - a\n" 0
tap "1 1" "no plan" "ok 1 - a\n" 0
tap "1 1" "a status without a reason" "1..1\nok 1 - a\n" 1
tap "1 1" "a skip that is not listed" "1..2\nok 1 - a\nok 2 - b # SKIP no reason\n" 0
tap "1 2" "a bail-out" "1..2\nok 1 - a\nBail out! no device\n" 0
tap "0 1" "points in a text" "this is ok 1\n  ok 2 - indented\n" 0

same "that a suite was out of time is said, too" "# planned 3 points, got 1
# status 137: out of time" "$(printf '1..3\nok 1 - a\n' | awk -v status=137 -f "$top/scripts/tap.awk" | sed '$d')"

# said WORDS NAME LOG [EDIT]: check what mutate.sh takes for noticed, if a stage prints that with an edit of this name
said() {
	local got

	printf '%b' "$3" >"$tmp/log"
	got=$(. "$top/scripts/long/edits.sh" && what=$(said "$tmp/log") && echo "$what" &&
		is_noticed "$what" "${4:-an edit}" && echo noticed) || :
	same "$2" "$1" "$(paste -sd ';' <<<"$got")"
}

said "test_a: not ok 2 - b;noticed" "a failed point is noticed" "# suite test_a\n1..2\nok 1 - a\nnot ok 2 - b\n"
said "test_a: # planned 3 points, got 1;noticed" "a death half-way is" "# suite test_a\nok 1 - a\n# planned 3 points, got 1\n"
said "test_a: # exit status 139;noticed" "an exit status is" "# suite test_a\n# exit status 139\n"
said "out of time: test_a: # status 137: out of time" "a program that was killed is not known" \
	"# suite test_a\nok 1 - a\n# planned 3 points, got 1\n# status 137: out of time\n"
said "out of time: test_a: # status 124: out of time" "nor is one that took too long" "# suite test_a\n# status 124: out of time\n"
said "out of time: test_a: # verdict: timed out" "nor a machine" "# suite test_a\n# verdict: timed out\n# verdict: the machine gave no verdict\n"
said "out of time: test_a: # verdict: killed: out of time or CPU time" "nor one that took too much of the CPU" \
	"# suite test_a\n# verdict: killed: out of time or CPU time\n"
said "out of time: test_a: # status 124: out of time;noticed" "unless the edit says so" \
	"# suite test_a\n# status 124: out of time\n" "a reader hangs"
said "test_a: not ok 2 - b;noticed" "a point that failed before that is noticed" \
	"# suite test_a\nnot ok 2 - b\n# status 137: out of time\n"
said "test_a: # [ 4.0] BUG: b;noticed" "what the kernel says is" "# suite test_a\n# [    4.0] BUG: b\n"
said "" "to build badly is not" "make: Error 1\n"

# least "PASSED FAILED SKIPPED" NAME SUITE POINTS: check the counts of a suite with that many points
least() {
	local got

	got=$({ echo "1..$4"; seq -f 'ok %g - a' "$4"; } |
		awk -v suite="$3" -v least="$tmp/points" -f "$top/scripts/tap.awk" | tail -n 1)
	same "$1: $2" "$1" "$got"
}

printf '# a comment 2\ntest_a 3 qemu uml\ntest_a,some 2 qemu\ntest_b 1\ntest_d 2..40\ntest_e 20\n' >"$tmp/points"
least "3 0 0" "as many points as a suite had" test_a 3
least "4 0 0" "more" test_a 4
least "2 1 0" "fewer" test_a 2
least "2 0 0" "some of them, as it was told" test_a,some 2
least "2 1 0" "fewer, as it was not told" test_a,other 2
least "2 1 0" "a suite that is not listed" test_c 2
least "0 2 0" "nothing" test_a 0
least "2 0 0" "the fewest of a range" test_d 2
least "1 1 0" "fewer than that" test_d 1

# lost WORDS NAME REPORT...: check which suites are missing of two machines, one of them in two parts
lost() {
	local got

	printf '%b' "$3" >"$tmp/qemu_1"
	printf '%b' "$4" >"$tmp/qemu_2"
	printf '%b' "$5" >"$tmp/uml"
	# shellcheck disable=SC2030 # it is meant
	got=$(log=$tmp points=$tmp/points && . "$top/scripts/suite.sh" && complete qemu_1 qemu_2 uml; echo "$?") || :
	same "$2" "$1" "$(paste -sd ';' <<<"$got")"
}

ran='# suite test_a: 3 passed, 0 failed, 1 s, 0 s of CPU\n'
qemu='ok 1 - qemu ran all its suites' uml='ok 2 - uml ran all its suites'
lost "1..2;$qemu;$uml;0" "every suite was run" "" "$ran" "$ran"
lost "1..2;$qemu;not $uml, but not test_a;1" "one was not, in one of two machines" "$ran" "$ran" "# suite test_a\n"

# outgrown WORDS NAME COUNTS REPORT: check which suites have more points than they should, of those that were
# counted here and of those of a machine
outgrown() {
	local got

	printf '%b' "$3" >"$tmp/counts"
	printf '%b' "$4" >"$tmp/uml"
	# shellcheck disable=SC2030 # it is meant
	got=$(log=$tmp points=$tmp/points && . "$top/scripts/suite.sh" && outgrown uml; echo "$?") || :
	same "$2" "$1" "$(paste -sd ';' <<<"${got//$tmp\//}")"
}

none='1..1;ok 1 - no suite has outgrown points'
outgrown "$none;0" "no suite has more points than it should" "test_e 21\ntest_d 43\ntest_c 9\n" "$ran"
outgrown "${none/ok/not ok}, but test_e (22);1" "one has a tenth more" "test_e 22\n" "$ran"
outgrown "${none/ok/not ok}, but test_d (44);1" "or more than the most of a range" "test_d 44\n" "$ran"
outgrown "${none/ok/not ok}, but test_a (4);1" "or has them in a machine" "" "${ran/3 passed/4 passed}"
outgrown "${none/ok/not ok}, but test_a (5);1" "or skips them" "" "${ran/ CPU/ CPU, 2 skipped}"

# judged WORDS NAME STATUS VERDICT REPORT: what a list of failed points says of a machine that ends so.
judged() {
	local got

	printf '%b' "$4" >"$tmp/verdict"
	printf '%b' "$5" >"$tmp/report"
	got=$(log=$tmp && . "$top/scripts/suite.sh" && judged uml "$tmp" sh -c "exit $3"; echo "$?") || :
	same "$2" "$1" "$(paste -sd ';' <<<"$got")"
}

judged "1..1;ok 1 - the verdict of uml;0" "a good run has no reason" 0 "" "# suite test_a\r\n"
judged "1..1;not ok 1 - the verdict of uml: timed out;no orderly shutdown;the last suite was test_b;1" \
	"a bad one has, and its last suite" 1 "verdict: timed out\nverdict: no orderly shutdown\n" "$ran# suite test_b\r\n"
judged "1..1;not ok 1 - the verdict of uml;1" "if it never began, there is none" 1 "" ""

# retold WORDS NAME LOG STATUS: what the last lines of all say of a suite that printed LOG
retold() {
	local got

	printf '%b' "$3" >"$tmp/test_a"
	# shellcheck disable=SC2030 # it is meant
	got=$(log=$tmp points=$tmp/points && . "$top/scripts/suite.sh" &&
		{ counted test_a "$4" "1 s" >"$tmp/out"; summary || :; } 2>&1)
	same "$2" "$1" "$(paste -sd ';' <<<"$got")"
}

retold "3 passed, 0 failed" "if nothing failed, the end says how much passed" "1..3\nok 1 - a\nok 2 - b\n# c\nok 3 - c\n" 0
retold "# test_a: not ok 2 - b;# test_a: wanted: 1;# test_a: got: 2;2 passed, 1 failed" \
	"if a point did, the end names it, and says why" "1..3\nok 1 - a\nnot ok 2 - b\r\n# wanted: 1\n# got: 2\nok 3 - c\n" 1
retold "# test_a: exit status 3;3 passed, 1 failed" "and what else was wrong" "1..3\nok 1 - a\nok 2 - b\nok 3 - c\n" 3

# found STATUS NAME CONDITION...: what a glob that matches nothing, and a find that fails, are
found() {
	local got=0

	(log=$tmp && . "$top/scripts/suite.sh" && found "${@:3}") >"$tmp/out" 2>&1 || got=$?
	same "$2" "$1" "$((got != 0))"
}

found 0 "a file that is there is found" "$tmp" -name points
found 1 "to find nothing is an error" "$tmp" -name none
found 1 "so is a directory that is not there" "$tmp/none" -name points

# told WORDS NAME CONSOLE HOST: check what guest.sh says about a machine, if its kernel printed CONSOLE
# and its emulator HOST before it ended.
told() {
	local got

	got=$(NEVER_RAN="ran no program" "$top/scripts/machines/guest.sh" 20 "$tmp/logs" sh -c \
		"printf '%b' '$3' >'$tmp/logs/console'; printf '%b' '$4' >&2; exit 1" | head -n 2) || :
	same "$2" "$1" "$got"
}

panic='[    0.450000] userspace - ptrace set fp regs failed, errno = 14
[    0.450000] Kernel panic - not syncing: Attempted to kill init!
[    0.450000] Call Trace:'
told "# ran no program: no room; see $tmp/logs" "an emulator that cannot" "" 'Checking...OK\n\nno room\n'
told "# ran no program: userspace - ptrace set fp regs failed, errno = 14;Kernel panic - not syncing: Attempted to kill init!; see $tmp/logs" \
	"a kernel whose first program dies" "$panic" 'Checking...OK\n'
told "# verdict: the machine ended with status 1
# verdict: the machine gave no verdict" "a kernel that panics later" "[    0.3] twheel-init\n$panic" ''
# again STATUS NAME CONSOLE: check the exit status of guest.sh, 75 if the machine should be tried again
again() {
	local got=0

	"$top/scripts/machines/guest.sh" 20 "$tmp/logs" sh -c "printf '%b' '$3' >'$tmp/logs/console'; exit 1" >/dev/null || got=$?
	same "$2" "$1" "$got"
}

int3='[    3.3] Oops: int3: 0000 [#1] PREEMPT_RT SMP NOPTI
[    3.3] Code: cc cc cc cc f3 0f 1e fa 66 <90> c3 cc cc cc cc
[    3.3] Kernel panic - not syncing: Fatal exception in interrupt\n'
again 75 "a breakpoint that is not in memory: again" "$int3"
again 1 "one that is: a fault" "${int3/66 <90>/cc <90>}"
again 1 "nor again when init has run" "[    0.3] twheel-init\n$int3"
again 75 "a timer that was not calibrated: again" '[    0.1] ..: APIC timer disabled due to verification failure\n'

# halted STATUS NAME CONSOLE HOST: check the exit status of guest.sh for a machine that tells that all is well and aborts
halted() {
	local got=0

	"$top/scripts/machines/guest.sh" 20 "$tmp/logs" sh -c "printf '%b' '$3' >'$tmp/logs/console'
		echo 'twheel-verdict: ok' >'$tmp/logs/result'; echo '$4'; exit 134" >/dev/null || got=$?
	same "$2" "$1" "$got"
}

signal='<4>[    9.1] DEBUG_LOCKS_WARN_ON(lockdep_hardirq_context())'
halted 0 "lockdep of a kernel that has halted: no fault" '[    9.0] reboot: System halted\n' "$signal"
main='<4>[    9.1]  [<6001d19d>] ? timer_handler+0x4d/0x190\n<4>[    9.1]  [<60005351>] ? main+0x1a1/0x380'
halted 0 "a signal after the kernel has returned to main(): no fault" '[    9.0] reboot: System halted\n' "$main"
halted 1 "in a kernel: a fault" '[    9.0] reboot: System halted\n' "${main%%<60005351*}"
halted 1 "of one that has not: a fault" '[    9.0] twheel-init\n' "$signal"
halted 1 "another end of one that has: a fault" '[    9.0] reboot: System halted\n' 'BUG: KASAN: use-after-free'
halted 1 "what its console has shown before counts" '[    8.9] WARNING: CPU: 0\n[    9.0] reboot: System halted\n' "$signal"
same "no room for a machine's memory" "a machine's memory is a file in" \
	"$(MEM=999999999 "$top/scripts/machines/uml.sh" test-verdict 20 /dev/null 2>&1 | grep -o "a machine's memory is a file in" || :)"
echo "1..$nr"
exit $bad
