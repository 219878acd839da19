#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# kernel-users.sh: kernel code by others that uses twheel; `make kernel-users`. IPVS and WireGuard are
# taken from Debian's package of the kernel's source, translated by scripts/migrate.sh, built for
# Debian's kernel, and booted. The kernel's own selftests for them, unchanged, run with Debian's
# modules, with the translated ones, and with the translated ones once more in the debugging kernel
# of `make debug`, which must not report anything. Then the cost of IPVS is measured with both, and
# with a third that lets its timers be late by an eighth, as timer_list does. Ends with the line "N
# passed, N failed".
#
#	ONLY=s	some of the suites: translate, ipvs-debian, ipvs-twheel, ipvs-same, wireguard-debian,
#		wireguard-twheel, wireguard-same, debugging, ipvs-debug, wireguard-debug, cost. The rest of
#		the table is that of the last run
#	CONNECTIONS=n	how many connections IPVS has in the suite cost
#	DOC=f	write a table there
. "$(dirname "$0")/../lib.sh"
cd "$top"

: "${CONNECTIONS:=1000 100000 1000000}"
log=build/users
. scripts/suite.sh
. scripts/long/measured.sh

source=$top/$log/linux		# of the kernel, as it is
ours=$top/$log/twheel		# translated, and in "tolerant" IPVS with tolerances
beside=$top			# where the twheel.ko is that they are built for
programs=(bash=/bin/sh bash=/bin/bash ip ss ipvsadm nc.openbsd=/usr/bin/nc timeout cmp dd sysctl mktemp modprobe=/sbin/modprobe
	lsmod rmmod wg iperf3 ping ping=/usr/bin/ping6 ncat xtables-legacy-multi=/usr/sbin/iptables)

wanted() { [[ " ${ONLY:-$1} " == *" $1 "* ]]; }

# The kernel's sources and its tests.
unpacked() {
	local deb version=6.1

	deb=$(scripts/kernels/kernel-source.sh $version)
	mkdir -p "$source"
	dpkg-deb --fsys-tarfile "$deb" | tar -xO "./usr/src/linux-source-$version.tar.xz" |
		tar -xJ -C "$source" --strip-components=1 --wildcards '*/net/netfilter/ipvs/*' \
			'*/include/net/ip_vs.h' '*/drivers/net/wireguard/*' \
			'*/tools/testing/selftests/netfilter/ipvs.sh' '*/tools/testing/selftests/wireguard/netns.sh'
}

copied() {
	rm -rf "$ours"
	mkdir -p "$ours"
	cp -r "$source/net/netfilter/ipvs" "$source/drivers/net/wireguard" "$ours"
	mkdir "$ours/ipvs/net"
	cp "$source/include/net/ip_vs.h" "$ours/ipvs/net"
}

# translated DIRECTORY: translate it; nothing may be left to do by hand
translated() {
	local files left

	mapfile -t files < <(cd "$ours/$1" && find . -name '*.[ch]' | sort)
	left=$(cd "$ours/$1" && "$top/scripts/migrate.sh" timer_list -I . "${files[@]}") || return
	[ -z "$left" ] || { echo "$left"; return 1; }
}

