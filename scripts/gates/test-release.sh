#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# test-release.sh: make releases of a copy of the tree; which changes of libtwheel's ABI a release
# accepts; and which public address its packages name.
# shellcheck disable=SC2317 # point calls the functions
. "$(dirname "$0")/../lib.sh"
# shellcheck source=selftest/lib/tap.sh
. "$top/selftest/lib/tap.sh"
cd "$top"

copy=$top/build/release
copy_sources "$copy"
cd "$copy"

# gives STATUS COMMAND...: does the command exit with STATUS?
gives() {
	local want=$1 status=0

	shift
	"$@" || status=$?
	[ "$status" = "$want" ] || { echo "'$*' gave $status, not $want"; return 1; }
}

abi() { gives "$1" scripts/gates/abi.sh check; }
release() { gives "$1" scripts/packages/release.sh "$2"; }

# Release the next version. The sources may have changed since the ABI was recorded.
first() { next "$((major + 1)).0.0" && abi 0; }

next() {
	release 0 "$1" && [ "$(make -s -C lib version)" = "$1" ] && grep -q "^twheel ($1) unstable" debian/changelog &&
		grep -qx "PACKAGE_VERSION=\"$1\"" dkms.conf
}

other_version() {
	local file

	for file in dkms.conf debian/changelog lib/libtwheel.h bindings/rust/Cargo.toml bindings/python/{pyproject.toml,twheel/__init__.py}; do
		cp "$file" "$copy/kept"
		sed -i -E '/^(PACK|twheel \(|#define TWHEEL_VERSION_M|version|__version)/ s/[0-9]+/99/' "$file"
		gives 1 scripts/gates/version.sh || return
		mv "$copy/kept" "$file"
	done
	gives 0 scripts/gates/version.sh
}

not_after() { release 1 "$major.9.9" && release 1 "$((major + 1)).0.0"; }

# A new member is an error until libtwheel.abignore allows it. Then it needs a new minor number.
grown() {
	sed -i '/^struct twheel_task {$/,/^};$/ s/^};$/\tuint64_t grown;\n};/' lib/libtwheel-sched.h
	abi 4 && release 1 "$((major + 1)).0.1" || return
	printf '\n[suppress_type]\nname = twheel_task\nhas_data_member_inserted_at = end\n' >>lib/libtwheel.abignore
	echo " (symver)LIBTWHEEL_$((major + 1)).1 $((major + 1)).0.0" >>debian/libtwheel1.symbols
	abi 0 && next "$((major + 1)).1.0" &&
		grep -qx " (symver)LIBTWHEEL_$((major + 1)).1 $((major + 1)).1.0" debian/libtwheel1.symbols &&
		grep -qx ' (symver)LIBTWHEEL_1 1.0.0' debian/libtwheel1.symbols && gives 1 grep '^\[' lib/libtwheel.abignore && abi 0
}

# A function was removed, or a member has another size.
broken() {
	cp lib/libtwheel.map kept
	sed -i '/twheel_fd;/d' lib/libtwheel.map
	abi 12 && release 1 "$((major + 1)).2.0" || return
	mv kept lib/libtwheel.map
	sed -i '/^struct twheel_levels {$/,/^};$/ s/uint32_t/uint64_t/' lib/libtwheel.h
	abi 4
}

# origin ADDRESS: set the address of the copy's remote
origin() {
	[ -e .git ] || git init -q .
	git config remote.origin.url "$1"
}

# says HOMEPAGE VCS [VARIABLE=VALUE...]: do the packages name these addresses, with these variables?
says() {
	local want=()

	[ -z "$1" ] || want+=("Homepage: $1")
	[ -z "$2" ] || want+=("Vcs-Git: $2" "Vcs-Browser: ${2%.git}")
	diff <(printf '%s\n' "${want[@]}") <(env "${@:3}" scripts/packages/published.sh 2>&1)
}

# says_nothing: do the packages name no address, and is that said in one line?
says_nothing() { [[ $(scripts/packages/published.sh 2>&1 | tee /dev/stderr | wc -l) = 1 && -z $(scripts/packages/published.sh 2>/dev/null) ]]; }

public_origins() {
	local https=https://git.example.org/a/twheel remote

	for remote in $https.git git@git.example.org:a/twheel.git git.example.org:a/twheel.git ssh://git@git.example.org:22/a/twheel.git \
		https://me:secret@git.example.org/a/twheel.git https://secret@git.example.org/a/twheel.git/; do
		{ origin "$remote" && says "$https" "$https.git"; } || { echo "of $remote"; return 1; }
	done
}

private_origins() {
	local remote

	for remote in /a/twheel ../twheel file:///a/twheel host:twheel http://git.example.org/twheel https://localhost/twheel \
		https://10.0.0.1/twheel git@git.internal:twheel https://git.example.org/ 'https://git.example.org/a?token=b' \
		$'https://git.example.org/a\nEssential: yes'; do
		{ origin "$remote" && says_nothing; } || { echo "of $remote"; return 1; }
	done
	git config --unset remote.origin.url && says_nothing
}

given() {
	local a=https://a.example.org/a b=https://b.example.org/b

	origin "$a" && says "$b" "$b" VCS_GIT="$b" && says "$b" "$a" HOMEPAGE="$b" && says "$b" '' HOMEPAGE="$b" VCS_GIT= &&
		says '' "$a" HOMEPAGE= && says "$a" "$b.git" HOMEPAGE="$a" VCS_GIT=git@b.example.org:b.git || return
	gives 1 env VCS_GIT=/a/twheel scripts/packages/published.sh && gives 1 env HOMEPAGE="$a b" scripts/packages/published.sh
}

# The fields that dpkg writes, in a binary package and in the source package.
packaged() {
	local home=https://git.example.org/a/twheel dir=$copy/published

	origin "$home.git" && mkdir -p "$dir/tree/debian/libtwheel-dev/DEBIAN" && cp -r debian "$dir/tree" &&
		scripts/packages/published.sh "$dir/tree/debian/control" || return
	(cd "$dir/tree" && dpkg-gencontrol -plibtwheel-dev -Pdebian/libtwheel-dev && dpkg-deb -b debian/libtwheel-dev "$dir" &&
		dpkg-source -b .) || return
	dpkg-deb -I "$dir"/*.deb | grep -x " Homepage: $home" && grep -x "Homepage: $home" "$dir"/*.dsc &&
		grep -x "Vcs-Git: $home.git" "$dir"/*.dsc && grep -x "Vcs-Browser: $home" "$dir"/*.dsc
}

major=$(version)
major=${major%%.*}
echo 1..9
point "a version that differs between files is reported" other_version
point "a release sets the version everywhere, and renews the ABI dump" first
point "a release is after the last" not_after
point "a structure that grows is reported, and needs a new minor number" grown
point "a removed function and a changed member are reported" broken
point "the packages name a public origin by https, and no password" public_origins
point "packages name no private origin, and a line says so" private_origins
point "VCS_GIT= and HOMEPAGE= have priority, and must be public" given
point "packages that dpkg builds name the address" packaged
exit $bad
