#!/bin/busybox sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# shellcheck shell=dash
#
# The tests of the package twheel for Python in a guest, beside what guest.py makes for it.
exec "${0%/*}/python" "${0%/*}/tap.py" test_twheel
