#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# Reports must say what was measured and no more: the report.awk of the benchmarks with small figures,
# and the lines that say from which commit the figures are, in a tree of their own.
. "$(dirname "$0")/../lib.sh"
# shellcheck source=selftest/lib/tap.sh
. "$top/selftest/lib/tap.sh"
cd "$top"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# ---- common.awk ----

# calls PROGRAM LINE...: print what an awk program prints at the end for lines of TSV, with / for tabs
calls() {
	local program=$1

	shift
	[ $# = 0 ] || printf '%s\n' "$@" | tr / '\t' >"$tmp/tsv"
	awk "$(cat bench/common.awk) END { $program }" "$tmp/tsv"
}

# figure VALUES: print the cell for these values
cell() { calls 'printf "%s", cell("r", "l", 1, "s", "m")' "r/l/1/s/m/ns/$1"; }

same "a figure that was measured once has no spread" "7.5" "$(cell 7.5)"
same "of three the median, and the farther of the other two" "10 ±5" "$(cell "15 9 10")"
same "figures are sorted as numbers" "10 ±1" "$(cell "9 11 10")"
same "of many it is not the outliers that are the spread" "100 ±1" \
	"$(cell "1 2 3 4 5 99 100 100 100 100 100 100 100 100 100 101 995 996 997 998 999")"
same "a figure below nothing is printed" "-12 ±30" "$(cell "-42 -12 3")"
same "what is not there is a dash" "–" "$(calls 'printf "%s", cell("r", "l", 1, "s", "other")' r/l/1/s/m/ns/1)"

same "a boot counts once, with the median of its repetitions" "r/l/1/s/m/ns/2 8 5 r/l/2/s/m/ns/7" \
	"$(printf 'r/l/%s/s/m/ns/%s\n' 1 "3 1 2" 2 7 1 "9 8 7" 1 5 | tr / '\t' | (. bench/common.sh; medians) | tr '\t\n' '/ ' | sed 's/ $//')"

cell_of_text() { calls 'printf "%s", cell("r", "l", 1, "s", "missing")' "r/l/1/s/missing/text/Resource temporarily unavailable"; }

# judged NAME WANTED LIMIT VALUES [UNIT]
judged() {
	same "$1" "$2" "$(calls "goal_of(\"g\", key(\"r\", \"l\", 1, \"s\", \"m\"), $3, \"\")" "r/l/1/s/m/${5:-ns}/$4" |
		awk -F ' \\| ' '{ sub(/ \|$/, "", $4); print $4 }')"
}

judged "a goal is reached if all of the spread is" reached 12 "9 10 11"
judged "and missed if none is" "**missed**" 8 "9 10 11"
judged "inside the spread it is neither, below the median" "inside the noise" 9.5 "9 10 11"
judged "nor above it" "inside the noise" 10.5 "9 10 11"
judged "a time of which there is one value is not judged" "one value" 12 10
judged "what was counted once is" reached 12 10 instructions
judged "and missed" "**missed**" 9 10 instructions

same "a figure near its goal has the digits to see on which side it is" "| g | 0.45 | 0.451 | **missed** |" \
	"$(calls 'goal("g", 0.4513, 0.45, "")')"
same "text is not a figure, and its words are not sorted" "–" "$(cell_of_text)"

# at_each NAME WANTED GOAL LEAST VALUE...: the row of a goal for each n, 10 and more
at_each() {
	same "$1" "$2" "$(calls "split(\"${*:5}\", v, \" \"); nr = split(\"10 100 1000\", n, \" \"); each_begin(\"g\", $3, $4)
		for (i = 1; i <= nr; i++) each(n[i], v[i] == \"-\" ? \"\" : v[i]); each_end()")"
}

at_each "a goal of all n is reached if it is at each" "| g | ≤ 5 | 4 | – | 5 | reached |" 5 0 4 - 5
at_each "a miss is told with its n" "| g | ≤ 5 | **6** | 4 | **7** | **missed** at 10, 1000; reached at 100 |" 5 0 6 4 7
at_each "of a goal that is a least, too" "| g | ≥ 5 | 6 | **4** | – | **missed** at 100; reached at 10 |" 5 1 6 4 -
at_each "one without figures is not a row" "" 5 0 - - -

# beside NAME WANTED LIMIT VALUES OTHER
beside() {
	same "$1" "$2" "$(calls "goal_ratio(\"g\", key(\"r\", \"l\", 1, \"s\", \"m\"), key(\"r\", \"l\", 1, \"o\", \"m\"), $3)" \
		"r/l/1/s/m/ns/$4" "r/l/1/o/m/ns/$5" | awk -F ' \\| ' '{ sub(/ \|$/, "", $4); print $3 "; " $4 }')"
}

beside "a ratio has the spread of both" "0.50 (0.41 … 0.61); reached" 0.7 "9 10 11" "18 20 22"
beside "and is inside the noise of both" "0.50 (0.41 … 0.61); inside the noise" 0.6 "9 10 11" "18 20 22"
beside "beside what may be nothing it may be anything" "5 (3 … ∞); inside the noise" 6 "9 10 11" "-1 2 3"
beside "what is below nothing says nothing" "" 6 "-2 -1 -1" "10 10 10"
beside "beside nothing there is none" "" 6 "9 10 11" "0 0 0"

env1=native/a/0/environment/commit/text/123 env2=native/b/0/environment/commit/text
same "what all parts are of is told once" "* commit: 123" "$(calls 'print_environment()' "$env1" "$env2/123")"
same "where they differ, of each part" "* commit, a: 123 * commit, b: 456" \
	"$(calls 'print_environment()' "$env1" "$env2/456" | paste -sd ' ')"

# ---- the reports ----

life() {
	local op

	for op in create arm rearm cancel expire collect close; do
		echo "icount/dense/1000/twheel/$op/instructions/200"
		echo "icount/dense/1000/timerfd/$op/instructions/2600"
	done
	for op in "create 0.4" "arm 249.4" "rearm 5" "cancel 6" "expire $1" "collect 101.4" "close 5.4"; do
		echo "icount/dense/100000/twheel/${op% *}/instructions/${op#* }"
	done
	for op in "create 7000" "arm 1000" "rearm 5" "cancel 6" "expire 900" "collect 900" "close 3000"; do
		echo "icount/dense/100000/timerfd/${op% *}/instructions/${op#* }"
	done
	cat <<-END
		icount/sparse/100000/twheel/expire/instructions/1000.4
		icount/sparse/100000/twheel/collect/instructions/101.4
		icount/sparse/100000/timerfd/expire/instructions/1000
		icount/sparse/100000/timerfd/collect/instructions/900
		icount/single/100000/twheel/arm/instructions/1200.4
		icount/single/100000/twheel/expire/instructions/2000.4
		icount/single/100000/twheel/collect/instructions/900.4
		icount/timeout/100000/twheel/arm/instructions/200
		icount/timeout/100000/twheel/wait/instructions/10000.4
		icount/timeout/100000/timerfd/wait/instructions/14000.6
		icount/timeout/100000/timerfd-ms/wait/instructions/8200.3
		icount/timeout/100000/posix/wait/instructions/15500.6
		icount/timeout/100000/posix-ms/wait/instructions/8700.3
		icount/timeout/100000/io_uring/wait/instructions/16300.7
		icount/timeout/100000/io_uring-ms/wait/instructions/8800.4
	END
}

user() {
	life "$1" | tr / '\t' >"$tmp/tsv"
	awk -f bench/common.awk -f bench/user/life.awk -f bench/user/report.awk "$tmp/tsv"
}

# row NAME TABLE: of the report, the row that begins so in the table below a heading
row() { awk -v row="| $1 |" -v heading="$2" '/^#/ { on = $0 ~ heading } on && index($0, row) == 1' "$tmp/md"; }

user 102.4 >"$tmp/md"
same "a life is the sum of its cells" "| twheel | 0 | 249 | 5 | 6 | 102 | 101 | 5 | 457 |" "$(row twheel '100000, dense')"
same "a sparse one is made, armed and closed as a dense one" "| twheel | 0 | 249 | – | – | 1000 | 101 | 5 | 1355 |" \
	"$(row twheel '100000, sparse')"
same "one at a time is armed by a call of its own" "| twheel | 0 | 1200 | – | – | 2000 | 900 | 5 | 4105 |" \
	"$(row twheel '100000, one at')"
same "one that is waited for has no expiry of its own" "| twheel | 0 | 200 | 10000 | 5 | 10205 |" \
	"$(row twheel '100000, waited')"
same "the summary gives the range, not the best" "| timerfd | 13 … 28.0 | 9.52 | – | – | 9.52 … 28.0 |" "$(row timerfd 'In short')"
same "a goal is judged at each n, and not at the best" \
	"| a life, dense: timerfd | ≥ 25 | **13** | 28.0 | **missed** at 1000; reached at 100000 |" \
	"$(row "a life, dense: timerfd" 'numbers')"
wait="the wait alone, waited for"
for other in "timerfd 1.40" "posix 1.55" "io_uring 1.63"; do
	same "the wait alone has a goal beside ${other% *}" "| $wait: ${other% *} | ≥ 1 | – | ${other#* } | reached |" \
		"$(row "$wait: ${other% *}" numbers)"
done
for other in "timerfd-ms 0.82" "posix-ms 0.87" "io_uring-ms 0.88"; do
	same "and beside ${other% *}, where it is missed" "| $wait: ${other% *} | ≥ 1 | – | **${other#* }** | **missed** |" \
		"$(row "$wait: ${other% *}" numbers)"
done
user -50.4 >"$tmp/md"
same "what is below nothing is counted as it is printed" "| twheel | 0 | 249 | 5 | 6 | -50 | 101 | 5 | 305 |" \
	"$(row twheel '100000, dense')"
user 182.4 >"$tmp/md"
same "a goal that is not met is missed" "| a life, dense: timerfd | ≥ 25 | **13** | **23.8** | **missed** |" \
	"$(row "a life, dense: timerfd" 'numbers')"
{
	life 102.4 | sed 's/^icount/tcg/; s/$/ 300 100/'
	echo "tcg/wakes/1000/twheel/wake-ups/a tick/1"
	echo "tcg/periodic/10000/posix/missing/text/Resource temporarily unavailable"
} | tr / '\t' >"$tmp/tsv"
awk -f bench/common.awk -f bench/user/life.awk -f bench/user/report.awk "$tmp/tsv" >"$tmp/md"
same "what was not possible is named with its workload" \
	"| tcg | periodic | 10000 | posix | Resource temporarily unavailable |" "$(row tcg 'not possible')"
same "the spread of a life is the sum of those of its parts" " 1000 ±500 " "$(row twheel '1000, dense' | cut -d '|' -f 10)"

kernel() {
	printf '%s\n' "uml/pending-60000/1000000/twheel/add/ns/$1" uml/pending-60000/1000000/timer_list/add/ns/"19 20 21" \
		icount/idle-60000/1000/twheel/expire/instructions/2700 icount/idle-60000/1000/hrtimer/expire/instructions/1500 \
		icount/idle-60000/10000/twheel/expire/instructions/1400 icount/idle-60000/10000/hrtimer/expire/instructions/1600 \
		icount/busy-1000/1000/twheel/expire/instructions/1640 icount/busy-1000/1000/hrtimer-hard/expire/instructions/1000 \
		icount/busy-1000/10000/twheel/expire/instructions/380 icount/busy-1000/10000/hrtimer-hard/expire/instructions/1000 \
		icount/hot/1/twheel/add+cancel/instructions/150 icount/hot/1/hrtimer-hard/add+cancel/instructions/300 \
		uml/hot/1/twheel-rel/add+cancel/ns/"38 39 40" uml/hot/1/hrtimer-rel/add+cancel/ns/"30 30 30" \
		uml/hot/1/timer_list-rel/add+cancel/ns/"26 26 26" \
		uml/pending-60000/1000/timer_list/rearm/ns/"10 10 10" uml/pending-60000/1000/twheel-eighth/rearm/ns/"8 8 8" \
		uml/pending-60000/1000/timer_list/put-off/ns/"10 10 10" uml/pending-60000/1000/twheel-eighth/put-off/ns/"12 13 14" \
		uml/pending-60000/1000/timer_list/cancel/ns/"10 10 10" uml/pending-60000/1000/twheel-eighth/cancel/ns/"9 10 11" \
		uml/pending-1000000/1000/timer_list/add/ns/"10 10 10" uml/pending-1000000/1000/twheel-eighth/add/ns/"7 7 7" \
		uml/pending-1000000/1000/twheel-rel/put-off/ns/"30 31 32" uml/pending-1000000/1000/timer_list-rel/put-off/ns/"15 16 16" \
		uml/pending-60000/1000/twheel-rel/put-off/ns/"31 32 33" uml/pending-60000/1000/timer_list-rel/put-off/ns/"16 16 16" |
		tr / '\t' >"$tmp/tsv"
	awk -f bench/common.awk -f bench/kernel/report.awk "$tmp/tsv" >"$tmp/md"
}

kernel "19 19.5 20"
add="add, 1 … 60000 ms, ns, timer_list's = 1"
same "a figure of the kernel inside the noise is not reached" \
	"| $add | ≤ 1 | – | – | – | 0.97 (0.90 … 1.05) | inside the noise |" \
	"$(row "$add" numbers)"
kernel "9 9.5 10"
same "below it, it is" "| $add | ≤ 1 | – | – | – | 0.47 (0.43 … 0.53) | reached |" "$(row "$add" numbers)"
what="expire, 1 … 1000 ms, busy CPU, instructions, hrtimer-hard's = 1"
same "the hrtimer that calls back in the interrupt has a goal, at each n" \
	"| $what | ≤ 1 | **1.64** | 0.38 | – | – | **missed** at 1000; reached at 10000 |" "$(row "$what" numbers)"
what="hot add+cancel, instructions, hrtimer-hard's = 1"
same "and where one timer is added and cancelled" "| $what | 0.45 | 0.50 | **missed** |" "$(row "$what" numbers)"
what="hot add+cancel with a delay, ns, timer_list-rel's = 1"
same "with a delay, too, beside timer_list" "| $what | 1 | 1.50 (1.46 … 1.54) | **missed** |" "$(row "$what" numbers)"
what="hot add+cancel with a delay, ns, hrtimer-rel's = 1"
same "and beside hrtimer" "| $what | 1 | 1.30 (1.27 … 1.33) | **missed** |" "$(row "$what" numbers)"
for range in "60000 2 (1.94 … 2.06)" "1000000 1.94 (1.88 … 2.13)"; do
	what="put off with a delay, 1 … ${range%% *} ms, ns, timer_list-rel's = 1"
	same "to put off by a delay has a goal, up to ${range%% *} ms" "| $what | ≤ 1 | **${range#* }** | – | – | – | **missed** |" \
		"$(row "$what" numbers)"
done
# tolerant WHAT FIGURE VERDICT
tolerant() {
	local goal="tolerance 1/8: $1 ms, ns, timer_list's = 1"

	same "one that may be late has a goal: $1" "| $goal | ≤ 1 | $2 | – | – | – | $3 |" "$(row "$goal" numbers)"
}

tolerant "add, 1 … 1000000" 0.70 reached
tolerant "re-arm, 1 … 60000" 0.80 reached
tolerant "put off, 1 … 60000" "**1.30 (1.20 … 1.40)**" "**missed**"
tolerant "cancel, 1 … 60000" "1 (0.90 … 1.10)" "inside the noise"
same "its summary gives the range, and hrtimer beside it" \
	"| expire within a minute, idle CPU | 1400 … 2700 | – | – | 1500 … 1600 | – |" \
	"$(row "expire within a minute, idle CPU" 'In short')"

printf '%s\n' "native/1..1000000/100000/wheel/expire/ns/117 118 119" "native/1..1000000/100000/whole-bucket/expire/ns/74 75 76" |
	tr / '\t' >"$tmp/tsv"
awk -f bench/common.awk -f bench/wheel/report.awk "$tmp/tsv" >"$tmp/md"
what="expire, 1..1000000 ticks, n = 100000, whole-bucket's = 1"
same "the wheel's goal of whole buckets is one of all loads" "| $what | 1.1 | 1.57 (1.54 … 1.61) | **missed** |" \
	"$(row "$what" numbers)"

printf '%s\n' "icount/irqs-off/1/munmap, 64 MB/instructions/count/228213" icount/irqs-off/1/ADD/instructions/count/2000 \
	"icount/irqs-off/1/close, a million timers/instructions/count/227592" | tr / '\t' >"$tmp/tsv"
awk -f bench/common.awk -f bench/kernel/report.awk "$tmp/tsv" >"$tmp/md"
what="the same in a call of the device, whatever turned them off"
same "close() counts for how long interrupts are off, munmap() does not" "| $what | 12800 | 227592 | **missed** |" "$(row "$what" numbers)"

lib() { printf '%s\n' "$@" | tr / '\t' >"$tmp/tsv"; awk -f bench/common.awk -f bench/lib/report.awk "$tmp/tsv" >"$tmp/md"; }

lib native/1..60000/1000/twheel/cancel/ns/"38 39 40" native/1..60000/1000/libevent/cancel/ns/"22 22 22" \
	native/1..60000/1000/twheel/first/ns/"54 55 56" native/1..60000/1000/libevent/first/ns/"52 52 52" \
	native/1..60000/1000/libuv/first/ns/"42 42 42" native/1..60000/1000/twheel-one/first/ns/"49 50 51" \
	native/1..60000/1000/libevent-loop/first/ns/"30 30 30" native/1..60000/1000/twheel-at/first/ns/"29 30 31" \
	native/1..60000/1000/libuv/cancel/ns/"45 45 45" \
	native/sched/1000/now/"add worst"/us/10 native/sched/1000/now/"add worst of one run"/us/393
same "libtwheel's cancel has a goal, and a spread" "| cancel, twheel over libevent, ns | ≤ 1 | **1.77 (1.73 … 1.82)** | **missed** |" \
	"$(row "cancel, twheel over libevent, ns" numbers)"
# lib_goal PHASE, OURS over OTHER, ROW
lib_goal() { same "$1 of libtwheel: $2" "| $1, $2, ns | ≤ 1 | $3 |" "$(row "$1, $2, ns" numbers)"; }
lib_goal first "twheel over libevent" "**1.06 (1.04 … 1.08)** | **missed**"
lib_goal first "twheel-one over libevent" "0.96 (0.94 … 0.98) | reached"
lib_goal first "twheel-at over libevent-loop" "1 (0.97 … 1.03) | inside the noise"
lib_goal first "twheel over libuv" "**1.31 (1.29 … 1.33)** | **missed**"
lib_goal first "twheel-one over libuv" "**1.19 (1.17 … 1.21)** | **missed**"
lib_goal first "twheel-at over libuv" "0.71 (0.69 … 0.74) | reached"
lib_goal cancel "twheel over libuv" "0.87 (0.84 … 0.89) | reached"
same "a worst call that only one run has seen is not hidden" \
	"| worst add of 1000 tasks | 200 µs | 10 µs (10 … 393) | inside the noise |" "$(row "worst add of 1000 tasks" numbers)"

printf 'native\tbacklog\t0\tpg-1\tfirings/s\t1/s\t43192\n' >"$tmp/tsv"
awk -f bench/common.awk -f bench/jobs/report.awk "$tmp/tsv" >"$tmp/md"
what="firings/s, PostgreSQL, one node"
same "jobs that were measured once are not judged" "| $what | at least 40000 | 43192 | one value |" "$(row "$what" numbers)"
printf 'native\tbacklog\t0\tpg-1\tfirings/s\t1/s\t%s\n' 43192 39000 44000 >"$tmp/tsv"
awk -f bench/common.awk -f bench/jobs/report.awk "$tmp/tsv" >"$tmp/md"
same "a row for each repetition: they are judged by their spread" \
	"| $what | at least 40000 | 43192 (39000 … 44000) | inside the noise |" "$(row "$what" numbers)"

# ---- the figures of pictures ----

# series NAME TSV-LINE...: print the points of that series
series() {
	printf '%s\n' "${@:2}" | tr / '\t' >"$tmp/tsv"
	awk -f bench/common.awk -f bench/user/life.awk -f bench/pictures/data.awk "$tmp/tsv" |
		awk -v name="# $1" '$0 == name { on = 1; next } /^$/ { on = 0 } on' | tr '\t\n' ' ;'
}

same "a series has the median for each number of timers" "1000 2;10000 30;" \
	"$(series "icount busy twheel expire" icount/busy/1000/twheel/expire/ns/"3 2 1" icount/busy/1000/hrtimer/expire/ns/9 \
		icount/busy/10000/twheel/expire/ns/30)"
same "a metric with a number is a point of a curve" "16 5;1024 7;" \
	"$(series "icount late twheel late" icount/late/10/twheel/late-16/timers/5 icount/late/10/twheel/late-1024/timers/7)"
same "a life is the sum of its parts" "10 15;" \
	"$(series "icount dense twheel life" icount/dense/10/twheel/create/ns/1 icount/dense/10/twheel/arm/ns/2 \
		icount/dense/10/twheel/expire/ns/3 icount/dense/10/twheel/collect/ns/4 icount/dense/10/twheel/close/ns/5)"

# ---- the commit that figures name, in a tree of its own ----

mkdir -p "$tmp/tree"/doc/data
cp --parents scripts/lib.sh scripts/long/measured.sh scripts/docs/docs-fresh.sh bench/common.awk bench/common.sh "$tmp/tree"
cd "$tmp/tree"
export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@example.org GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@example.org
commit() { git add -A && git commit -qm "$1" && git rev-parse --short=12 HEAD; }
fresh() { scripts/docs/docs-fresh.sh | grep -v '^	' | paste -sd ';'; }
in_lib() { bash -c '. scripts/lib.sh; "$@"' scripts/x.sh "$@" 2>/dev/null; }

git init -q
echo a >a.c
echo b >b.c
printf 't.md\tmake a\ta.c\nt.md#Two\tmake b\tb.c\n' >doc/tables
first=$(commit first)
table() { printf '* commit: %s, today\n\n## Two\n\n* commit: %s\n' "$1" "$2" >doc/t.md; }

same "the sources are those of the commit" "$first" "$(in_lib source_id)"
echo changed >doc/tables.new
same "what is in doc/ is not a source" "$first" "$(in_lib source_id)"
rm doc/tables.new
echo c >c.c
same "a file more is a change" "$first-dirty" "$(in_lib source_id)"
echo "* commit: $first-dirty, today" | in_lib document doc/out || :
same "no document is made of sources that are not committed" no "$([ -e doc/out ] && echo yes || echo no)"
echo "* commit: $first, today" | in_lib document doc/out
same "one of committed sources is" "* commit: $first, today" "$(cat doc/out)"
rm c.c doc/out

table "$first" "$first"
same "tables of this very tree are fresh" "doc/t.md: fresh;doc/t.md#Two: fresh" "$(fresh)"
echo bb >b.c
same "a source that changed makes stale what is of it" \
	"doc/t.md: fresh;doc/t.md#Two: is of $first, and since then there changed: b.c" "$(fresh)"
second=$(commit second)
table "$first" "$second"
same "measured again it is fresh" "doc/t.md: fresh;doc/t.md#Two: fresh" "$(fresh)"
printf '/* it is said otherwise */\nbb\n' >b.c
same "a comment more makes nothing stale" "doc/t.md: fresh;doc/t.md#Two: fresh" "$(fresh)"
printf '/* it is said otherwise */\nbbb\n' >b.c
same "a comment hides no other change" \
	"doc/t.md: fresh;doc/t.md#Two: is of $second, and since then there changed: b.c" "$(fresh)"
printf 't.md\tmake a\ta.c\nt.md#Two\tmake b\tb.py\n' >doc/tables
printf '"It does b."\nb = "bb"\n' >b.py
python=$(commit python)
table "$first" "$python"
printf '"It says what\\\nb is."\n\nb = "bb"   # two of them\n' >b.py
same "nor do another docstring and a comment in Python" "doc/t.md: fresh;doc/t.md#Two: fresh" "$(fresh)"
printf '"It does b."\nb = "bbb"\n' >b.py
same "but another text in its code does" \
	"doc/t.md: fresh;doc/t.md#Two: is of $python, and since then there changed: b.py" "$(fresh)"
printf '"It does b.\nb = "bb"\n' >b.py
same "and a program that is none does" \
	"doc/t.md: fresh;doc/t.md#Two: is of $python, and since then there changed: b.py" "$(fresh)"
rm b.py
printf 't.md\tmake a\ta.c\nt.md#Two\tmake b\tb.c\n' >doc/tables
table "$first" "$second"
rm b.c
same "a source that is gone is a change" \
	"doc/t.md: fresh;doc/t.md#Two: is of $second, and since then there changed: b.c" "$(fresh)"
echo bb >b.c
table "$first-dirty" 0123456789ab
same "dirty or unknown commits are not" \
	"doc/t.md: is of 0123456789ab, which is not here; is of sources that were not committed, $first-dirty;doc/t.md#Two: is of 0123456789ab, which is not here" \
	"$(fresh)"
echo "## Two" >doc/t.md
same "nor is what says no commit" \
	"doc/t.md: does not say which commit it is of;doc/t.md#Two: does not say which commit it is of" "$(fresh)"
scripts/docs/docs-fresh.sh >/dev/null && status=0 || status=$?
same "the status tells so" 1 "$status"
# parts COMMIT COMMIT: write a table of two parts, one of which has a line of its own in doc/tables
parts() { printf '* commit, one: %s\n* commit, two: %s\n' "$1" "$2" >doc/t.md; }
printf 't.md\tmake a\ta.c b.c\nt.md@two\tmake b\ta.c\n' >doc/tables
parts "$second" "$first"
same "a part with a line of its own is older than its own sources alone" "doc/t.md: fresh;doc/t.md@two: fresh" "$(fresh)"
parts "$first" "$second"
same "and the other parts than theirs" \
	"doc/t.md: is of $first, and since then there changed: b.c;doc/t.md@two: fresh" "$(fresh)"
mkdir r
echo x >r/x.c
echo y >r/report.awk
printf 't.md\tmake a\tr :!r/report.awk\n' >doc/tables
third=$(commit third)
table "$third" "$third"
echo yy >r/report.awk
same "what is left out of the sources makes nothing stale" "doc/t.md: fresh" "$(fresh)"
echo xx >r/x.c
same "what is beside it does" "doc/t.md: is of $third, and since then there changed: r/x.c" "$(fresh)"
rm -r r
git reset -q --hard "$second"
# figures COMMIT: write figures of pictures that name COMMIT
figures() { printf 'native\ticount\t0\tenvironment\tcommit\ttext\t%s, today\n' "$1" >doc/data/t.tsv; }
printf 'data/t.tsv\tmake b\tb.c\n' >doc/tables
figures "$second"
same "figures that pictures are drawn from are fresh" "doc/data/t.tsv: fresh" "$(fresh)"
figures "$first"
same "or older than their source" "doc/data/t.tsv: is of $first, and since then there changed: b.c" "$(fresh)"
printf 'data/t.tsv\tmake b\tb.c\ndata/t.tsv@icount\tmake b\ta.c\n' >doc/tables
sed "p; s/icount/uml/; s/$first/$second/" doc/data/t.tsv >doc/data/t.new
mv doc/data/t.new doc/data/t.tsv
same "a part of them with a line of its own is older than its own sources alone" \
	"doc/data/t.tsv: fresh;doc/data/t.tsv@icount: fresh" "$(fresh)"

# A commit of which doc/tables says that only PREEMPT_RT compiles what it changed.
printf 't.md\tmake a\ta.c\nt.md@6.1-rt\tmake b\ta.c\n' >doc/tables
echo rt >>a.c
rt=$(commit rt)
printf '* commit, 6.1: %s\n* commit, 6.1-rt: %s\n' "$second" "$second" >doc/t.md
printf '=\t%s\ta.c\n' "$rt" >>doc/tables
same "a commit for PREEMPT_RT makes stale what is of PREEMPT_RT" \
	"doc/t.md: fresh;doc/t.md@6.1-rt: is of $second, and since then there changed: a.c" "$(fresh)"
echo more >>a.c
same "and hides no other change" \
	"doc/t.md: is of $second, and since then there changed: a.c;doc/t.md@6.1-rt: is of $second, and since then there changed: a.c" \
	"$(fresh)"
git reset -q --hard "$second"

# told COMMIT COMMIT: print the list for two parts that were measured with these commits
told() {
	printf 'commit\t%s\nkernel\t6.1\n' "$1" >"$tmp/6.1-rt.facts"
	printf 'commit\t%s\nkernel\t6.1\n' "$2" >"$tmp/7.2.facts"
	bash -c '. scripts/long/measured.sh; facts "$@"' x "$tmp"/{6.1-rt,7.2}.facts | paste -sd ' '
}

same "what two machines have in common is told once" "* commit: 12 * kernel: 6.1" "$(told 12 12)"
same "and where they differ, of each" "* commit, 6.1-rt: 12 * commit, 7.2: 34 * kernel: 6.1" "$(told 12 34)"

# A benchmark of two parts, one of which is measured again.
bench() {
	ONLY=$1 bash -c '. scripts/lib.sh; . bench/common.sh; cd "$top"
		one() { printf "native\tl\t1\ts\tm\tns\t1\n"; }
		two() { one; }
		environment() { row command "make ONLY=$ONLY"; row commit "$(source_id)"; }
		measure out out.tsv one two
		echo "END { print_environment() }" >report.awk
		report report.awk out.tsv' scripts/x.sh
}

same "both parts tell what they were measured with" "* command: make ONLY= * commit: $second-dirty" \
	"$(echo >x.c && bench '' | paste -sd ' ')"
rm x.c
printf 'out*\nreport.awk\n' >.gitignore
third=$(commit third)
same "one that is measured again, too, and the other keeps its own" \
	"* command, one: make ONLY= * command, two: make ONLY=two * commit, one: $second-dirty * commit, two: $third" \
	"$(bench two | paste -sd ' ')"

echo "1..$nr"
exit $bad
