#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# patches.sh: write twheel as a series of patches for a kernel, as git format-patch does, and try the
# series as a maintainer would; `make patches`. Ends with "N passed, N failed". The series is in
# build/patches/VERSION/series, with its cover letter.
#
#	KERNEL=v	6.12, which is the default, or 7.2: kernels whose source Debian has
#	ONLY=s		some suites: style, docs, build-x86_64, build-arm64, build-i386, kunit, kselftest.
#			"series" is always written.
#
# style		checkpatch --strict and kernel-doc of that kernel, each patch
# docs		the pages of Documentation, by its Sphinx extensions
# build-*	the directories after each patch, as modules and built in: W=1 and sparse. 7.2 wants a
#		newer sparse than Debian 12 has, and is built without
# kunit		kunit.py on user-mode Linux
# kselftest	`make run_tests` in a machine of which twheel is a part, not a module. Time is counted in
#		instructions there, so it has one CPU
. "$(dirname "$0")/../lib.sh"
cd "$top"

version=${KERNEL:-6.12}
dir=$top/build/patches/$version
src=$dir/src series=$dir/series
log=build/patches/$version/log
. scripts/suite.sh
mapfile -t configs <<'END'
CONFIG_TWHEEL
CONFIG_TWHEEL_CHARDEV
CONFIG_TWHEEL_KUNIT_TEST
END

wanted() { [[ " ${ONLY:-$1} " == *" $1 "* ]]; }
kmake() { nice -n 10 make -s -j"$(nproc)" -C "$src" "$@"; }

# point NAME COMMAND...: a point in a suite of several points, which counts in nr and bad
point() {
	local name=$1

	shift
	nr=$((nr + 1))
	if "$@" >"$dir/said" 2>&1 </dev/null; then
		echo "ok $nr - $name"
	else
		echo "not ok $nr - $name"
		tail -n 40 "$dir/said" | sed 's/^/# /'
		bad=1
	fi
}

# ---- the tree ----------------------------------------------------------------------------

# To take back patches, use the copies that were applied: the series may have changed since.
apply() {
	mkdir -p "$dir/applied"
	quiet patch -d "$src" -p 1 -i "$series/$1" && cp "$series/$1" "$dir/applied"
}

take_back() {
	local patches=() i

	for i in "$dir"/applied/*.patch; do
		[ ! -e "$i" ] || patches=("$i" "${patches[@]}")
	done
	for i in "${patches[@]}"; do
		quiet patch -d "$src" -p 1 -R -E -i "$i" || die "$i cannot be taken back: remove $dir"
		rm "$i"
	done
}

tree() {
	local deb

	deb=$(scripts/kernels/kernel-source.sh "$version")
	if ! cmp -s "$dir/of" - <<<"${deb##*/}"; then
		rm -rf "$dir"
		mkdir -p "$src" "$log"
		dpkg-deb --fsys-tarfile "$deb" | tar -xO "./usr/src/linux-source-$version.tar.xz" |
			tar -xJ -C "$src" --strip-components=1
		echo "${deb##*/}" >"$dir/of"
	fi
	take_back
}

# ---- style -------------------------------------------------------------------------------

# What checkpatch may not complain about. Programs of user space need volatile to stop the compiler, and
# have macros that use an argument twice. checkpatch takes a function that returns a pointer to const for a
# constant. And it cannot find the commits that the text names: the kernel's history is not here.
style_of() {
	local ignore=STATIC_CONST,UNKNOWN_COMMIT_ID

	[[ $1 != *-selftests-* ]] || ignore+=,VOLATILE,MACRO_ARG_REUSE
	(cd "$src" && perl scripts/checkpatch.pl --no-tree --strict --terse --show-types \
		--ignore "$ignore" "$series/$1")
}

