#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# deb-check.sh: do the packages work? Make a Debian with debootstrap, of the codename DEBIAN=, by
# default Debian 12. Install the packages there that were built here; DKMS builds the modules
# for its kernel. Run debian/tests, and boot it in QEMU, where selftest/deb/check uses the packages
# as ordinary users. Then purge them, and build them there.
#
# Needs root, for debootstrap and chroot, 3 GiB in build/deb-check, and 300 MB to download.
# PACKAGES= skips building the packages in build/deb. Packages downloaded for debootstrap stay in
# the cache.
# shellcheck disable=SC2317 # point calls the functions
. "$(dirname "$0")/../lib.sh"
# shellcheck source=selftest/lib/tap.sh
. "$top/selftest/lib/tap.sh"
cd "$top"

work=$top/build/deb-check
. scripts/packages/root.sh

# Install the kernel first: DKMS builds for the kernels that are installed.
kernel() {
	inside apt-get -qq install -y --no-install-recommends linux-image-cloud-amd64 linux-headers-cloud-amd64
}

installs() {
	as_root cp build/deb/{twheel-dkms,libtwheel1,libtwheel-dev,librust-twheel-dev,twheel-tools,twheeld,twheeld-postgresql}_*.deb build/deb/python3-twheel_*.deb "$root/tmp" &&
		inside sh -c 'apt-get -qq install -y --no-install-recommends /tmp/*.deb'
}

published() {
	diff <(scripts/packages/published.sh 2>/dev/null | sed -n 's/^Homepage: //p') \
		<(dpkg-deb -f build/deb/libtwheel1_*.deb Homepage | sed '/^$/d')
}

release() { basename "$root"/lib/modules/*; }

built() {
	inside dkms status | tee "$work/dkms" | grep "^twheel/.*, $(release), .*: installed$"
}

# Build the tutorial's programs with nothing but what was installed. They run when it has booted.
compiles() {
	rm -rf "$work/tutorial"
	mkdir -p "$work/tutorial"
	awk -v dir="$work/tutorial" -f scripts/docs/programs.awk doc/tutorial.md
	as_root cp -r "$work/tutorial" "$root/opt"
	inside apt-get -qq install -y --no-install-recommends pkg-config gcc libc6-dev || return
	# shellcheck disable=SC2016 # the inner shell's
	inside sh -ec 'cd /opt/tutorial
		for file in *.c; do gcc -O2 -o "${file%.c}" "$file" $(pkg-config --cflags --libs libtwheel); done'
}

# Build another project's module against what DKMS keeps of its build.
sample() {
	as_root cp -r samples "$root/opt"
	# shellcheck disable=SC2016 # the inner shell's
	inside sh -ec 'make -C "$(echo /lib/modules/*/build)" M=/opt/samples KCFLAGS="-I$(echo /usr/src/twheel-*)" \
		KBUILD_EXTRA_SYMBOLS="$(echo /var/lib/dkms/twheel/[0-9]*/*/*/Module.symvers)" modules'
}

# Run the packages' tests as Debian's own machines do, but all in one machine.
autopkgtest() {
	local log=$root/root/autopkgtest

	sources_to root/tests &&
		inside apt-get -qq install -y --no-install-recommends autopkgtest || return
	inside autopkgtest --summary-file=/root/autopkgtest --no-built-binaries /root/tests -- null
	as_root cat "$log"
	[ "$(as_root grep -c ' PASS$' "$log")" = "$(grep -c ^Tests: debian/tests/control)" ]
}

# Users in the group and not, and what is to happen at boot.
prepare() {
	inside sh -c 'useradd -m -G twheel member && useradd -m stranger && echo twheel-check >/etc/hostname' &&
		as_root install selftest/deb/check "$root/usr/local/sbin/twheel-check" &&
		as_root install -m 644 selftest/deb/twheel-check.service "$root/etc/systemd/system" &&
		inside systemctl enable twheel-check.service && inside systemctl disable twheeld.service
}

image() {
	inside apt-get clean
	as_root rm -f "$work/disk"
	as_root mke2fs -q -t ext4 -d "$root" "$work/disk" 3G
}

boots() {
	DISK=$work/disk APPEND="root=/dev/vda rw loglevel=7" scripts/machines/qemu.sh "$root/boot/vmlinuz-$(release)" \
		"$root/boot/initrd.img-$(release)" 300 "$work" >"$work/tap"
}

purges() {
	inside dpkg --purge twheeld-postgresql twheeld librust-twheel-dev python3-twheel twheel-tools libtwheel-dev libtwheel1 twheel-dkms &&
		! as_root find "$root"/{etc,usr,var/lib/dkms,lib/modules} -name '*twheel*' \
			! -name '*twheel-check*' | grep .
}

# Build with what Build-Depends names, and what every Debian builds packages with. Its lintian may
# report other things than that of `make deb`.
builds() {
	sources_to root/source/twheel
	inside sh -exc 'cd /root/source/twheel
		apt-get -qq install -y --no-install-recommends build-essential fakeroot lintian
		apt-get -qq build-dep -y --no-install-recommends ./
		dpkg-buildpackage -us -uc
		lintian --allow-root --fail-on error,warning --tag-display-limit 0 ../*.changes'
}

# Install as the README says for systems without packages.
from_source() {
	sources_to root/twheel
	# shellcheck disable=SC2016 # the inner shell's
	inside sh -exc 'cd /root/twheel
		make && make install
		twheel after 10ms
		grep -x "twheel_chardev twheel c10:250" /lib/modules/*/modules.devname
		modinfo -k "$(ls /lib/modules)" -n twheel_chardev
		make uninstall
		[ ! -e /usr/local/bin/twheel ] && ! modinfo -k "$(ls /lib/modules)" -n twheel_chardev'
}

scripts/deps.sh deb deb-check
echo 1..14
[ -n "${PACKAGES:-}" ] || quiet scripts/packages/deb.sh
step "the packages say where the tree is published, if anywhere" published
step "a Debian $DEBIAN is made" bootstrap systemd-sysv,udev,kmod,initramfs-tools,zstd
step "with a kernel, and its headers" kernel
step "the packages are installed" installs
step "DKMS has built the modules" built
step "the tutorial is compiled" compiles
step "so is the sample, a module that uses twheel.h" sample
step "debian/tests passes" autopkgtest
step "users are made" prepare
step "an image is made" image
point "the machine boots, and the packages work" boots
sed 's/^/    /' "$work/tap"
[ $bad = 0 ] || exit 1
step "they are purged, and leave nothing" purges
step "they can be built there" builds
step "make install and make uninstall do as well" from_source
as_root rm -rf "$root" "$work/disk"
exit $bad
