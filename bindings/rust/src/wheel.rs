// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
//! A wheel, and timers that own their place in it.

use crate::ffi::{self, checked};
use std::fmt;
use std::io;
use std::os::unix::io::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Which backend. Both do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// `/dev/twheel`
    Kernel,
    /// The same wheel in this process, driven by a timerfd.
    Embedded,
}

/// The clock that delays count on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`
    Monotonic,
    /// `CLOCK_BOOTTIME`, which goes on during suspend.
    Boottime,
}

impl Clock {
    pub(crate) fn id(self) -> i32 {
        match self {
            Clock::Monotonic => libc::CLOCK_MONOTONIC,
            Clock::Boottime => libc::CLOCK_BOOTTIME,
        }
    }
}

pub(crate) fn backend_flag(backend: Option<Backend>) -> u32 {
    match backend {
        None => 0,
        Some(Backend::Kernel) => ffi::KERNEL,
        Some(Backend::Embedded) => ffi::EMBEDDED,
    }
}

/// The event of a timer that has expired.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// As in the call that added the timer.
    pub user_data: u64,
    /// [`Timer::handle()`].
    pub handle: u64,
    /// The deadline, in ns of the wheel's clock; for a period, that of the first one counted here.
    pub expires_ns: u64,
    /// 1, or how many periods have passed.
    pub count: u32,
    flags: u32,
}

/// The state of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It will fire.
    Armed,
    /// Its event waits to be read.
    Ready,
    /// It waits to be armed again.
    Idle,
}

/// What a wheel is, and what it holds.
#[derive(Clone, Debug)]
pub struct Info {
    /// Its resolution.
    pub tick: Duration,
    /// The most timers it may hold.
    pub max_timers: u32,
    /// How many timers exist.
    pub timers: u32,
    /// How many of them will fire.
    pub armed: u32,
    /// Events that wait to be read.
    pub ready: u32,
    /// Timers that have fired so far.
    pub expired: u64,
    /// Memory that it takes, in the kernel or in this process.
    pub mem_bytes: u64,
}

struct Raw(NonNull<ffi::twheel>);

// SAFETY: Any thread may call all functions of the library at any time, since TWHEEL_ONE_THREAD is
// never used. The exception is twheel_close(), which only drop() calls.
unsafe impl Send for Raw {}
unsafe impl Sync for Raw {}

impl Raw {
    fn get(&self) -> *mut ffi::twheel {
        self.0.as_ptr()
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: It is open, and nobody else has it.
        unsafe { ffi::twheel_close(self.get()) }
    }
}

/// The options of a wheel, see [`Wheel::builder()`].
#[derive(Clone, Debug)]
pub struct Builder {
    backend: Option<Backend>,
    clock: Clock,
    tick: Duration,
    max_timers: u32,
}

impl Builder {
    /// Only this backend. The default is the kernel's if the device can be opened, else the other.
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backend = Some(backend);
        self
    }

    /// The clock. The default is [`Clock::Monotonic`].
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The resolution. The default is a millisecond.
    pub fn tick(mut self, tick: Duration) -> Self {
        self.tick = tick;
        self
    }

    /// The most timers. The default is as many as are allowed.
    pub fn max_timers(mut self, most: u32) -> Self {
        self.max_timers = most;
        self
    }

    /// Make the wheel.
    pub fn open(self) -> io::Result<Wheel> {
        let setup = ffi::twheel_setup {
            clockid: self.clock.id(),
            tick_ns: ffi::ns(self.tick),
            max_timers: self.max_timers,
            ..Default::default()
        };
        let mut raw = ptr::null_mut();
        // SAFETY: What all pointers point to lives as long as the call.
        checked(unsafe { ffi::twheel_open(&mut raw, backend_flag(self.backend), &setup) })?;
        let raw = NonNull::new(raw).ok_or_else(|| io::Error::from(io::ErrorKind::Other))?;
        Ok(Wheel { raw: Arc::new(Raw(raw)), tolerance_ns: 0 })
    }
}

/// Any number of timers on one descriptor.
///
/// It is for programs that have a loop of their own: wait until the descriptor is readable, then
/// [`read()`](Wheel::read). A clone refers to the same wheel, which is freed with the last of its
/// clones and timers. Any thread may call any method.
///
/// Errors are those of the library: `EDQUOT` if there are too many timers, `EINVAL` for a period
/// below a tick, `ECHILD` in a child after `fork()`.
#[derive(Clone)]
pub struct Wheel {
    raw: Arc<Raw>,
    tolerance_ns: u64,
}

impl Wheel {
    /// An empty wheel, with the defaults.
    pub fn new() -> io::Result<Wheel> {
        Self::builder().open()
    }

    /// Options for a wheel other than that of [`new()`](Wheel::new).
    pub fn builder() -> Builder {
        Builder { backend: None, clock: Clock::Monotonic, tick: Duration::ZERO, max_timers: 0 }
    }

    /// Which backend it has.
    pub fn backend(&self) -> Backend {
        // SAFETY: The wheel is open, and a constant string comes back.
        let name = unsafe { std::ffi::CStr::from_ptr(ffi::twheel_backend(self.raw.get())) };
        if name.to_bytes() == b"kernel" { Backend::Kernel } else { Backend::Embedded }
    }

