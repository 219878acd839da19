#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# test-install.sh: make install and make uninstall, into a directory.
# shellcheck disable=SC2317 # point calls the functions
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftest/lib/tap.sh
. "$top/selftest/lib/tap.sh"
cd "$top"

export DESTDIR=$top/build/install
config=$DESTDIR/etc/modprobe.d/twheel.conf

# Files, in the order of the C locale; the pages and the modules are counted below.
installs() {
	rm -rf "$DESTDIR"
	quiet make install || return
	diff - <(cd "$DESTDIR" && find . ! -type d -printf '%m %P\n' |
		 grep -v -e /share/man/ -e lib/modules/ | LC_ALL=C sort -k 2) <<-END
		644 etc/modprobe.d/twheel.conf
		644 etc/modules-load.d/twheel.conf
		755 usr/bin/twheel
		644 usr/include/libtwheel-sched.h
		644 usr/include/libtwheel.h
		644 usr/include/linux/twheel.h
		644 usr/lib/libtwheel.a
		777 usr/lib/libtwheel.so
		777 usr/lib/libtwheel.so.1
		644 usr/lib/libtwheel.so.1.0.0
		644 usr/lib/pkgconfig/libtwheel.pc
		644 usr/lib/sysusers.d/twheel.conf
		644 usr/lib/udev/rules.d/60-twheel.rules
		644 usr/share/bash-completion/completions/twheel
	END
}

modules_there() {
	local dir

	dir=$DESTDIR/lib/modules/$(kernel_release)
	diff - <(find "$dir" -name '*.ko*' -printf '%f\n' | LC_ALL=C sort) <<-END
		twheel.ko
		twheel_chardev.ko
	END
}

# depmod makes the node's entry for kmod from the module's aliases.
device_known() {
	local release dir status=0

	release=$(kernel_release) dir=$DESTDIR/lib/modules/$(kernel_release)
	touch "$dir/modules.builtin" "$dir/modules.order"
	/sbin/depmod -b "$DESTDIR" "$release"
	grep -x 'twheel_chardev twheel c10:250' "$dir/modules.devname" || status=1
	grep -x 'alias char-major-10-250 twheel_chardev' "$dir/modules.alias" || status=1
	rm "$dir"/modules.*
	return "$status"
}

page() { MANPATH=$DESTDIR/usr/share/man man -P cat "$@" >/dev/null; }
pages_found() { page 4 twheel && page 1 twheel && page 3 twheel_mod; }

keeps_edits() {
	echo '# mine' >>"$config"
	quiet make install && grep -q '# mine' "$config"
}

uninstalls() {
	quiet make uninstall
	diff <(echo "$config") <(find "$DESTDIR" ! -type d)
}

mkdir -p build
echo 1..6
point "it installs" installs
point "the modules too" modules_there
point "depmod sees that opening the device loads them" device_known
point "the manual pages are found" pages_found
point "a configuration that was edited stays" keeps_edits
point "it uninstalls, and leaves what was edited" uninstalls
exit $bad
