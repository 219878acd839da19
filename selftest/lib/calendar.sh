#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# calendar.sh: the calendar of twheel(1), tested through the command; and what a job learns of its times.
# shellcheck disable=SC2016,SC2317 # what a child expands; point calls the functions
# shellcheck source=selftest/lib/cli.sh
. "$(dirname "$0")/cli.sh"
export TZ=UTC

# says TEXT COMMAND...: it is refused, and why
says() {
	local text=$1

	shift
	gives 125 "$@" && [ "$(head -n 1 "$dir/err")" = "$twheel: $text" ] && return
	cat "$dir/err"
	return 1
}

# A command that tells what it is told, and when it ran.
tell='echo $TWHEEL_DUE $TWHEEL_RUN $TWHEEL_MISSED $(date +%s%N)'

# Each second, never early, by the second, and one after another. One that was missed was not due
# while the host let it run.
each_second() {
	local nth=0

	gives 0 "$twheel" cron '* * * * * *' --count=3 -- sh -c "$tell" || return
	cat "$dir/out"
	while read -r due run missed ran; do
		[[ $due = *.000+0000 ]] && [ "$(date -d "$due" +%s)000000000" -le "$ran" ] &&
			[ "$run" = "$((++nth))" ] || return 1
		[ "$missed" = 0 ] || return 2
	done <"$dir/out"
	[ "$nth" = 3 ]
}

# A run of 2.2 s, and what becomes of the seconds in it.
missed() {
	local policy

	for policy in once skip burst; do
		gives 0 "$twheel" cron '* * * * * *' --count=2 --missed="$policy" --json -- \
			sh -c "$tell; sleep 2.2" || return
		cat "$dir/out"
		case $policy in
		burst) [ "$(values missed | tail -n 1)" = 0 ] || return ;;
		*) [ "$(values missed | tail -n 1)" -ge 1 ] || return ;;
		esac
		[ "$(awk '!/^{/ { print $3 }' "$dir/out" | tail -n 1)" = "$(values missed | tail -n 1)" ] || return
	done
}

one_in_zone() {
	gives 0 "$twheel" cron --zone=Asia/Kathmandu '* * * * * *' --count=1 --json -- sh -c "$tell" &&
		[[ $(values due) = *+0545 && $(head -n 1 "$dir/out") = *+0545\ 1\ * ]] || return 1
	[[ $(head -n 1 "$dir/out") = *+0545\ 1\ 0\ * ]] || return 2
}

in_zone() {
	in_time one_in_zone &&
		gives 0 env TZ=America/St_Johns "$twheel" cron '0 12 1 1 *' --explain=1 --json &&
		[[ $(values due) = *-01-01T12:00:00.000-0330 ]] &&
		gives 0 env TZ=:Asia/Tokyo "$twheel" cron @daily --explain=1 --json && [[ $(values due) = *+0900 ]] &&
		gives 0 env TZ='XYZ-3:30' "$twheel" cron @daily --explain=1 --json && [[ $(values due) = *+0330 ]] &&
		gives 0 env TZ=CET-1CEST "$twheel" cron '0 12 1 7 *' --explain=1 --json && [[ $(values due) = *+0200 ]] &&
		gives 0 env TZ=Mars/Phobos "$twheel" cron @daily --explain=1 --json && [[ $(values due) = *+0000 ]] &&
		gives 0 env TZDIR=/nowhere "$twheel" cron @daily --zone=UTC --explain=1
}

# In 900 days there are two or three springs; on their day it is 03:00 instead of 02:30.
explains() {
	gives 0 "$twheel" cron '30 2 * * *' --zone=Europe/Berlin --explain=900 --json &&
		[ "$(wc -l <"$dir/out")" = 900 ] || return
	grep '"passed":true' "$dir/out" >"$dir/springs"
	cat "$dir/springs"
	[[ $(wc -l <"$dir/springs") = [23] ]] && [ "$(grep -c -- '-03-.*T03:00:00.000+0200' "$dir/springs")" = \
		"$(wc -l <"$dir/springs")" ] && [ "$(grep -c 'T02:30:00.000+0[12]00.*false' "$dir/out")" = \
		$((900 - $(wc -l <"$dir/springs"))) ] || return
	gives 0 "$twheel" cron '30 2 * * *' --zone=Europe/Berlin --explain=400 &&
		grep -qE '^Sun .*-03-.. 03:00:00 \+0200  in [0-9]+d [0-9]+h, for a time that the clock leaves out$' \
			"$dir/out" && gives 0 "$twheel" every day at 9:00 --explain && [ "$(wc -l <"$dir/out")" = 5 ]
}

