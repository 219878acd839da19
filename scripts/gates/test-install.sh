#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# test-install.sh: make install and make uninstall, in a directory, and projects that use the
# installed files.
# shellcheck disable=SC2317 # point calls the functions
. "$(dirname "$0")/../lib.sh"
# shellcheck source=selftest/lib/tap.sh
. "$top/selftest/lib/tap.sh"
cd "$top"

export DESTDIR=$top/build/install
config=$DESTDIR/etc/modprobe.d/twheel.conf

# there DIR: list the files, in the order of the C locale, without the modules, and with one page
there() {
	(cd "$1" && find . ! -type d -printf '%m %P\n' |
		grep -v -e '/man[34]/' -e lib/modules/ | LC_ALL=C sort -k 2)
}

# Whatever PREFIX is, the files for udev and systemd are where these look.
installs() {
	rm -rf "$DESTDIR"
	quiet make install || return
	diff - <(there "$DESTDIR") <<-END
		644 etc/modprobe.d/twheel.conf
		644 etc/modules-load.d/twheel.conf
		644 usr/lib/sysusers.d/twheel.conf
		644 usr/lib/udev/rules.d/60-twheel.rules
		755 usr/local/bin/twheel
		644 usr/local/include/libtwheel-sched.h
		644 usr/local/include/libtwheel.h
		644 usr/local/include/linux/twheel.h
		644 usr/local/lib/cmake/twheel/twheelConfig.cmake
		644 usr/local/lib/cmake/twheel/twheelConfigVersion.cmake
		644 usr/local/lib/libtwheel.a
		777 usr/local/lib/libtwheel.so
		777 usr/local/lib/libtwheel.so.1
		644 usr/local/lib/libtwheel.so.$(version)
		644 usr/local/lib/pkgconfig/libtwheel.pc
		644 usr/local/lib/systemd/system/twheel-run@.service
		644 usr/local/share/bash-completion/completions/twheel
		644 usr/local/share/man/man1/twheel.1
	END
}

elsewhere=(DESTDIR="$top/build/install-elsewhere" PREFIX=/opt/t BINDIR=/b LIBDIR=/opt/t/l/multi INCLUDEDIR=/i/n
	MANDIR=/m SYSCONFDIR=/c UDEVDIR=/u SYSUSERSDIR=/s
	UNITDIR=/n)

# Everything except the modules, whose directory is the kernel's.
installs_elsewhere() {
	rm -rf build/install-elsewhere
	quiet make user_install udev_install headers_install "${elsewhere[@]}" || return
	diff - <(there build/install-elsewhere) <<-END
		755 b/twheel
		644 c/modprobe.d/twheel.conf
		644 c/modules-load.d/twheel.conf
		644 i/n/libtwheel-sched.h
		644 i/n/libtwheel.h
		644 i/n/linux/twheel.h
		644 m/man1/twheel.1
		644 n/twheel-run@.service
		644 opt/t/l/multi/cmake/twheel/twheelConfig.cmake
		644 opt/t/l/multi/cmake/twheel/twheelConfigVersion.cmake
		644 opt/t/l/multi/libtwheel.a
		777 opt/t/l/multi/libtwheel.so
		777 opt/t/l/multi/libtwheel.so.1
		644 opt/t/l/multi/libtwheel.so.$(version)
		644 opt/t/l/multi/pkgconfig/libtwheel.pc
		644 opt/t/share/bash-completion/completions/twheel
		644 s/twheel.conf
		644 u/rules.d/60-twheel.rules
	END
}

# cmake_asks VERSION [ROOT LIBDIR]: configure the project that uses libtwheel
cmake_asks() {
	local root=${2:-$DESTDIR} libdir=${3:-/usr/local/lib}

	quiet cmake -S selftest/install/cmake -B build/install-cmake -DVERSION="$1" -Dtwheel_DIR="$root$libdir/cmake/twheel"
}

cmake_project() {
	rm -rf build/install-cmake
	cmake_asks 1.0 "$@" && quiet cmake --build build/install-cmake -j2 &&
		(cd build/install-cmake && quiet ctest)
}

cmake_elsewhere() { cmake_project "$top/build/install-elsewhere" /opt/t/l/multi; }

cmake_versions() {
	local is wrong

	is=$(version)
	cmake_asks "$is" && cmake_asks "$is;EXACT" && cmake_asks "${is%%.*}" && cmake_asks "1.0...<2" && cmake_asks "1.0...$is" ||
		return
	for wrong in 0.9 "$((${is%%.*} + 1))" "${is%.*}.99" "1.0...<$is" "0.1...0.9" "1.0.99;EXACT"; do
		! cmake_asks "$wrong" 2>/dev/null || { echo "found for $wrong"; return 1; }
	done
}

# pkg_config_project [ROOT LIBDIR]
pkg_config_project() {
	local root=${1:-$DESTDIR} libdir=${2:-/usr/local/lib} out=$top/build/install-pkg-config

	rm -rf "$out"
	mkdir "$out"
	PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_PATH=$root$libdir/pkgconfig \
		quiet make -C selftest/install/pkg-config O="$out" || return
	[ "$(LD_LIBRARY_PATH=$root$libdir "$out/shared"; "$out/static")" = used$'\n'used ]
}

pkg_config_elsewhere() { pkg_config_project "$top/build/install-elsewhere" /opt/t/l/multi; }