kernel_doc() {
	local tool=$src/scripts/kernel-doc files

	[ ! -e "$src/tools/docs/kernel-doc" ] || tool=$src/tools/docs/kernel-doc
	mapfile -t files < <(sed -n 's|^+++ b/||p' "$series"/000*.patch | grep -E '^(include|kernel|drivers)/.*\.[ch]$' | sort -u)
	[ ${#files[@]} != 0 ] && (cd "$src" && "$tool" -none -Werror "${files[@]}")
}

style() {
	local nr=0 bad=0 patch

	echo "1..$((${#patches[@]} + 2))"
	for patch in "${patches[@]}"; do
		point "checkpatch: $patch" style_of "$patch"
	done
	point "checkpatch: the cover letter" long_lines
	point "kernel-doc" kernel_doc
	return $bad
}

# Check the text that was written, not the list of files that git adds.
long_lines() {
	sed '/^Subject:/,/^[^ ].*([0-9]*):$/!d' "$series/0000-cover-letter.patch" |
		awk 'length > 90 { print; bad = 1 } END { exit bad }'
}

# The pages as the kernel's Sphinx extension reads them, where every warning is an error.
documentation() {
	local nr=0 bad=0 docs=$dir/docs page

	rm -rf "$docs"
	mkdir -p "$docs"
	for page in timers core-api userspace-api; do
		cp "$src/Documentation/$page/twheel.rst" "$docs/$page.rst"
	done
	printf '%s\n' twheel ====== '' '.. toctree::' '' '   timers' '   core-api' '   userspace-api' >"$docs/index.rst"
	cat >"$docs/conf.py" <<-END
		import os, sys
		src = "$src"
		os.environ["srctree"] = src
		sys.path[:0] = [src + "/Documentation/sphinx", src + "/tools/lib/python"]
		project, extensions, primary_domain = "twheel", ["kerneldoc"], "c"
		old = src + "/scripts/kernel-doc"
		new = src + "/tools/docs/kernel-doc"
		kerneldoc_bin = [new if os.path.exists(new) else old]
		if not os.path.exists(new):
		    kerneldoc_bin = old
		kerneldoc_srctree = src
	END
	echo 1..1
	point "Sphinx: the pages give no warning" sphinx-build -W --keep-going -q -b html "$docs" "$docs/html"
	return $bad
}

# ---- builds ------------------------------------------------------------------------------

# arch, and make's VARIABLES; the output is next to the source
arch_of() {
	case $1 in
	x86_64)	echo ARCH=x86_64 O=../x86_64 ;;
	i386)	echo ARCH=i386 O=../i386 ;;
	arm64)	echo ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- O=../arm64 ;;
	esac
}

# configure ARCH y|m: set those of our options that the applied patches have
configure() {
	local arch=$1 what=$2 out=$dir/$1 line missing

	mkdir -p "$out"
	{
		if [ "$arch" = i386 ]; then
			grep -v '^CONFIG_64BIT=' scripts/long/patches.config
		else
			cat scripts/long/patches.config
		fi
		for line in "${configs[@]}"; do
			! grep -qs "^config ${line#CONFIG_}$" "$src"/kernel/time/twheel/Kconfig "$src/drivers/char/Kconfig" ||
				[ "$arch/$line" = i386/CONFIG_TWHEEL_KUNIT_TEST ] || echo "$line=$what"
		done
	} >"$out/.wanted"
	# shellcheck disable=SC2046 # words
	kmake $(arch_of "$arch") KCONFIG_ALLCONFIG=.wanted allnoconfig
	# Options that only x86 has are left out elsewhere.
	missing=$(grep '^CONFIG_' "$out/.wanted" | { [ "$arch" = x86_64 ] && cat || grep TWHEEL; } |
		grep -vxFf "$out/.config") || return 0
	die "the kernel does not take these lines:" "$missing"
}

