#!/bin/busybox sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# shellcheck shell=dash
#
# rust_test.sh PROGRAM...: run the crate's tests in a guest. The programs and tap.awk are beside this
# script.
bad=0
for program; do
	"${0%/*}/$program" >/tmp/rust 2>&1 || bad=1
	cat /tmp/rust
done >/tmp/all
awk -f "${0%/*}/tap.awk" /tmp/all
exit $bad
