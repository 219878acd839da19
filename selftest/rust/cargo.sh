#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# cargo.sh O COMMAND [ARGUMENT...]: run cargo on bindings/rust. Its output goes to O. It uses only
# the crates in Debian's packages. Programs are linked statically, so that a guest can run them.
# Compiling tokio and what it needs takes most of a minute. So these crates are kept in the cache,
# for this compiler and these packages.
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"

mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
triple=$(/usr/bin/rustc -vV | sed -n 's/^host: //p')

registry=/usr/share/cargo/registry
kept=$cache/crates/$({ /usr/bin/rustc -vV; ls "$registry"; cat "$0" "$top/bindings/rust/Cargo.toml"; } | sha256sum | cut -c 1-12)

# keep: put the compiled crates of others into the cache. Cargo would find ours too old in any other tree.
keep() {
	local tmp

	mkdir -p "$cache/crates"
	tmp=$(mktemp -d "$kept.XXXXXX")
	cp -a "$CARGO_TARGET_DIR/." "$tmp"
	find "$tmp" -depth -regextype egrep \
		-regex '.*/((lib)?twheel-|aio-|sched-|wheel-|incremental$|examples$).*' -exec rm -rf {} +
	mv -T "$tmp" "$kept" 2>/dev/null || rm -rf "$tmp"
}

# A second caller waits.
exec 9>"$out/lock"
flock 9
make -s -C "$top/lib" "O=$out/lib" >&2
# Cargo writes a Cargo.lock beside the manifest.
rm -rf "$out/src"
mkdir -p "$out/src/bindings" "$out/src/selftest"
cp -a "$top/bindings/rust" "$out/src/bindings"
cp -a "$top/selftest/rust" "$out/src/selftest"

# A panic says where it was without them, and they are most of what is linked.
export CARGO_PROFILE_DEV_DEBUG=0
export RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc RUST_BACKTRACE=0
export CARGO_TARGET_DIR=$out/target CARGO_NET_OFFLINE=true
export LIBTWHEEL_DIR=$out/lib LIBTWHEEL_STATIC=1
export RUSTFLAGS="-D warnings -C target-feature=+crt-static" RUSTDOCFLAGS="-D warnings -C target-feature=+crt-static"
[ -d "$CARGO_TARGET_DIR" ] || [ ! -d "$kept" ] || cp -a "$kept" "$CARGO_TARGET_DIR"
cd "$out/src/bindings/rust"
/usr/bin/cargo --config 'source.crates-io.replace-with="debian"' \
	--config "source.debian.directory=\"$registry\"" "$@" --target "$triple" --features tokio
[ -d "$kept" ] || keep
