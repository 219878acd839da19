// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
//! Where timers with a tolerance of 4 s fire together: at multiples of 600 ticks, the meetings.

use std::time::Duration;

/// The tolerance.
pub const WITHIN: Duration = Duration::from_secs(4);

const MEET: u64 = 600_000_000;

/// The time of `CLOCK_MONOTONIC`.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: It fills in `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Whether a timer that was due at `due_ns`, and has fired just now, has waited for a meeting.
pub fn met(due_ns: u64) -> bool {
    now_ns() / MEET * MEET >= due_ns
}
