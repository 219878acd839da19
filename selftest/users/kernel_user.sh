#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# kernel_user.sh debian|twheel MODULE TEST: in the guest, run the kernel's unchanged selftest for MODULE,
# with the module that uses Debian's timers or ours. Prints how many steps the test reported, so that
# the two can be compared.
# shellcheck disable=SC2317 # point calls the functions
# shellcheck source=selftest/lib/tap.sh
. /twheel/tap.sh
kind=$1 module=$2 test=$3
export PATH=/usr/sbin:/usr/bin:/sbin:/bin

# Timers of twheel's make its module busy.
loaded() {
	modprobe "$module" || return
	if [ "$kind" = twheel ]; then
		[ -e "/sys/module/twheel/holders/$module" ]
	else
		! [ -e "/sys/module/twheel/holders/$module" ]
	fi
}

# netns.sh sleeps by waiting for a line from its stdin, and takes files from /dev/fd.
passes() {
	local status=0

	[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
	mkfifo /tmp/silence
	(cd /tmp && exec "$test") >/tmp/steps 2>&1 <>/tmp/silence || status=$?
	tail -n 50 /tmp/steps
	return "$status"
}

# The lines in which the tests say what they do next: ipvs.sh, and netns.sh.
steps() { grep -cE '^Testing |\[\+\]' /tmp/steps; }

# A namespace that has been deleted is cleaned up a little later, and what it has of the module.
unloads() {
	local i

	for i in {1..150}; do
		# shellcheck disable=SC2046 # words
		rmmod $(ls "/sys/module/$module/holders") "$module" 2>/tmp/why && return
		sleep 0.2
	done
	echo "after $i tries:" && cat /tmp/why && lsmod
	return 1
}

echo 1..4
point "$module has timers of $kind" loaded
point "${test##*/} passes" passes
echo "# ${test##*/} told $(steps) steps"
point "${test##*/} reported its steps" [ "$(steps)" -gt 0 ]
point "$module unloads" unloads
# shellcheck disable=SC2154
exit "$bad"
