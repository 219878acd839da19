# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# shellcheck shell=bash disable=SC2154
# A separate Debian in $work/root, for tests that need one. Source this after lib.sh
# and tap.sh, with $work set. DEBIAN= is its codename, by default bookworm, which is Debian 12.
# Packages that are downloaded for it stay in the cache.
: "${DEBIAN:=bookworm}"
root=$work/root
export DEBIAN_FRONTEND=noninteractive

# Print the mirrors that this machine, a Debian 12, installs from, for the new Debian: "URI SUITE".
mirrors() {
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --format '$(REPO_URI) $(RELEASE)' \
		'Created-By: Packages' 'Origin: Debian' 'Component: main' |
		sed -n "s/ bookworm/ $DEBIAN/p" | sort -u
}

# inside COMMAND...: run a command in the new Debian. What it mounts is gone with its last process.
# As on a machine, its root is a mount point, which "unshare --mount" needs, and /dev/shm is a file system of its own.
# A kernel without cgroup v2 is no reason to fail: the tests that need it say so.
inside() {
	# shellcheck disable=SC2016 # the inner shell's
	as_root unshare --mount --pid --fork sh -c 'mount --bind "$0" "$0" && exec chroot "$0" "$@"' "$root" sh -c \
		'mount -t proc proc /proc && mount -t devpts -o ptmxmode=666 devpts /dev/pts || exit
		mkdir -p /dev/shm && mount -t tmpfs -o mode=1777 tmpfs /dev/shm || exit
		mkdir -p /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null
		exec "$@"' sh env HOME=/root "$@"
}

# bootstrap [PACKAGES]: make the new Debian, with these packages, which a minimal Debian lacks.
bootstrap() {
	local uri

	as_root rm -rf "$root"
	mkdir -p "$work" "$cache/debs"
	uri=$(mirrors | awk -v suite="$DEBIAN" '$2 == suite { print $1; exit }')
	as_root debootstrap --variant=minbase --cache-dir="$cache/debs" ${1:+"--include=$1"} \
		"$DEBIAN" "$root" "$uri" || return
	mirrors | awk '{ print "deb", $0, "main" }' | as_root tee "$root/etc/apt/sources.list"
	inside apt-get -qq update
}

# sources_to DIRECTORY: copy the sources to that directory of the new Debian
sources_to() {
	as_root mkdir -p "$root/$1"
	# shellcheck disable=SC2119 # all sources
	sources | as_root xargs cp --parents -t "$root/$1"
}

# step NAME COMMAND...: a point. If it fails, the script ends: the others would make no sense.
step() {
	point "$@"
	[ "$bad" = 0 ] || { echo "Bail out! What was made is in $work"; exit 1; }
}
