#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# ipvs_cost.sh CONNECTIONS...: in the guest, measure what IPVS costs with Debian's timers, with ours in
# /twheel/ip_vs.ko, and with ours that may be late, in /twheel/ip_vs_tolerant.ko. Prints a tab-separated line for each: which timers; what ipvs_load prints; us of the
# longest pass of timers in a softirq while the connections ended, and how many passes there were; and
# for each connection, bytes of slab.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
trace=/sys/kernel/tracing
timeout=60
packets=100000

load() {
	modprobe nf_conntrack && modprobe nf_defrag_ipv6 && modprobe libcrc32c || return
	case $1 in
	timer_list)	modprobe ip_vs conn_tab_bits=20 && modprobe ip_vs_rr; return ;;
	twheel)		insmod /twheel/ip_vs.ko conn_tab_bits=20 ;;
	tolerant)	insmod /twheel/ip_vs_tolerant.ko conn_tab_bits=20 ;;
	esac && insmod /twheel/ip_vs_rr.ko
}

service() {
	ip link set lo up
	ip addr add 10.255.0.1/32 dev lo 2>/dev/null
	ipvsadm --set 0 0 $timeout
	ipvsadm -A -u 10.255.0.1:9 -s rr && ipvsadm -a -u 10.255.0.1:9 -r 10.255.0.1:9 -g
}

# TIMER_SOFTIRQ is 1, HRTIMER_SOFTIRQ 8.
watch() {
	echo mono >$trace/trace_clock
	echo 16384 >$trace/buffer_size_kb
	echo 'vec == 1 || vec == 8' >$trace/events/irq/softirq_entry/filter
	echo 'vec == 1 || vec == 8' >$trace/events/irq/softirq_exit/filter
	echo >$trace/trace
	echo 1 | tee $trace/events/irq/softirq_entry/enable >$trace/events/irq/softirq_exit/enable
}

passes() {
	echo 0 | tee $trace/events/irq/softirq_entry/enable >$trace/events/irq/softirq_exit/enable
	awk '{ sub(":", "", $4); time = 0 + $4 }
	     /softirq_entry/ { begin = time }
	     /softirq_exit/ && begin { n++; took = time - begin; if (took > most) most = took }
	     END { printf "%.0f\t%d\n", most * 1e6, n }' $trace/trace
}

# After the packets, and before the first connection can end.
watch_late() { sleep $((timeout - 5)); watch; }

cost() {
	local figures watcher

	load "$1" && service || return
	watch_late &
	watcher=$!
	figures=$(/twheel/ipvs_load 10.255.0.1 "$2" $packets $timeout) || return
	wait $watcher
	printf '%s\t%s\t%s\t%s\n' "$1" "$figures" "$(passes)" "$(cat /sys/kernel/slab/ip_vs_conn/slab_size)"
	ipvsadm -C
	sleep 1
	rmmod ip_vs_rr ip_vs
}

status=0
for nr; do
	for kind in timer_list twheel tolerant; do
		cost $kind "$nr" || status=1
	done
done
exit $status
