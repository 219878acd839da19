#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# cargo.sh O COMMAND [ARGUMENT...]: run cargo on bindings/rust. Its output goes to O. It uses only
# the crates in Debian's packages. Programs are linked statically, so that a guest can run them.
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"

mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
triple=$(/usr/bin/rustc -vV | sed -n 's/^host: //p')

# A second caller waits.
exec 9>"$out/lock"
flock 9
make -s -C "$top/lib" "O=$out/lib" >&2
# Cargo writes a Cargo.lock beside the manifest.
rm -rf "$out/src"
mkdir -p "$out/src/bindings" "$out/src/selftest"
cp -a "$top/bindings/rust" "$out/src/bindings"
cp -a "$top/selftest/rust" "$out/src/selftest"

export RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc RUST_BACKTRACE=0
export CARGO_TARGET_DIR=$out/target CARGO_NET_OFFLINE=true
export LIBTWHEEL_DIR=$out/lib LIBTWHEEL_STATIC=1
export RUSTFLAGS="-D warnings -C target-feature=+crt-static" RUSTDOCFLAGS="-D warnings -C target-feature=+crt-static"
cd "$out/src/bindings/rust"
exec /usr/bin/cargo --config 'source.crates-io.replace-with="debian"' \
	--config 'source.debian.directory="/usr/share/cargo/registry"' "$@" --target "$triple" --features tokio
