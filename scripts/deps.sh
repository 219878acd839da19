#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# deps.sh GROUP...: install the packages that the groups need and that are missing. If none is
# missing, this needs neither network nor root.
# deps.sh --list GROUP...: print the packages of the groups. commands.py checks that they are
# enough. This is the only list of packages.
. "$(dirname "$0")/lib.sh"

packages() {
	case $1 in
	build)	echo make gcc libc6-dev; headers ;;
	modules) echo make gcc; own_headers ;;
	native)	echo make gcc libc6-dev ;;
	check)	echo ccache ;;
	lib)	echo make gcc libc6-dev ;;
	command) packages lib; echo libjson-c-dev libncurses-dev ;;
	libtest) packages command; echo binutils g++ pkg-config gnuplot-nox python3 bsdutils
		echo python3-prometheus-client systemd ;;
	calendar) echo make gcc libc6-dev libc-bin libjson-c-dev tzdata systemd ;;
	jobs)	packages lib; echo libcurl4-gnutls-dev libjson-c-dev libmicrohttpd-dev libpq-dev libsqlite3-dev
		echo uthash-dev ;;
	jobstest) packages jobs; echo iproute2 tzdata python3 procps systemd ;;
	jobs_pg) packages jobstest; echo curl postgresql ;;
	check-jobs) packages jobs_pg; packages build; packages rig; echo e2fsprogs nftables libfaketime ;;
	jobs_page) packages jobstest; echo chromium ;;
	rust)	packages lib; echo rustc cargo librust-libc-dev librust-tokio-dev ;;
	python)	packages lib; echo python3 mypy ;;
	examples) packages lib; echo libevent-dev libuv1-dev liburing-dev python3; packages rust ;;
	# coccinelle looks for libpython3.11.so, which the library's own package does not have.
	migrate) packages build; echo coccinelle libpython3-dev python3 ;;
	users)	packages migrate; packages rig; echo bash binutils ipvsadm iproute2 iptables iperf3 iputils-ping
		echo kmod ncat netcat-openbsd procps wireguard-tools xz-utils ;;
	man)	echo scdoc ;;
	install) packages build; packages command; packages jobs; packages man; echo kmod ;;
	installtest) packages install; packages rust; echo cmake g++ pkg-config man-db ;;
	htmldocs) packages build; packages man; echo man-db perl python3-sphinx ;;
	deb)	packages command; packages jobs; packages man; echo dpkg-dev debhelper dh-dkms dh-python python3 fakeroot lintian ;;
	releasetest) packages lint; echo dpkg-dev ;;
	deb-check) packages deb; packages rig; echo debootstrap e2fsprogs ;;
	lint)	packages man; echo mandoc man-db groff git make gcc g++ libc6-dev perl xz-utils sparse codespell shellcheck dwarves abigail-tools
		echo shfmt python3 reuse python3-debian ;;
	uapi)	echo make gcc libc6-dev liburing-dev gcc-12-multilib libc6-dev-i386 ;;
	rig)	echo qemu-system-x86 busybox-static cpio gzip ;;
	fuzz)	packages jobs; echo make clang libclang-rt-dev libc6-dev ;;
	prove)	echo make gcc libc6-dev spin python3-z3 ;;
	coverage) echo gcovr ;;
	bench)	echo make gcc libc6-dev libbsd-dev pkg-config valgrind ;;
	bench-user) echo make gcc libc6-dev liburing-dev libevent-dev ;;
	bench-lib) echo make gcc libc6-dev libevent-dev libuv1-dev valgrind git ;;
	bench-peers) echo libdpdk-dev libnetty-java default-jdk-headless ;;
	bench-jobs) packages jobs_pg; echo postgresql-15-cron libquartz2-java libpostgresql-jdbc-java default-jdk-headless nodejs unzip ;;
	pictures) echo gnuplot-nox ;;
	matrix)	packages kernel; echo gcc-aarch64-linux-gnu gcc-arm-linux-gnueabihf gcc-s390x-linux-gnu
		echo libc6-dev-arm64-cross libc6-dev-armhf-cross libc6-dev-s390x-cross
		echo qemu-system-arm qemu-system-misc debian-archive-keyring ;;
	kernel)	echo make gcc libc6-dev bc bison flex libelf-dev patch xz-utils ;;
	patches) packages kernel; packages rig
		echo gcc-aarch64-linux-gnu sparse perl python3 python3-sphinx git diffutils tar ;;
	uml)	echo make gcc libc6-dev bc bison flex patch xz-utils busybox-static cpio gzip ;;
	*)	die "no such group: $1" ;;
	esac
}

# Any kernel headers will do. If there are none, install those of the smallest kernel that boots in
# QEMU.
headers() {
	"$top/scripts/kdir.sh" >/dev/null 2>&1 || echo "linux-headers-cloud-$(dpkg --print-architecture)"
}

# For modules that are to be loaded here: headers of the running kernel, if Debian has them.
own_headers() {
	apt-cache show "linux-headers-$(uname -r)" >/dev/null 2>&1 || { headers; return; }
	echo "linux-headers-$(uname -r)"
}

installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

list=
[ "${1:-}" != --list ] || { list=1; shift; }
wanted=$(for group; do packages "$group"; done | tr ' ' '\n' | sort -u)
[ -z "$list" ] || { echo "$wanted"; exit; }
missing=()
for package in $wanted; do
	installed "$package" || missing+=("$package")
done
[ ${#missing[@]} != 0 ] || exit 0

note "installing ${missing[*]}"
apt update || note "apt-get update failed; trying without"
apt install -y --no-install-recommends "${missing[@]}"
