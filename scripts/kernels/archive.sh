#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# archive.sh apt-get|apt-cache ARGUMENT...: run apt on more of the archive than the system
# uses: backports, foreign architectures, and unstable for the source of the newest kernel.
# Nothing may be installed from it. The lists and the configuration are in the cache, so the
# system's apt is not affected. The mirrors are the system's.
. "$(dirname "$0")/../lib.sh"

dir=$cache/archive
key=/usr/share/keyrings/debian-archive-keyring.gpg

# mirror PATTERN: print the system's first mirror whose suite's codename matches
mirror() {
	# shellcheck disable=SC2016 # apt expands it
	apt-get indextargets --format '$(CODENAME) $(SITE)' 'Created-By: Packages' |
		awk -v pattern="^$1\$" '$1 ~ pattern { print $2; exit }'
}

list() {
	local main security host

	main=$(mirror bookworm) security=$(mirror bookworm-security)
	[ -n "$main" ] || die "apt has no source for Debian bookworm"
	host=$(dpkg --print-architecture)
	echo "deb [signed-by=$key arch=$host,arm64,s390x] $main bookworm main"
	echo "deb [signed-by=$key arch=$host] $main bookworm-backports main"
	echo "deb [signed-by=$key arch=$host] $main sid main"
	[ -z "$security" ] ||
		echo "deb [signed-by=$key arch=$host,arm64,s390x] $security bookworm-security main"
}

configure() {
	mkdir -p "$dir"/{lists,cache/archives}/partial
	: >"$dir/status"
	list >"$dir/sources.list"
	cat >"$dir/apt.conf" <<-END
		Dir::Etc::SourceList "$dir/sources.list";
		Dir::Etc::SourceParts "/dev/null";
		Dir::Etc::Preferences "/dev/null";
		Dir::Etc::PreferencesParts "/dev/null";
		Dir::State::Lists "$dir/lists";
		Dir::State::Status "$dir/status";
		Dir::Cache "$dir/cache";
		APT::Architectures { "$(dpkg --print-architecture)"; "arm64"; "s390x"; };
		APT::Sandbox::User "root";
	END
}

export APT_CONFIG=$dir/apt.conf
# Update the lists once a day, so that two runs on the same day use the same kernels.
if [ -z "$(find "$dir/stamp" -mtime -1 2>/dev/null)" ]; then
	(unset APT_CONFIG; configure)
	if quiet apt-get -qq update; then
		touch "$dir/stamp"
	else
		note "apt-get update failed; trying without"
	fi
fi
exec "$@"