# tolerant: copy the translated IPVS, before it is built, and give its timers a tolerance; none may stay exact
tolerant() {
	local left

	cp -r "$ours/ipvs" "$ours/tolerant"
	left=$(cd "$ours/tolerant" && "$top/scripts/migrate.sh" tolerance -I . ./*.c) || return
	[ -z "$left" ] || { echo "$left"; return 1; }
}

# built DIRECTORY OPTION: build it for KDIR without a warning. IPVS must find its own ip_vs.h before the kernel's.
built() {
	quiet make -s -j"$(nproc)" -C "$KDIR" M="$ours/$1" "$2=m" KCFLAGS=-Werror \
		NOSTDINC_FLAGS="-nostdinc -I$ours/$1 -I$beside" KBUILD_EXTRA_SYMBOLS="$beside/Module.symvers" modules
}

translate() {
	point "the sources are in the package" unpacked || return
	copied
	point "IPVS is translated, and nothing is left" translated ipvs || return
	point "WireGuard is translated, and nothing is left" translated wireguard || return
	point "its timers get a tolerance, and none stays exact" tolerant || return
	cp -r "$ours/ipvs" "$ours/ipvs-debug"
	cp -r "$ours/wireguard" "$ours/wireguard-debug"
	point "IPVS builds beside twheel.ko, without a warning" built ipvs CONFIG_IP_VS || return
	point "IPVS with tolerances does, too" built tolerant CONFIG_IP_VS || return
	point "WireGuard builds beside twheel.ko, without a warning" built wireguard CONFIG_WIREGUARD
}

debug_kernel() { scripts/kernels/own-kernel.sh debug; }

# debugging: build everything for the debugging kernel, too
debugging() {
	local KDIR beside=$ours/debug

	KDIR=$(debug_kernel) || return
	point "twheel.ko builds for the debugging kernel" modules_for "$KDIR" "$beside" CONFIG_TWHEEL_SELFTEST= || return
	point "IPVS does, too, without a warning" built ipvs-debug CONFIG_IP_VS || return
	point "WireGuard does, too, without a warning" built wireguard-debug CONFIG_WIREGUARD
}

# installed NAME: print where the shell finds a program; programs for root are searched too
installed() { PATH=$PATH:/usr/sbin:/sbin command -v "$1"; }

# tree KIND DIR: make the tree that the tests find in the guest: the modules that they load, all
# modules which these need, and the tests themselves. machine() says of which kernel.
tree() {
	local kind=$1 dir=$2

	rm -rf "$dir"
	mkdir -p "$dir"/{kselftest,run,var,usr/sbin,usr/bin,sbin,usr/lib/x86_64-linux-gnu}
	ln -s /run "$dir/var/run"
	cp "$source"/tools/testing/selftests/{netfilter/ipvs.sh,wireguard/netns.sh} "$dir/kselftest"
	cp -r /usr/lib/x86_64-linux-gnu/xtables "$dir/usr/lib/x86_64-linux-gnu"
	if [ "$kind" = debug ]; then
		mkdir -p "$dir/lib/modules/$release"
		touch "$dir/lib/modules/$release"/modules.{order,builtin,builtin.modinfo}
	else
		of_debian "$dir" || return
	fi
	[ "$kind" = debian ] || replaced "$dir/lib/modules/$release"
	depmod -b "$dir" "$release"
}

# of_debian DIR: copy the modules of Debian's kernel
of_debian() {
	local dir=$1 from module

	from=$(scripts/kernels/kernel-modules.sh "$release") || return
	for module in ip_vs_rr ipip veth bridge dummy wireguard xt_length xt_mark xt_nat iptable_{filter,nat,mangle}; do
		modprobe -d "$from" -S "$release" --show-depends "$module"
	done | awk '{ print $2 }' | sort -u | while read -r module; do
		install -D -m 644 "$module" "$dir/${module#"$from/"}"
	done
	cp "$from/lib/modules/$release"/modules.{order,builtin,builtin.modinfo} "$dir/lib/modules/$release"
}

# replaced DIR: replace IPVS and WireGuard by ours, and add twheel.ko
replaced() {
	find "$1" -name 'ip_vs*.ko' -delete -o -name wireguard.ko -delete
	mkdir "$1/extra"
	cp "$ours/ipvs$suffix"/ip_vs{,_rr}.ko "$ours/wireguard$suffix/wireguard.ko" "$beside/twheel.ko" "$1/extra"
	strip -g "$1"/extra/*.ko
}

# archive KIND OUT: write everything that the guest has besides twheel to OUT.gz
archive() {
	local files=() program

	for program in "${programs[@]}"; do
		files+=("$(installed "${program%%=*}")=$(as "$program")")
	done
	tree "$1" "$2.tree" && scripts/machines/userland.sh "$2.gz" "$2.tree" "${files[@]}"
}

# machine NAME KIND MODULE TEST SECONDS: run a test in a machine; ICOUNT= is that of qemu.sh
machine() {
	local name=users-$1 out=$top/$log/$1 kernel='' release=$release beside=$beside suffix=''

	if [ "$2" = debug ]; then
		kernel=$(debug_kernel) && release=$(cat "$kernel/include/config/kernel.release") || return
		beside=$ours/debug suffix=-debug
	fi
	archive "$2" "$out" || return
	cat >"$out.run" <<-END
		mode=selftest cycles=1 seconds=$5 tests=kernel_user.sh,${2/debug/twheel},$3,/kselftest/$4
		tests_slab=65536 tests_all=131072 tests_percpu=16384
	END
	ARCHIVE=$out.gz MEM=2048 KERNEL=${kernel:+$kernel/vmlinuz} \
		scripts/machines/boot.sh "$name" "$5" "$out.run" "$beside"/twheel{,_chardev}.ko \
		selftest/users/kernel_user.sh selftest/lib/tap.sh
}

# as PROGRAM[=PATH]: print where it goes in the guest
as() {
	case $1 in
	*=*) echo "${1#*=}" ;;
	*) installed "$1" ;;
	esac
}

# Both run in one machine, one after the other. A ns is an instruction there.
costs() {
	quiet gcc -O2 -Wall -Wextra -Werror -static -o "$log/ipvs_load" selftest/users/ipvs_load.c
	cp "$ours/tolerant/ip_vs.ko" "$log/ip_vs_tolerant.ko"
	archive debian "$top/$log/cost" || return
	cat >"$log/cost.run" <<-END
		mode=bench tests=ipvs_cost.sh,${CONNECTIONS// /,}
	END
	ICOUNT=1 ARCHIVE=$top/$log/cost.gz MEM=2048 scripts/machines/boot.sh users-cost 7200 "$log/cost.run" \
		twheel.ko twheel_chardev.ko selftest/users/ipvs_cost.sh "$log"/ipvs_load "$log"/ip_vs_tolerant.ko \
		"$ours"/ipvs/ip_vs{,_rr}.ko
}

# same NAME: have both tests reported the same number of steps?
same() {
	local debian twheel

	debian=$(grep -m 1 'told [0-9]* steps' "$log/$1-debian")
	twheel=$(grep -m 1 'told [0-9]* steps' "$log/$1-twheel")
	echo "$debian; with twheel $twheel"
	[ -n "$debian" ] && [ "$debian" = "$twheel" ]
}

# steps LOG: print how many steps the test of that suite reported, and whether it passed
steps() {
	local what=passed

	[ -e "$log/$1.facts" ] || { echo "not run"; return; }
	grep -q '^ok 2 - .* passes$' "$log/$1" || what=failed
	sed -n "s/^# .* told \([0-9]*\) steps\$/\1 steps, $what/p" "$log/$1"
}

table() {
	cat <<-END
		# Kernel code of others on twheel: \`make kernel-users\`

		IPVS and WireGuard of Debian's linux-source-6.1, translated by scripts/migrate.sh ([migrate.md](migrate.md)),
		built for Debian's kernel, and run in QEMU without acceleration.

		$(facts "$log"/*.facts)

		## Their own tests

		The kernel's selftests, unchanged: with the modules of Debian's package; with the modules on twheel; and with the modules
		on twheel in the kernel of \`make debug\`, where a report of KASAN, lockdep, DEBUG_OBJECTS, kmemleak or another detector is a
		failure:

		| test | timer_list | twheel | twheel, debugging kernel |
		|---|---|---|---|
		| netfilter/ipvs.sh | $(steps ipvs-debian) | $(steps ipvs-twheel) | $(steps ipvs-debug) |
		| wireguard/netns.sh | $(steps wireguard-debian) | $(steps wireguard-twheel) | $(steps wireguard-debug) |

		## What IPVS costs

		The test opens connections of UDP with a timeout of 60 s, each by a packet, which arms the timer. Then it sends 100 000
		packets over these connections, and waits until all have ended. The machine has one CPU and HZ=250, and a ns is an
		instruction. The instructions of a packet are those of its whole way, from sendto() to the socket that receives it.
		A connection should end 60 s after its last packet. How late it is counts from then. The test looks at the table of
		connections each ms. The mean takes a connection as ended at the first look that does not find it, so it is up to 1 ms too
		high. "At most" takes the last look that still found one, so it is up to 1 ms too low. A pass is here one TIMER_SOFTIRQ or
		HRTIMER_SOFTIRQ while the connections end. "twheel 1/8" has a tolerance of an eighth of the timeout.
		Slab is an object of IPVS, which has the timer in it. twheel also has two bases of 64 KiB for each CPU.

		| | instructions to make one | a packet | late, mean | late, at most | longest pass | passes | slab a connection |
		|---|---|---|---|---|---|---|---|
	END
	awk -F '\t' '/^(timer_list|twheel|tolerant)\t/ {
		sub("tolerant", "twheel 1/8", $1)
		printf "| %d, %s | %d | %d | %.1f ms | %.1f ms | %.2f ms | %d | %d bytes |\n",
			$2, $1, $3, $4, $5 / 1000, $6 / 1000, $8 / 1000, $9, $10
	}' "$log/cost"
	cat <<-END

		Where twheel is worse by more than 1 %:

		$(losses)

		Passes are the price of being exact: each tick in which a connection ends has its own, and a pass gives way after
		1 024 timers or 200 us, or 1 ms if the CPU is idle. With a tolerance a timer costs more to arm, because twheel chooses the
		tick that most other timers can share. [bench-kernel.md](bench-kernel.md) has what arming costs by itself.
	END
}

# losses: print each figure in which IPVS on twheel is worse than on timer_list
losses() {
	awk -F '\t' '
		BEGIN { split("||instructions to make one|instructions a packet|us late, mean|us late, at most||us of the longest pass|passes|bytes of slab", name, "|") }
		function lost(i) { return name[i] && $i > 1.01 * of[$2, i] }
		$1 == "timer_list" { for (i = 3; i <= 10; i++) of[$2, i] = $i; next }
		/^(twheel|tolerant)\t/ {
			for (i = 3; i <= 10; i++)
				if (lost(i))
					print "* " $2 " connections, " ($1 == "twheel" ? "exact" : "1/8") ": " $i " " \
						name[i] ", timer_list " of[$2, i]
		}' "$log/cost" | grep . || echo "Nowhere."
}

kernel_of() {
	case $1 in
	*debug*) basename "$(debug_kernel)" ;;
	*)	echo "$release" ;;
	esac
}

# run SUITE COMMAND...: run the suite, and note what it was run with
run() {
	wanted "$1" || return 0
	{
		printf 'command\tmake kernel-users\n'
		printf 'kernel\tLinux %s\n' "$(kernel_of "$1")"
		measured_now
	} >"$log/$1.facts"
	suite "$@"
}

scripts/deps.sh build rig migrate users kernel
KDIR=$(scripts/kdir.sh)
export KDIR
release=$(kernel_release)
quiet make -s modules
run translate translate
run ipvs-debian judged ipvs-debian build/qemu/users-ipvs-debian machine ipvs-debian debian ip_vs ipvs.sh 900
run ipvs-twheel judged ipvs-twheel build/qemu/users-ipvs-twheel machine ipvs-twheel twheel ip_vs ipvs.sh 900
run ipvs-same point "ipvs.sh has the same result" same ipvs
# netns.sh gives a ping a second to come back, and a busy host can take longer than that. So time is
# counted in instructions there.
export ICOUNT=8
run wireguard-debian judged wireguard-debian build/qemu/users-wireguard-debian machine wireguard-debian debian wireguard netns.sh 3600
run wireguard-twheel judged wireguard-twheel build/qemu/users-wireguard-twheel machine wireguard-twheel twheel wireguard netns.sh 3600
run wireguard-same point "netns.sh has the same result" same wireguard
run debugging debugging
# In that kernel all takes longer, unless the CPU is fast: ipvs.sh gives a server 0.2 s to begin, and netns.sh has WireGuard
# free so many addresses in one go that this takes some 11 billion instructions, for which the kernel has no 10 s to give.
APPEND=watchdog_thresh=20 ICOUNT=1 run wireguard-debug judged wireguard-debug build/qemu/users-wireguard-debug machine wireguard-debug debug wireguard netns.sh 7200
ICOUNT=1 run ipvs-debug judged ipvs-debug build/qemu/users-ipvs-debug machine ipvs-debug debug ip_vs ipvs.sh 7200
unset ICOUNT
run cost point "the cost of IPVS is measured" costs
[ -z "${DOC:-}" ] || table | document "$DOC"
summary