# cargo takes crates from one directory. Make it of links to the system's crates, and to ours.
cargo_project() {
	local out=$top/build/install-cargo crates

	crates=$(dirname "$DESTDIR"/usr/local/share/cargo/registry/twheel-*)
	rm -rf "$out"
	mkdir -p "$out/crates"
	ln -s /usr/share/cargo/registry/* "$crates"/* "$out/crates" && cp -r selftest/install/cargo "$out/project" || return
	(cd "$out/project" && [ "$(CARGO_HOME=$out/home CARGO_NET_OFFLINE=true RUSTC=/usr/bin/rustc LIBTWHEEL_DIR=$DESTDIR/usr/local/lib \
		LD_LIBRARY_PATH=$DESTDIR/usr/local/lib CARGO_PROFILE_DEV_DEBUG=0 /usr/bin/cargo --config "source.system.directory='$out/crates'" run --quiet 2>&1 |
		tee /dev/stderr)" = used ])
}

crates_files() { (cd "$DESTDIR/usr/local/share/cargo" && find . -type f -printf '%m %P\n' | LC_ALL=C sort -k 2); }

installs_crate() {
	local crate

	quiet make rust_install || return
	crate=registry/twheel-$(version)
	diff - <(crates_files) <<-END
		644 $crate/.cargo-checksum.json
		644 $crate/Cargo.toml
		644 $crate/README.md
		644 $crate/build.rs
		644 $crate/examples/alarms.rs
		644 $crate/src/aio.rs
		644 $crate/src/ffi.rs
		644 $crate/src/lib.rs
		644 $crate/src/sched.rs
		644 $crate/src/wheel.rs
	END
}

uninstalls_crate() { scripts/packages/uninstall.sh rust_install && [ -z "$(crates_files)" ]; }

modules_there() {
	local dir

	dir=$DESTDIR/lib/modules/$(kernel_release)
	diff - <(find "$dir" -name '*.ko*' -printf '%f\n' | LC_ALL=C sort) <<-END
		twheel.ko
		twheel_chardev.ko
	END
}

# From the module's aliases, depmod makes the entry of its device node, which kmod reads.
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

page() { MANPATH=$DESTDIR/usr/local/share/man man -P cat "$@" >/dev/null; }
pages_found() { page 4 twheel && page 1 twheel && page 3 twheel_mod; }

keeps_edits() {
	echo '# mine' >>"$config"
	quiet make install && grep -q '# mine' "$config"
}

uninstalls() {
	quiet make uninstall
	diff <(echo "$config") <(find "$DESTDIR" ! -type d)
}

jobs_files() { find "$DESTDIR" ! -type d -printf '%m %P\n' | grep -E 'twheeld|twheel-job' | LC_ALL=C sort -k 2; }

installs_jobs() {
	quiet make jobs_install || return
	diff - <(jobs_files) <<-END
		755 usr/local/bin/twheel-job
		755 usr/local/bin/twheeld
		644 usr/local/lib/systemd/system/twheeld.service
		644 usr/local/lib/systemd/user/twheeld.service
		644 usr/local/lib/twheeld/twheeld-postgresql.so
		644 usr/local/share/man/man1/twheel-job.1
		644 usr/local/share/man/man5/twheel-job.5
		644 usr/local/share/man/man8/twheeld.8
	END
}

# The program looks for its module where that is installed, and nowhere else; it asks for no server, as
# this address is none. There is no DESTDIR, and so no other directory may come from the environment.
jobs_elsewhere() {
	local dir=$top/build/install-jobs lib

	rm -rf "$dir"
	for lib in first lib/multi; do
		quiet env -i PATH="$PATH" make -C jobs install O="$dir/build" PREFIX="$dir" LIBDIR="$dir/$lib" || return
	done
	rm -r "$dir/build" "$dir/first"
	opens "$dir" 'invalid connection option "nonsense"' || return
	rm -r "$dir/lib/multi"
	opens "$dir" "the package twheeld-postgresql is not installed: there is no '$dir/lib/multi/twheeld/twheeld-postgresql.so'"
}

# opens DIR TEXT: the twheeld that is installed there says that of a store
opens() { diff <("$1/bin/twheeld" --state="$1/state" --store=nonsense=1 2>&1) - <<<"twheeld: cannot open the store: $2"; }

uninstalls_jobs() { quiet make jobs_uninstall && [ -z "$(jobs_files)" ]; }

# The modules were never installed there.
uninstalls_elsewhere() {
	quiet make uninstall "${elsewhere[@]}" && ! find build/install-elsewhere ! -type d | grep .
}

mkdir -p build
echo 1..19
point "make install" installs
point "make install installs the modules" modules_there
point "depmod: opening the device loads the modules" device_known
point "man finds the manual pages" pages_found
point "a project finds libtwheel by CMake" cmake_project
point "CMake accepts the right versions only" cmake_versions
point "a project finds libtwheel by pkg-config" pkg_config_project
point "make install with other directories" installs_elsewhere
point "other directories: a project finds it by CMake" cmake_elsewhere
point "other directories: a project finds it by pkg-config" pkg_config_elsewhere
point "make jobs_install installs twheeld" installs_jobs
point "make jobs_uninstall" uninstalls_jobs
point "twheeld finds its module where that is installed" jobs_elsewhere
point "the crate for Rust installs" installs_crate
point "a project finds the crate by cargo" cargo_project
point "the crate for Rust uninstalls" uninstalls_crate
point "an edited configuration stays" keeps_edits
point "make uninstall leaves only edited files" uninstalls
point "make uninstall with other directories" uninstalls_elsewhere
exit $bad