    /// The same wheel; but timers added through the result may be later by that much, each time.
    ///
    /// Such timers share wake-ups, so the reader is woken less often. It is for timeouts, retries and
    /// polling, where nobody notices.
    pub fn within(&self, tolerance: Duration) -> Wheel {
        Wheel { raw: self.raw.clone(), tolerance_ns: ffi::ns(tolerance) }
    }

    /// A timer that fires after `delay`, with `user_data` in its event.
    ///
    /// After it has fired it is idle, until it is re-armed or dropped.
    pub fn add(&self, delay: Duration, user_data: u64) -> io::Result<Timer> {
        self.arm(delay, 0, user_data, ffi::F_KEEP)
    }

    /// A timer that fires periodically. Its event counts the periods that pass until it is read, and
    /// the phase is kept.
    pub fn add_periodic(&self, delay: Duration, period: Duration, user_data: u64) -> io::Result<Timer> {
        self.arm(delay, positive(period)?, user_data, ffi::F_KEEP)
    }

    /// The same, but a period begins when the event before is read.
    pub fn add_fixed_delay(&self, delay: Duration, period: Duration, user_data: u64) -> io::Result<Timer> {
        self.arm(delay, positive(period)?, user_data, ffi::F_KEEP | ffi::F_DELAY)
    }

    /// A timer that fires once and cannot be cancelled.
    pub fn add_detached(&self, delay: Duration, user_data: u64) -> io::Result<()> {
        self.raw_add(delay, 0, user_data, 0).map(|_| ())
    }

    /// Many timers, as [`add()`](Wheel::add) makes them, in one call.
    pub fn add_many(&self, timers: &[(Duration, u64)]) -> io::Result<Vec<io::Result<Timer>>> {
        let mut ops: Vec<_> = timers
            .iter()
            .map(|&(delay, user_data)| ffi::twheel_op {
                op: ffi::OP_ADD, flags: ffi::F_KEEP, user_data, expires_ns: ffi::ns(delay),
                tolerance_ns: ffi::tolerance_ns(self.tolerance_ns, delay), ..Default::default()
            })
            .collect();
        self.submit(&mut ops)?;
        Ok(ops.iter().map(|op| checked(op.res).map(|_| self.timer(op.handle, 0, ffi::F_KEEP))).collect())
    }

    /// [`Timer::rearm()`] of many timers of this wheel, in one call.
    ///
    /// # Panics
    /// If a timer belongs to another wheel.
    pub fn rearm_many(&self, timers: &[(&Timer, Duration)]) -> io::Result<Vec<io::Result<bool>>> {
        let mut ops = Vec::with_capacity(timers.len());
        for (timer, delay) in timers {
            assert!(Arc::ptr_eq(&timer.wheel, &self.raw), "a timer of another wheel");
            ops.push(ffi::twheel_op {
                op: ffi::OP_MOD, flags: timer.flags, handle: timer.handle, expires_ns: ffi::ns(*delay),
                interval_ns: timer.interval_ns, tolerance_ns: ffi::tolerance_ns(timer.tolerance_ns, *delay),
                ..Default::default()
            });
        }
        self.submit(&mut ops)?;
        let result = |(op, (timer, delay)): (&ffi::twheel_op, &(&Timer, Duration))| match op.res {
            res if res == -libc::EALREADY => timer.rearm(*delay),
            res => checked(res).map(|was| was == 1),
        };
        Ok(ops.iter().zip(timers).map(result).collect())
    }

    /// Wait until a timer has expired, and fill in `events` from the beginning; return how many were
    /// filled in. 0 if none expired within `timeout`; `None` waits for ever.
    pub fn read(&self, events: &mut [Event], timeout: Option<Duration>) -> io::Result<usize> {
        let most = u32::try_from(events.len()).unwrap_or(u32::MAX);
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut left = timeout;
        loop {
            // SAFETY: There is room for that many.
            let result = unsafe { ffi::twheel_read(self.raw.get(), events.as_mut_ptr(), most, ffi::timeout_ms(left)) };
            if result > 0 {
                return Ok(result as usize);
            }
            if result != -libc::EAGAIN && result != -libc::EINTR {
                return checked(result).map(|n| n as usize);
            }
            left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(0);
            }
        }
    }

    /// What the wheel is, and what it holds.
    pub fn info(&self) -> io::Result<Info> {
        // SAFETY: It is open.
        let info = unsafe { ffi::get_info(self.raw.get()) }?;
        Ok(Info {
            tick: Duration::from_nanos(info.tick_ns),
            max_timers: info.max_timers,
            timers: info.nr_timers,
            armed: info.nr_armed,
            ready: info.nr_ready,
            expired: info.nr_expired,
            mem_bytes: info.mem_bytes,
        })
    }

    fn arm(&self, delay: Duration, interval_ns: u64, user_data: u64, flags: u32) -> io::Result<Timer> {
        let handle = self.raw_add(delay, interval_ns, user_data, flags)?;
        Ok(self.timer(handle, interval_ns, flags))
    }

    fn raw_add(&self, delay: Duration, interval_ns: u64, user_data: u64, flags: u32) -> io::Result<u64> {
        let tolerance_ns = ffi::tolerance_ns(self.tolerance_ns, delay);
        let mut handle = 0;
        // SAFETY: The wheel is open, and the handle lives as long as the call.
        checked(unsafe {
            ffi::twheel_add_within(
                self.raw.get(), &mut handle, user_data, ffi::ns(delay), interval_ns, tolerance_ns, flags,
            )
        })?;
        Ok(handle)
    }

    fn submit(&self, ops: &mut [ffi::twheel_op]) -> io::Result<()> {
        for part in ops.chunks_mut(1 << 20) {
            // SAFETY: The wheel is open, and the operations are that many.
            checked(unsafe { ffi::twheel_submit(self.raw.get(), part.as_mut_ptr(), part.len() as u32) })?;
        }
        Ok(())
    }

    fn timer(&self, handle: u64, interval_ns: u64, flags: u32) -> Timer {
        Timer { wheel: self.raw.clone(), handle, interval_ns, tolerance_ns: self.tolerance_ns, flags }
    }
}

