// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
//! Where timers meet that may be 4 s late: at multiples of 600 ticks.

use std::time::Duration;

/// The tolerance.
pub const WITHIN: Duration = Duration::from_secs(4);

const MEET: u64 = 600_000_000;

/// What `CLOCK_MONOTONIC` shows.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: It fills in `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Whether what was due then, and has come just now, has waited for a meeting.
pub fn met(due_ns: u64) -> bool {
    now_ns() / MEET * MEET >= due_ns
}
