#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# lint.sh: run the static gates on a copy of the sources; each is a point of TAP.
# lint.sh --update: write the present layout of the UAPI and the exported symbols to the files
# *.expected, for a change that was meant.
# shellcheck disable=SC2317 # gate calls the functions
. "$(dirname "$0")/../lib.sh"
. "$top/scripts/long/edits.sh"

copy=$top/build/lint/src out=$top/build/lint
KDIR=$("$top/scripts/kdir.sh")
export KDIR

# Warnings that find no mistake here are off, such as 983 unused parameters in the kernel's headers.
extra="-Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers -Wno-type-limits"

# C for user space: it has the C library's types, and wheel_user.h copies the kernel's macros.
user='^(selftest/(wheel|fuzz|proof|uapi|users|lib|examples|install|calendar|jobs|tap)|calendar/|jobs/|bench/(wheel|user|lib|cpus|calls|within|jobs)/|bench/kernel/irqs_off|tools/|lib/|examples/|samples/|wheel_user\.h)'
# Of these files, those with SQL in strings of many lines and with names of SQLite, libpq and libcurl.
sqlite='^(jobs/(out|store|store_sqlite|store_pg|store_pool)|selftest/jobs/crash)\.c$'
user_ignore=PREFER_KERNEL_TYPES,MACRO_ARG_REUSE,VOLATILE,PREFER_DEFINED_ATTRIBUTE_MACRO

kbuild() { make -s -j"$(nproc)" -C "$KDIR" M="$copy" CONFIG_TWHEEL_{SELFTEST,BUG}=m "$@"; }

# sparse's own exit status is always 0.
compiler() {
	kbuild W=1 KCFLAGS="-Werror $extra" C=1 CF="-D__CHECK_ENDIAN__ -Wsparse-error" modules
}

# The code of the patches for a kernel has nothing of twheel_compat.h. If a kernel was built in another directory than
# that of its sources, the Makefile of $KDIR includes the one there.
without_compat() {
	local copy=$out/without_compat tree

	tree=$(sed -n 's|^include \(/.*\)/Makefile$|\1|p' "$KDIR/Makefile")
	copy_sources "$copy"
	intree/series.py --without-compat "${tree:-$KDIR}" "$copy" &&
		make -s -j"$(nproc)" -C "$KDIR" M="$copy" KCFLAGS=-Werror modules
}

