#!/bin/busybox sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# shellcheck shell=dash
#
# In the machine of cord.py: a daemon whose state is on a disk, and a client that asks for runs for as long as there is
# power. With "calm" on the kernel's command line the client asks for nothing more, waits until all is over, and ends the
# daemon. What runs, what was accepted and what the daemon says are lines on standard output.
export TWHEELD_SOCKET=/tmp/socket

die() {
	echo "failed: $*"
	exit 1
}

# job NAME MS OPTION...: a job whose runs tell of themselves, and take so long
job() {
	local name=$1 ms=$2

	shift 2
	twheel-job add "$name" --missed=all "$@" -- /twheel/mark /dev/ttyS2 "$ms" || die "no job $name"
}

# A boot may have been the last one in the middle of this.
jobs() {
	job rate0 0 --every=500ms --overlap=queue --queue=10000 --replace
	job rate1 0 --every=700ms --overlap=queue --queue=10000 --replace
	job skip0 600 --every=500ms --overlap=skip --replace
	job shot0 0 --overlap=allow --replace
	job shot1 50 --overlap=allow --replace
	job shot2 0 --overlap=queue --queue=10000 --replace
	job shot3 200 --overlap=allow --replace
}

begin() {
	mkdir -p /disk
	mount -t ext4 /dev/nvme0n1 /disk || die "there is no disk"
	twheeld --state=/disk/state --socket=$TWHEELD_SOCKET --cgroup=none 2>&1 &
	daemon=$!
	until twheel-job ls --json >/tmp/jobs 2>/dev/null; do
		kill -0 $daemon || die "twheeld has ended"
		sleep 0.1
	done
	grep -q shot3 /tmp/jobs || jobs >/dev/null
	echo "ready"
}

ask() {
	local nr=0

	while :; do
		twheel-job run shot$((nr % 4)) --after=$((nr * 377 % 1500))ms --json || die "twheel-job"
		nr=$((nr + 1))
	done
}

names() { twheel-job ls --json | sed 's/.*"name":"\([^"]*\)".*/\1/'; }

# Of runs that are not over, the client prints a state and no outcome.
left() { twheel-job runs --limit=1000 --json | grep -v '"state":"over"'; }

calm() {
	sleep 5	# what was accepted before the power failed is due now
	for name in $(names); do
		twheel-job pause "$name" || die "$name is not paused"
	done
	while left >/dev/null; do
		sleep 0.5
	done
	for name in $(names); do
		twheel-job rm "$name" || die "$name is not removed"
	done
	kill $daemon
	wait $daemon || die "twheeld ended with status $?"
	umount /disk || die "the disk is busy"
	echo "calm"
}

begin
if grep -qw calm /proc/cmdline; then
	calm
else
	ask
fi
