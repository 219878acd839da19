// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
//! Timers by the million on one descriptor: libtwheel, safe.
//!
//! * [`Wheel`] and [`Timer`]: for programs that have a loop of their own.
//! * [`Scheduler`]: functions at their time, on a pool of threads or on the caller's.
//! * `aio::Timers`, with the feature `tokio`: sleeps, timeouts and intervals.
//!
//! They use `/dev/twheel` if it can be opened, and else a wheel in the process, with the same results;
//! `TWHEEL_BACKEND=kernel` or `TWHEEL_BACKEND=embedded` in the environment chooses one. Errors are
//! [`std::io::Error`], with the errno of libtwheel(3). Delays of more than 292 years count as 292
//! years.
//!
//! ```
//! use std::time::Duration;
//!
//! # fn main() -> std::io::Result<()> {
//! let wheel = twheel::Wheel::new()?;
//! let idle = wheel.add(Duration::from_secs(30), 7)?;
//! idle.rearm(Duration::from_millis(1))?;
//! let mut events = [twheel::Event::default(); 64];
//! let nr = wheel.read(&mut events, None)?;
//! assert_eq!(events[..nr][0].user_data, 7);
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs, rust_2018_idioms, unsafe_op_in_unsafe_fn)]

#[cfg(feature = "tokio")]
pub mod aio;
#[allow(unsafe_op_in_unsafe_fn)]
mod ffi;
pub mod sched;
mod wheel;

pub use sched::{Missed, Run, Scheduler, TaskId, When};
pub use wheel::{Backend, Builder, Clock, Event, Info, State, Timer, Wheel};
