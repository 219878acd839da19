#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# so.sh: libtwheel as its users get it: installed, found by pkg-config, linked from C and C++.
# shellcheck disable=SC2317 # point calls the functions
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
# shellcheck source=selftest/lib/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$top"

root=$top/build/libtest/root
export PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_PATH=$root/usr/lib/pkgconfig
# Where the program was not started from here, nobody has chosen for it.
unset TWHEEL_BACKEND
out=$top/build/libtest/use

installs() {
	rm -rf "$root"
	quiet make -C lib install DESTDIR="$root" PREFIX=/usr LIBDIR=/usr/lib INCLUDEDIR=/usr/include || return
	diff - <(cd "$root" && find usr ! -type d | LC_ALL=C sort) <<-END
		usr/include/libtwheel-sched.h
		usr/include/libtwheel.h
		usr/include/linux/twheel.h
		usr/lib/cmake/twheel/twheelConfig.cmake
		usr/lib/cmake/twheel/twheelConfigVersion.cmake
		usr/lib/libtwheel.a
		usr/lib/libtwheel.so
		usr/lib/libtwheel.so.1
		usr/lib/libtwheel.so.$(version)
		usr/lib/pkgconfig/libtwheel.pc
	END
}

soname() { objdump -p "$root/usr/lib/libtwheel.so" | grep -q 'SONAME *libtwheel.so.1$'; }

# What the headers declare, and not a name more.
exports() {
	diff <(sed -n '/^static inline/d; s/^[a-z].*\b\(twheel_[a-z_]*\)(.*/\1/p' lib/libtwheel.h lib/libtwheel-sched.h | sort) \
	     <(nm -D --defined-only "$root/usr/lib/libtwheel.so" | sed -n 's/.* T \([^@]*\)@@LIBTWHEEL_1\(\.[0-9]*\)\?$/\1/p' | sort)
}

needs_libc_only() {
	diff <(echo libc.so.6) <(objdump -p "$root/usr/lib/libtwheel.so" | awk '/NEEDED/ && !/ld-linux/ { print $2 }')
}

# Where the processor has no atomic operations of 64 bits, a call of libatomic stands for one, and
# needs that where it is linked: a 486 stands for armel, mips and others. The C library's header for
# 32 bits may be missing here, and has nothing in it.
needs_no_libatomic() {
	local file dir=$top/build/libtest/i486

	rm -rf "$dir"
	mkdir -p "$dir/gnu"
	: >"$dir/gnu/stubs-32.h"
	for file in lib/*.c calendar/*.c tools/twheel/*.c; do
		gcc -m32 -march=i486 -O2 -std=gnu11 -Wall -Wextra -Werror -I. -Ilib -Icalendar -Iinclude/uapi -idirafter "$dir" \
			-idirafter "/usr/include/$(gcc -dumpmachine)" -c -o "$dir/$(tr / _ <<<"${file%.c}").o" "$file" || return
	done
	! nm -A --undefined-only "$dir"/*.o | grep atomic
}

# uses COMPILER... [-- LIBRARIES...]
# shellcheck disable=SC2046 # flags are words
uses() {
	"$@" $(pkg-config --cflags libtwheel) -Wall -Wextra -pedantic -Werror -o "$out" \
		selftest/install/use.c $(pkg-config --libs libtwheel) &&
		[ "$(LD_LIBRARY_PATH=$root/usr/lib "$out")" = used ]
}

# shellcheck disable=SC2046
uses_static() {
	gcc -static $(pkg-config --cflags libtwheel) -o "$out" selftest/install/use.c \
		$(pkg-config --static --libs libtwheel) && [ "$("$out")" = used ]
}

# An exception that leaves a task's function ends the program, from where it was thrown.
# terminates [caller]
# shellcheck disable=SC2046
terminates() {
	local flag

	for flag in -pthread -static; do
		g++ -std=c++11 "$flag" $(pkg-config --cflags libtwheel) -Wall -Wextra -Werror -o "$out-throw" \
			selftest/lib/throw.cpp $(pkg-config --static --libs libtwheel) || return
		diff <(echo terminated; echo 3) \
			<(LD_LIBRARY_PATH=$root/usr/lib timeout 60 "$out-throw" "$@"; echo $?) || return
	done
}

mkdir -p build/libtest
echo 1..11
point "libtwheel installs" installs
point "the soname is libtwheel.so.1" soname
point "libtwheel exports what its headers declare" exports
point "libtwheel needs the C library and nothing else" needs_libc_only
point "neither libtwheel nor twheel(1) needs libatomic on 32 bits" needs_no_libatomic
point "a program in C" uses gcc -std=gnu99
point "a program in C11" uses gcc -std=gnu11
point "a program in C++" uses g++ -std=c++11 -x c++
point "a program that is linked statically" uses_static
point "a C++ exception that leaves a function ends the program" terminates
point "a C++ exception does not reach the caller of twheel_sched_run()" terminates caller
exit $bad