# directories ARCH: build the directories that the applied patches bring, without a warning. What `prepare`
# builds of the kernel's own, as arm64's vDSO, has the same flags, or it would be built again and checked as ours.
directories() {
	local arch=$1 targets=() status=0

	[ ! -e "$src/kernel/time/twheel/Makefile" ] || targets+=(kernel/time/twheel/)
	[ ! -e "$src/drivers/char/twheel_chardev.c" ] || targets+=(drivers/char/twheel_chardev.o)
	rm -f "$dir/$arch"/kernel/time/twheel/*.o "$dir/$arch"/kernel/time/twheel/tests/*.o \
		"$dir/$arch/drivers/char/twheel_chardev.o"
	# shellcheck disable=SC2046 # words
	kmake $(arch_of "$arch") W=1 prepare >"$dir/prepare" 2>&1 || { cat "$dir/prepare"; return 1; }
	[ ${#targets[@]} != 0 ] || return 0
	# shellcheck disable=SC2046 # words
	kmake $(arch_of "$arch") W=1 C=1 CF=-D__CHECK_ENDIAN__ "${targets[@]}" >"$dir/built" 2>&1 || status=$?
	! grep -E 'warning:|error:|Error' "$dir/built" && [ $status = 0 ]
}

builds() {
	local nr=0 bad=0 patch arch=$1 what

	take_back
	echo "1..$((2 * ${#patches[@]}))"
	for patch in "${patches[@]}"; do
		apply "$patch"
		for what in m y; do
			configure "$arch" $what
			point "$what: ${patch%.patch}" directories "$arch"
		done
	done
	return $bad
}

all_applied() {
	local patch

	for patch in "${patches[@]}"; do
		[ -e "$dir/applied/$patch" ] || apply "$patch"
	done
}

# ---- tests -------------------------------------------------------------------------------

# KTAP has two levels. The inner one has the cases.
kunit() {
	local status=0

	(cd "$src" && nice -n 10 python3 tools/testing/kunit/kunit.py run --kunitconfig kernel/time/twheel \
		--build_dir "$dir/um" --jobs "$(nproc)" --raw_output=kunit) >"$dir/kunit" 2>&1 || status=$?
	grep -E '^ +(# (Totals|wheel)|1\.\.|(not )?ok )' "$dir/kunit" | sed -E 's/^ +//'
	grep -E 'EXPECTATION|Expected|error:' -A 4 "$dir/kunit" | sed 's/^ */# /'
	[ $status = 0 ] || tail -n 20 "$dir/kunit" | sed 's/^/# /'
	return $status
}

# Make an image of the selftests' tree as it is in the source, with the programs that its runner calls.
selftest_tar() {
	local root=$dir/guest tests=tools/testing/selftests lib

	rm -rf "$root"
	mkdir -p "$root/usr/bin" "$root/linux/$tests"
	kmake ARCH=x86_64 O=../x86_64 headers || return
	cp -r "$src/$tests"/{lib.mk,kselftest,kselftest.h,twheel} "$root/linux/$tests"
	[ ! -e "$src/$tests/kselftest_harness.h" ] || cp "$src/$tests/kselftest_harness.h" "$root/linux/$tests"
	make -s -C "$root/linux/$tests/twheel" KHDR_INCLUDES="-isystem $dir/x86_64/usr/include" || return
	cp /usr/bin/make /usr/bin/timeout "$root/usr/bin"
	ldd /usr/bin/make /usr/bin/timeout "$root/linux/$tests/twheel/test_basic" |
		grep -oE '/[^ ]+\.so[^ ]*' | sort -u | while read -r lib; do
		mkdir -p "$root${lib%/*}"
		cp -L "$lib" "$root$lib"
	done
	# All files get the same time, so that nothing is built again: the machine has no compiler.
	find "$root" -exec touch -h -d @0 {} +
	tar -C "$root" -cf "$dir/kselftest.tar" .
}

# This kernel has no ACPI. So on a busy host it could not calibrate its timer; if an instruction takes 2 ns, it can.
# It also has no clock to verify the TSC by, and 7.2 then leaves hrtimers to the tick.
kselftest() {
	all_applied
	configure x86_64 y
	kmake ARCH=x86_64 O=../x86_64 bzImage && selftest_tar || return
	echo "mode=kselftest" >"$dir/run"
	APPEND=tsc=reliable ICOUNT=2 MEM=1536 KERNEL=$dir/x86_64/arch/x86/boot/bzImage scripts/machines/boot.sh "patches-$version" 3600 "$dir/run" "$dir/kselftest.tar"
}

# ------------------------------------------------------------------------------------------

scripts/deps.sh patches
tree
quiet intree/series.py "$src" "$series"
mapfile -t patches <"$series/series"
note "${#patches[@]} patches and a cover letter in $series"

# All suites use one tree, so they run one after the other. Only the builds apply the patches one by one.
for arch in x86_64 arm64 i386; do
	! wanted build-$arch || suite patches_build builds $arch
done
all_applied
! wanted style || suite patches_style style
! wanted docs || suite patches_docs documentation
! wanted kunit || suite patches_kunit kunit
! wanted kselftest || suite patches_kselftest kselftest
summary