# means PHRASE EXPRESSION: each as words, and as one word. One of the times may come meanwhile.
means() {
	in_time mean "$@" && return
	echo "'$1' does not mean '$2'"
	return 1
}

mean() {
	local want

	gives 0 "$twheel" cron "$2" --explain=20 --json || return 1
	want=$(values due)
	# shellcheck disable=SC2086 # words
	gives 0 "$twheel" every $1 --explain=20 --json || return 1
	[ "$(values due)" = "$want" ] || return 2
	gives 0 "$twheel" every "$1" --explain=20 --json || return 1
	[ "$(values due)" = "$want" ] || return 2
}

phrases() {
	means 'day at 9:00' '0 9 * * *' && means 'Day at 09:05' '5 9 * * *' && means day '0 0 * * *' &&
		means 'weekday at noon' '0 12 * * 1-5' && means 'weekend at midnight' '0 0 * * 6,0' &&
		means 'monday at 18:30:15' '15 30 18 * * 1' && means 'mon,thursday at 0:00' '0 0 * * 1,4' &&
		means 'tue-saturday at 6:00' '0 6 * * 2-6' && means 'week on fri at 17:00' '0 17 * * 5' &&
		means 'month' '0 0 1 * *' && means 'month on 1,15 at 6:00' '0 6 1,15 * *' &&
		means 'month on last at 23:59' '59 23 L * *' && means hour '0 * * * *' &&
		means 'hour at :15' '15 * * * *' && means minute '* * * * *'
}

no_phrases() {
	local phrase

	for phrase in 'day at 24:00' 'day at 9' 'day at 9:0x' 'day at' 'fri at -1:00' week 'week on' mo \
			monda mon- 'mon,' 'month on' 'hour at 15' 'hour at :60' 'day at 9:00:60'; do
		# shellcheck disable=SC2086 # words
		says "invalid duration or time '${phrase%% *}'" "$twheel" every $phrase --explain || return
	done
	says "invalid duration or time 'day at noon x'" "$twheel" every 'day at noon x' -- true &&
		says "day '32' is not in 1-31" "$twheel" every month on 32 -- true
}

refuses() {
	says "missing expression after 'cron'" "$twheel" cron &&
		says "missing command after 'cron'" "$twheel" cron '* * * * *' &&
		says "missing command after 'every'" "$twheel" every day at 9:00 &&
		says "hour '24' is not in 0-23" "$twheel" cron '0 24 * * *' -- true &&
		says "'0 0 31 2 *' is never due" "$twheel" cron '0 0 31 2 *' -- true &&
		says "unknown time zone 'Mars/Phobos'" "$twheel" cron @daily --zone=Mars/Phobos -- true &&
		says "unknown time zone '../zoneinfo/UTC'" "$twheel" cron @daily --zone=../zoneinfo/UTC -- true &&
		says "invalid argument 'delay' for '--missed'" "$twheel" cron @daily --missed=delay -- true &&
		says "invalid argument 'once' for '--missed'" "$twheel" every 5s --missed=once -- true &&
		says "invalid duration 'x'" "$twheel" cron @daily --jitter=x -- true &&
		says "invalid number '0'" "$twheel" cron @daily --explain=0 &&
		says "'--zone', '--jitter' and '--explain' are for times by the calendar" \
			"$twheel" every 5s --zone=UTC -- true &&
		says "option '--fixed-delay' is not allowed with times by the calendar" \
			"$twheel" every day --fixed-delay -- true &&
		says "options '--fixed-delay' and '--missed' exclude each other" \
			"$twheel" every 5s --missed=skip --fixed-delay -- true &&
		says "option '--zone' is not allowed here" "$twheel" after 1s --zone=UTC -- true
}

