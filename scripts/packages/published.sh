#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# published.sh: print the fields of debian/control that say where the tree is published. If there are
# none, say so on stderr.
# published.sh CONTROL: put them into that file.
#
# No file of the tree can say this, because everybody who publishes a copy does so somewhere else.
# So the address is that of the remote "origin" of this checkout, if everybody can reach it: one of
# https, or one of ssh, whose host also serves https. Whatever is before an @ in the address is left
# out: it may be a password.
#
#	VCS_GIT=	another address; empty: none
#	HOMEPAGE=	if that is not where the sources are; empty: none
. "$(dirname "$0")/../lib.sh"

# https_of ADDRESS: the same by https, without user and password. Nothing, if it is no such address.
https_of() {
	case $1 in
	https://*) sed -E 's|^(https://)[^/]*@|\1|' <<<"$1" ;;
	ssh://*) sed -E 's|^ssh://([^/]*@)?([^/:]*)(:[0-9]+)?/|https://\2/|' <<<"$1" ;;
	*://* | /* | .*) ;;
	*:*) sed -E 's|^([^/]*@)?([^/:@]*):/?|https://\2/|' <<<"$1" ;;
	esac
}

# public ADDRESS: print the address by https if its host has a name that all machines know.
public() {
	local name='[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?' address

	[[ $1 != *[[:space:]]* ]] || return
	address=$(https_of "$1")
	[[ $address =~ ^https://($name\.)+([A-Za-z]$name)(:[0-9]+)?/[A-Za-z0-9._~%/+-]+$ ]] || return
	case ${BASH_REMATCH[3],,} in
	local | localhost | localdomain | lan | internal | intranet | corp | home | arpa | test | example | invalid | onion) return 1 ;;
	esac
	while [[ $address == */ ]]; do
		address=${address%/}
	done
	echo "$address"
}

# given NAME: the variable's address, which must be a public one.
given() { public "${!1}" || die "$1=${!1} is not an address that everybody can reach by https"; }

origin() { git -c safe.directory='*' -C "$top" remote get-url origin 2>/dev/null; }

fields() {
	local vcs='' home

	if [ -n "${VCS_GIT:-}" ]; then
		vcs=$(given VCS_GIT) || exit
	elif [ -z "${VCS_GIT+set}" ]; then
		vcs=$(public "$(origin)") || vcs=''
	fi
	home=${vcs%.git}
	if [ -n "${HOMEPAGE:-}" ]; then
		home=$(given HOMEPAGE) || exit
	elif [ -n "${HOMEPAGE+set}" ]; then
		home=''
	fi
	[ -z "$home" ] || echo "Homepage: $home"
	[ -z "$vcs" ] || printf 'Vcs-Git: %s\nVcs-Browser: %s\n' "$vcs" "${vcs%.git}"
}

found=$(fields)
if [ -z "$found" ]; then
	note "the packages have no Homepage and no Vcs-Git: there is no public address, neither of the remote origin nor given as HOMEPAGE= or VCS_GIT="
elif [ -z "${1:-}" ]; then
	echo "$found"
else
	sed -i "/^Rules-Requires-Root:/r /dev/stdin" "$1" <<<"$found"
fi