impl AsRawFd for Wheel {
    fn as_raw_fd(&self) -> RawFd {
        // SAFETY: It is open.
        unsafe { ffi::twheel_fd(self.raw.get()) }
    }
}

impl AsFd for Wheel {
    /// For polling. Do not read from it.
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: The descriptor is open as long as the wheel is.
        unsafe { BorrowedFd::borrow_raw(self.as_raw_fd()) }
    }
}

impl fmt::Debug for Wheel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wheel").field("backend", &self.backend()).field("fd", &self.as_raw_fd()).finish()
    }
}

/// A timer. It owns its place in the wheel; dropping it cancels it.
///
/// It keeps the wheel open. After it was dropped it has no event, except one that another thread has
/// read already.
pub struct Timer {
    wheel: Arc<Raw>,
    handle: u64,
    interval_ns: u64,
    tolerance_ns: u64,
    flags: u32,
}

impl Timer {
    /// The handle in its events. No other timer has it as long as this one lives.
    pub fn handle(&self) -> u64 {
        self.handle
    }

    /// Let it fire after `delay`, whatever its state; a periodic timer continues with its period. Return
    /// whether it was armed. An event that was not read is dropped.
    pub fn rearm(&self, delay: Duration) -> io::Result<bool> {
        let tolerance_ns = ffi::tolerance_ns(self.tolerance_ns, delay);
        // SAFETY: The wheel is open.
        let result = again(|| unsafe {
            ffi::twheel_mod_within(
                self.wheel.get(), self.handle, ffi::ns(delay), self.interval_ns, tolerance_ns, self.flags,
            )
        });
        Ok(result? == 1)
    }

    /// The same, with another period from then on; with `None` it fires once.
    pub fn rearm_with(&mut self, delay: Duration, period: Option<Duration>) -> io::Result<bool> {
        let interval_ns = period.map_or(Ok(0), positive)?;
        let old = std::mem::replace(&mut self.interval_ns, interval_ns);
        self.rearm(delay).map_err(|error| {
            self.interval_ns = old;
            error
        })
    }

    /// Its state, and the time left until its deadline.
    pub fn state(&self) -> io::Result<(State, Duration)> {
        let mut op = ffi::twheel_op::default();
        // SAFETY: The wheel is open, and `op` lives as long as the call.
        let state = checked(unsafe { ffi::twheel_query(self.wheel.get(), self.handle, 0, &mut op) })?;
        let state = match state {
            1 => State::Armed,
            2 => State::Ready,
            _ => State::Idle,
        };
        Ok((state, Duration::from_nanos(op.expires_ns)))
    }

    /// Cancel it, as dropping does; return whether it was armed.
    pub fn cancel(mut self) -> bool {
        self.end()
    }

    /// The handle 0 is no timer's.
    fn end(&mut self) -> bool {
        let handle = std::mem::take(&mut self.handle);
        // SAFETY: The wheel is open.
        let result = again(|| unsafe { ffi::twheel_cancel(self.wheel.get(), handle, ptr::null_mut()) });
        matches!(result, Ok(1))
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if self.handle != 0 {
            self.end();
        }
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("handle", &self.handle).field("state", &self.state().ok()).finish()
    }
}

/// Repeat a call while it fails with EALREADY: another thread is reading an event of the timer at this
/// moment, and soon will have.
fn again(call: impl Fn() -> libc::c_int) -> io::Result<u32> {
    for tries in 0.. {
        let result = call();
        if result != -libc::EALREADY {
            return checked(result);
        }
        if tries < 100 {
            thread::yield_now();
        } else {
            thread::sleep(Duration::from_micros(100));
        }
    }
    unreachable!()
}

fn positive(period: Duration) -> io::Result<u64> {
    match ffi::ns(period) {
        0 => Err(io::Error::from_raw_os_error(libc::EINVAL)),
        ns => Ok(ns),
    }
}