# checkpatch_of OPTIONS FILE...: check each file that was not found good before
checkpatch_of() {
	local options=$1 version file known=() files=()

	shift
	version=$(scripts/gates/checkpatch.sh --version)
	for file; do
		known+=("$(result_of checkpatch "$version" "$options" "$(cat .checkpatch.conf)" "$file" "$(cat "$file")")")
		if [ -e "${known[-1]}" ]; then
			unset 'known[-1]'
		else
			files+=("$file")
		fi
	done
	[ ${#files[@]} = 0 ] && return
	# shellcheck disable=SC2086 # words
	scripts/gates/checkpatch.sh --terse --show-types $options -f "${files[@]}" && touch "${known[@]}"
}

checkpatch() {
	local kernel_files user_files sqlite_files bad=0

	mapfile -t user_files < <(sources '*.[ch]' | grep -E "$user" | grep -vE "$sqlite")
	mapfile -t sqlite_files < <(sources '*.[ch]' | grep -E "$sqlite")
	mapfile -t kernel_files < <(sources '*.[ch]' | grep -vE "$user")
	checkpatch_of '' "${kernel_files[@]}" || bad=1
	checkpatch_of "--ignore $user_ignore" "${user_files[@]}" || bad=1
	checkpatch_of "--ignore $user_ignore,SPLIT_STRING,CAMELCASE" "${sqlite_files[@]}" || bad=1
	return "$bad"
}

kernel_doc() { sources '*.[ch]' | xargs "$KDIR/scripts/kernel-doc" -none -Werror; }

# Does the header compile by itself, for each kind of program?
uapi_compiles() {
	local flags=(-Iinclude/uapi -Wall -Wextra -Wpadded -pedantic -Werror -fsyntax-only) m

	# The system's headers serve -m32 too, without the packages of multilib.
	flags+=(-idirafter "/usr/include/$(gcc -dumpmachine)")
	for m in -m64 -m32; do
		gcc "$m" -std=c90 "${flags[@]}" -x c include/uapi/linux/twheel.h &&
			g++ "$m" -std=c++11 "${flags[@]}" -x c++ include/uapi/linux/twheel.h || return
	done
}

# At least 60 of 100 lines must be comment.
uapi_explains() {
	awk '/^[ \t]*\/\*/ { comment = 1 }
	     comment { n++ }
	     /\*\// { comment = 0 }
	     END { printf "%d of %d lines are comment\n", n, NR; exit n * 100 < NR * 60 }' include/uapi/linux/twheel.h
}

# error_rows FILE: print the rows of the file's table of errors, as words
error_rows() { sed -nE 's/.*(E[A-Z0-9]+( +[x.])+)[^ x.]?.*/\1/p' "$1" | tr -s ' '; }

# The header's table of errors must be the one that test_errors tests.
uapi_errors() {
	[ -n "$(error_rows include/uapi/linux/twheel.h)" ] &&
		diff <(error_rows include/uapi/linux/twheel.h) <(error_rows selftest/uapi/test_errors.c)
}

# layout -m64|-m32: every structure of the UAPI, and every number
layout() {
	local header=include/uapi/linux/twheel.h types='^(struct|enum) (twheel_[a-z]*) \{$'

	{
		echo '#include <linux/twheel.h>'
		sed -En "s/$types/\1 \2 \2;/p" $header
		echo 'enum macros {'
		sed -n 's/^#define \(TWHEEL_[A-Z_0-9]*\)\t.*/is_\1 = \1,/p' $header
		echo '} macros;'
	} | gcc "$1" -g -c -Iinclude/uapi -idirafter "/usr/include/$(gcc -dumpmachine)" -x c -o "$out/uapi.o" - &&
		pahole -C "$(sed -En "s/$types/\2/p" $header | paste -sd,),macros" "$out/uapi.o"
}

uapi_layout() {
	layout -m64 | diff scripts/gates/uapi-layout.expected - && layout -m32 | diff scripts/gates/uapi-layout.expected -
}

# The README's first example is a whole program.
readme_compiles() {
	awk '/^```c$/ { on = 1; next } /^```$/ && on { exit } on' README.md |
		gcc -Iinclude/uapi -Wall -Wextra -Werror -fsyntax-only -x c -
}

# Before an index from the user is used, array_index_nospec() must bound it for speculation too. No
# test can see that. The other indices of slots are those that DRAIN makes itself.
user_indices() {
	! grep 'slot_at(' twheel_chardev.c | grep -vE '^[[:space:]]+(/\*|\*) ' | grep -vF -e 'struct slot *slot_at(const struct file_wheel' \
		-e 'slot_at(file, array_index_nospec(index, nr_slots))' \
		-e 'slot_at(file, file->cursor)' -e 'slot_at(file, (u32)ops[i].handle)' \
		-e 'slot_was_set(file, slot_at(file, at))' || return
	awk '/nr = array_index_nospec\(nr, ARRAY_SIZE\(ioctls\)\);/ { safe = 1 }
	     /ioctls\[[^]_]/ && !safe { print; bad = 1 }
	     END { exit bad || !safe }' twheel_chardev.c
}

symbols() { awk '{ print $2, $NF }' "$copy/Module.symvers" | LC_ALL=C sort; }
exported() { symbols | diff scripts/gates/symvers.expected -; }

# A script that was found good is not checked again until a script changes.
shell() {
	local options=(-x -P SCRIPTDIR:. -e SC1091) scripts known

	mapfile -t scripts < <(sources | while read -r file; do
		! head -n 1 "$file" | grep -aqE '^#!.*\b(sh|bash)$' || echo "$file"
	done)
	known=$(result_of "$(shellcheck --version)" "${options[*]}" "${scripts[*]}" \
		"$(sources '*.sh' | xargs cat "${scripts[@]}")")
	[ -e "$known" ] || { shellcheck "${options[@]}" "${scripts[@]}" && touch "$known"; }
}

spelling() { sources | grep -vE '^(LICENSES|selftest/fuzz/corpus)/' | xargs codespell -L filp,crate,inout; }

# The manual pages must be valid roff, complete, and true. scdoc begins every section with a
# paragraph, which is harmless.
manuals() {
	local page warnings bad=0

	scripts/docs/man.sh build "$out/man"
	for page in "$out"/man/*; do
		[ ! -L "$page" ] || continue
		warnings=$(
			mandoc -T lint -W warning "$page" | grep -v 'skipping paragraph macro' || :
			LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$page" 2>&1 >/dev/null
		)
		[ -z "$warnings" ] || { echo "$warnings"; bad=1; }
	done
	scripts/gates/manuals.py || bad=1
	return "$bad"
}

# git refuses to read a tree that belongs to another user.
licences() {
	GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' reuse lint &&
		sources | grep -v '^LICENSES/' | xargs scripts/gates/licences.py
}

commands() { sources | grep -v '^selftest/fuzz/corpus/' | xargs scripts/gates/commands.py; }

nr=0 bad=0
gate() {
	local name=$1

	shift
	nr=$((nr + 1))
	if "$@" >"$out/log" 2>&1 </dev/null; then
		echo "ok $nr - $name"
	else
		echo "not ok $nr - $name"
		sed 's/^/# /' "$out/log"
		bad=1
	fi
}

cd "$top"
copy_sources "$copy"

if [ "${1:-}" = --update ]; then
	layout -m64 >scripts/gates/uapi-layout.expected
	quiet compiler && symbols >scripts/gates/symvers.expected
	exit
fi

echo 1..22
gate "gcc W=1 -Werror -Wextra, and sparse" compiler
gate "the modules build without twheel_compat.h, as in the patches for a kernel" without_compat
gate "the exported symbols are those of symvers.expected" exported
gate "checkpatch --strict" checkpatch
gate "kernel-doc" kernel_doc
gate "UAPI compiles as C90 and C++11, 32 and 64 bits, without padding" uapi_compiles
gate "UAPI layout is that of uapi-layout.expected, 32 and 64 bits" uapi_layout
gate "UAPI is documentation for the most part" uapi_explains
gate "UAPI has the table of errors that is tested" uapi_errors
gate "the README's example compiles" readme_compiles
gate "syzkaller's descriptions are those of the UAPI" scripts/gates/syzkaller.py
gate "array_index_nospec() bounds what users index with" user_indices
gate "the manual pages are good roff, and say what the code does" manuals
gate "all that says a version says that of libtwheel.h" scripts/gates/version.sh
gate "the ABI of libtwheel is that of the last release, or better" scripts/gates/abi.sh check
gate "shellcheck" shell
gate "deps.sh lists the packages of all commands" commands
gate "the edits of selftest/mutations apply" edits_apply
gate "each sentence of twheel.h has its test, by selftest/kmod/promises" scripts/gates/promises.py
gate "sentences that quote figures were compared with them, by doc/quotes" scripts/gates/quotes.py
gate "codespell" spelling
gate "each file says its licence, and debian/copyright the same" licences
exit $bad
