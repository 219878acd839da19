#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# systemd.sh: compare cron_next() with systemd's calendar, where both have the same rules: at hours that
# no change of a clock touches, or in a zone without changes. Left out are expressions with both a day
# of the month and a weekday, which systemd cannot express; and steps from day 1 on with weekdays, for
# which systemd 252 misses 1 January.
#
#	O=dir	where next is
# shellcheck disable=SC2317 # point calls the functions
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
# shellcheck source=selftest/lib/tap.sh
. "$top/selftest/lib/tap.sh"

next=${O:-$top/build/calendar}/next n=200

# systemd SPECIFICATION AFTER: the next times, in s since 1970
systemd() {
	TZ=UTC LC_ALL=C systemd-analyze calendar --iterations="$n" --base-time="@$2" "$1" |
		sed -nE 's/^ *(Next elapse|Iteration #[0-9]+|Iter\. #[0-9]+): (.*)/\2/p' |
		date -f - +%s
}

# ours ZONE CRON AFTER: the same. systemd's calendar ends with the year 2199.
ours() { "$next" "$1" "$2" "$3" "$n" | awk '$1 < 7258118400'; }

# same ZONE CRON SYSTEMD: from the beginning of 2026, and from 2039, where files have no transitions
same() {
	local after

	for after in 1767225600 2177452800; do
		diff <(systemd "$3 $1" "$after") <(ours "$1" "$2" "$after") || return
	done
	[ "$(ours "$1" "$2" 1767225600 | wc -l)" -gt 40 ]
}

points=(
	'UTC|*/7 * * * *|*-*-* *:0/7:0'
	'UTC|0 0 * * *|*-*-* 0:0:0'
	'UTC|30 2 * * 1-5|Mon..Fri *-*-* 2:30:0'
	'UTC|5,35 8-18/2 * * *|*-*-* 8..18/2:5,35:0'
	'UTC|0 0 1 */3 *|*-1/3-1 0:0:0'
	'UTC|0 0 L * *|*-*~1 0:0:0'
	'UTC|0 12 29 2 *|*-2-29 12:0:0'
	'UTC|0 12 2-30/7 * */5|Sun,Fri *-*-2..30/7 12:0:0'
	'UTC|*/20 30 4 13 * *|*-*-13 4:30:0/20'
	'Europe/Berlin|30 12 * * *|*-*-* 12:30:0'
	'Europe/Berlin|0 6,18 * * sat,sun|Sat,Sun *-*-* 6,18:0:0'
	'America/New_York|0 9 1-7 * */7|Sun *-*-1..7 9:0:0'
	'Australia/Lord_Howe|15 14 * jan,jul *|*-1,7-* 14:15:0'
	'Asia/Kathmandu|0 0 * * 3|Wed *-*-* 0:0:0'
	'Pacific/Apia|45 23 31 * *|*-*-31 23:45:0'
)

echo "1..${#points[@]}"
for line in "${points[@]}"; do
	IFS='|' read -r zone cron systemd <<<"$line"
	point "'$cron' in $zone" same "$zone" "$cron" "$systemd"
done
exit $bad