file() {
	cat >"$dir/jobs" <<-END
		cron '* * * * * *' --count=1 --zone=Asia/Tokyo -- echo cron \$TWHEEL_RUN \$TWHEEL_DUE
		every day at 9:00 --now --count=1 -- echo now \$TWHEEL_RUN \$TWHEEL_MISSED
		every mon,tue --now --count=1 --missed=burst -- echo days
	END
	gives 0 "$twheel" run "$dir/jobs" && cat "$dir/out" && grep -qx 'cron 1 .*+0900' "$dir/out" &&
		grep -qx 'now 1 0' "$dir/out" && grep -qx days "$dir/out" || return
	cat >"$dir/jobs" <<-END
		cron '* * * *' -- true
		every day at 25:00 -- true
		every day at 9:00 true -- true
		cron @daily --explain -- true
		cron -- true
	END
	gives 125 "$twheel" run "$dir/jobs" && diff - "$dir/err" <<-END
		$twheel:$dir/jobs:1: it has 4 fields, not 5 or 6
		$twheel:$dir/jobs:2: invalid duration or time 'day'
		$twheel:$dir/jobs:3: unexpected 'true'
		$twheel:$dir/jobs:4: option '--explain' is not allowed here
		$twheel:$dir/jobs:5: missing expression after 'cron'
	END
}

# Later by some time that is not always the same, and due as without.
jitter() {
	gives 0 "$twheel" cron '* * * * * *' --jitter=400ms --count=4 -- sh -c "$tell" || return
	cat "$dir/out"
	[ "$(grep -c '^[^ ]*\.000+0000 ' "$dir/out")" = 4 ] &&
		[ "$(awk '{ print substr($4, 11, 2) }' "$dir/out" | sort -u | wc -l)" -gt 1 ]
}

# All commands are told; times of a period as well, and nothing of an outer twheel stays.
told() {
	gives 0 env TWHEEL_RUN=77 TWHEEL_MISSED=77 "$twheel" after 1ms -- env &&
		[ "$(grep -c '^TWHEEL_\(RUN=1\|MISSED=0\|DUE=20.*+0000\)$' "$dir/out")" = 3 ] &&
		[ "$(grep -c '^TWHEEL_\(RUN\|MISSED\|DUE\)=' "$dir/out")" = 3 ] && in_time told_missed
}

# The first run misses none, if the host lets it begin; the others about three each.
told_missed() {
	gives 0 "$twheel" every 100ms --count=3 -- sh -c 'echo $TWHEEL_RUN $TWHEEL_MISSED; sleep 0.35' || return 1
	cat "$dir/out"
	[ "$(cut -d ' ' -f 1 "$dir/out" | xargs)" = "1 2 3" ] && [ "$(sed 1d "$dir/out" | grep -cE ' ([2-9]|[1-9][0-9]+)$')" = 2 ] ||
		return 1
	[ "$(head -n 1 "$dir/out")" = "1 0" ] && ! grep -q ' ..' "$dir/out" || return 2
}

# The clock is watched by a thread, which a signal does not wait for.
signals() {
	local pid status=0

	"$twheel" cron @yearly -- true &
	pid=$!
	sleep 0.3
	kill "$pid"
	wait "$pid" || status=$?
	[ "$status" = 143 ]
}

completion() {
	completes cron twheel cr && completes --zone= twheel cron @daily --z &&
		completes Europe/Berlin twheel cron @daily --zone = Europe/Berl && completes UTC twheel every day --zone = UT &&
		completes weekday twheel every weekd && completes once twheel cron @daily --missed = o &&
		completes mkfifo twheel cron @daily mkfif && completes delay twheel every 5s --missed = d
}

echo 1..12
point "cron: each second, in order, and never early" in_time each_second
point "cron: missed times" missed
point "zones, by name and by TZ" in_zone
point "--explain prints the next times, and times that the clock skips" explains
point "every: phrases mean what cron does" phrases
point "every: bad phrases are refused" no_phrases
point "bad expressions are refused with a reason" refuses
point "run: lines with calendar times" file
point "--jitter delays runs" jitter
point "a command learns when it was due, its run, and missed times" told
point "a signal ends twheel" signals
point "completion" completion
exit $bad
