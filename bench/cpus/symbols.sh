#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# Print where the kernel's locks are, as arguments of locks.so. The code in which a CPU waits for a
# lock is a slow path: it ends where the next function begins.
sort /proc/kallsyms | awk '
	$2 !~ /[tT]/ { next }
	slow { print "spin=" slow "-" $1; slow = "" }
	$3 ~ /^_raw_spin_lock(_irq|_irqsave|_bh)?$/ { print "lock=" $1 }
	$3 ~ /^_raw_spin_unlock(_irq|_irqrestore|_bh)?$/ { print "unlock=" $1 }
	$3 == "native_queued_spin_lock_slowpath" { slow = $1 }'
