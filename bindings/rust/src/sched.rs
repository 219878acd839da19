// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
//! Functions that are called at their time.
//!
//! A task's function is in a box, whose address the library has, until it says by `release()`
//! that nothing will use it any more. It calls a function never twice at once, so that the box
//! may be borrowed for the call, and release() after that.

use crate::ffi::{self, checked};
use crate::wheel::{backend_flag, Backend, Clock};
use libc::c_void;
use std::cell::Cell;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::io;
use std::marker::PhantomData;
use std::os::unix::io::RawFd;
use std::panic::{self, AssertUnwindSafe};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What becomes of periods that pass until a function can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// They are made up for, one call after the other.
    Burst,
    /// They are left out, and the phase is kept.
    Skip,
    /// Each late call is where the next period begins.
    Delay,
}

/// Names a task, and is never used again.
#[derive(Clone, Copy, Debug)]
pub struct TaskId {
    id: u64,
    /// Whether it is a task of [`When::at()`]; `None`: [`Scheduler::find()`] cannot tell.
    at: Option<bool>,
}

impl TaskId {
    fn new(id: u64, flags: u32) -> TaskId {
        TaskId { id, at: Some(flags & ffi::TASK_AT != 0) }
    }
}

impl PartialEq for TaskId {
    fn eq(&self, other: &TaskId) -> bool {
        self.id == other.id
    }
}

impl Eq for TaskId {}

impl Hash for TaskId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// When a function is to be called: [`Scheduler::add()`].
#[derive(Clone, Debug)]
pub struct When {
    when_ns: i64,
    period: Option<Duration>,
    tolerance: Duration,
    flags: u32,
    key: Option<Vec<u8>>,
}

impl When {
    /// After a delay.
    pub fn after(delay: Duration) -> When {
        When { when_ns: ffi::ns(delay) as i64, period: None, tolerance: Duration::ZERO, flags: 0, key: None }
    }

    /// At a time of the clock on the wall. When that is set the task moves with it.
    pub fn at(time: SystemTime) -> When {
        let when_ns = time.duration_since(UNIX_EPOCH).map_or(0, |since| ffi::ns(since) as i64);
        When { when_ns, period: None, tolerance: Duration::ZERO, flags: ffi::TASK_AT, key: None }
    }

    /// And then again and again: a period after it was due.
    pub fn every(mut self, period: Duration) -> When {
        self.period = Some(period);
        self
    }

    /// Each call may be so much later, together with others that may be late. When the next one is
    /// due does not depend on that.
    pub fn within(mut self, tolerance: Duration) -> When {
        self.tolerance = tolerance;
        self
    }

    /// A period counts from when the function returned.
    pub fn fixed_delay(mut self) -> When {
        self.flags |= ffi::TASK_DELAY;
        self
    }

    /// Otherwise it is [`Missed::Burst`].
    pub fn missed(mut self, missed: Missed) -> When {
        self.flags &= !(ffi::MISSED_SKIP | ffi::MISSED_DELAY);
        self.flags |= match missed {
            Missed::Burst => 0,
            Missed::Skip => ffi::MISSED_SKIP,
            Missed::Delay => ffi::MISSED_DELAY,
        };
        self
    }

    /// A name that no other pending task has: adding one whose key exists replaces the other. It
    /// is not empty.
    pub fn key(mut self, key: impl AsRef<[u8]>) -> When {
        self.key = Some(key.as_ref().to_vec());
        self
    }
}

/// The run that a function is called for.
pub struct Run<'a> {
    info: &'a ffi::twheel_task_info,
    _thread: PhantomData<*const ()>,
}

impl Run<'_> {
    /// The task.
    pub fn id(&self) -> TaskId {
        TaskId::new(self.info.id, self.info.flags)
    }

    /// Which run it is; the first is 1.
    pub fn nr(&self) -> u64 {
        self.info.runs
    }

    /// Periods left out so far.
    pub fn missed(&self) -> u64 {
        self.info.missed
    }

    /// When it was due, in ns of the scheduler's clock, or of a task of [`When::at()`] since 1970.
    pub fn due_ns(&self) -> i64 {
        self.info.due_ns
    }

    /// This run is the task's last.
    pub fn cancel(&self) {
        // SAFETY: The scheduler lives until the functions it calls have returned.
        unsafe { ffi::twheel_sched_cancel(self.info.sched, self.info.id, 0) };
    }
}

struct Call {
    function: Box<dyn FnMut(&Run<'_>) + Send>,
    panics: Arc<AtomicU64>,
}

thread_local! {
    /// How many functions and destructors of tasks this thread is in.
    static DEPTH: Cell<u32> = Cell::new(0);
}

/// Do what may panic, so that nothing goes through the library's frames. Returns false if it did.
fn contained(what: impl FnOnce()) -> bool {
    let _ = DEPTH.try_with(|depth| depth.set(depth.get() + 1));
    let result = panic::catch_unwind(AssertUnwindSafe(what));
    let good = result.is_ok();
    if let Err(payload) = result {
        // What was thrown may panic when it is dropped, and what that throws too.
        if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(move || drop(payload))) {
            std::mem::forget(payload);
        }
    }
    let _ = DEPTH.try_with(|depth| depth.set(depth.get() - 1));
    good
}

unsafe extern "C" fn run_task(arg: *mut c_void, info: *const ffi::twheel_task_info) {
    // SAFETY: See the head of this file.
    let (call, info) = unsafe { (&mut *arg.cast::<Call>(), &*info) };
    let run = Run { info, _thread: PhantomData };

    if !contained(|| (call.function)(&run)) {
        call.panics.fetch_add(1, Ordering::Relaxed);
        run.cancel();
    }
}

unsafe extern "C" fn release_task(arg: *mut c_void) {
    // SAFETY: It comes from Box::into_raw(), and nothing will use it any more.
    let call = unsafe { Box::from_raw(arg.cast::<Call>()) };
    let panics = call.panics.clone();

    if !contained(|| drop(call)) {
        panics.fetch_add(1, Ordering::Relaxed);
    }
}

/// How a scheduler shall be, see [`Scheduler::builder()`].
#[derive(Clone, Debug)]
pub struct Builder {
    threads: u32,
    backend: Option<Backend>,
    clock: Clock,
    tick: Duration,
    max_pending: u32,
}

impl Builder {
    /// The size of the pool that calls the functions; 0: who calls [`Scheduler::run()`] does.
    pub fn threads(mut self, threads: u32) -> Self {
        self.threads = threads;
        self
    }

    /// That backend alone; otherwise the kernel's where there is one.
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backend = Some(backend);
        self
    }

    /// What delays count; otherwise it is [`Clock::Monotonic`].
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The resolution; otherwise a millisecond.
    pub fn tick(mut self, tick: Duration) -> Self {
        self.tick = tick;
        self
    }

    /// The most tasks that may be pending; otherwise as many as the wheel may hold.
    pub fn max_pending(mut self, most: u32) -> Self {
        self.max_pending = most;
        self
    }

    /// Make it.
    pub fn open(self) -> io::Result<Scheduler> {
        let options = ffi::twheel_sched_options {
            threads: self.threads,
            flags: backend_flag(self.backend),
            max_pending: self.max_pending,
            clockid: self.clock.id(),
            tick_ns: ffi::ns(self.tick),
            reserved: [0; 3],
        };
        let mut raw = ptr::null_mut();
        // SAFETY: All pointers are to what lives as long as the call.
        checked(unsafe { ffi::twheel_sched_open(&mut raw, &options) })?;
        let raw = NonNull::new(raw).ok_or_else(|| io::Error::from(io::ErrorKind::Other))?;
        Ok(Scheduler { raw, panics: Arc::default() })
    }
}

/// Functions at their time, on a pool of threads or on the caller's.
///
/// A function is never called early, and never twice at once. If it panics its task is over, the
/// panic is told as those of threads are, and [`panics()`](Scheduler::panics) counts it; all else
/// goes on. Dropping the scheduler waits for functions that run, and drops the others. A function
/// may have the last of an `Arc` of its own scheduler: then another thread does that.
///
/// What a function has must be its own, and may go to another thread:
///
/// ```compile_fail,E0373
/// # let scheduler = twheel::Scheduler::builder().threads(1).open().unwrap();
/// let text = String::from("gone before it is called");
/// scheduler.after(std::time::Duration::ZERO, |_| println!("{text}"));
/// ```
///
/// ```compile_fail,E0277
/// # let scheduler = twheel::Scheduler::builder().threads(1).open().unwrap();
/// let shared = std::rc::Rc::new(1);
/// scheduler.after(std::time::Duration::ZERO, move |_| println!("{shared}"));
/// ```
///
/// Nor does a run outlive its call:
///
/// ```compile_fail,E0521
/// # let scheduler = twheel::Scheduler::builder().threads(1).open().unwrap();
/// scheduler.after(std::time::Duration::ZERO, |run| { std::thread::spawn(|| run.cancel()); });
/// ```
pub struct Scheduler {
    raw: NonNull<ffi::twheel_sched>,
    panics: Arc<AtomicU64>,
}

// SAFETY: All functions of the library may be called from any thread at any time, but
// twheel_sched_close() alone, which drop() is; and what tasks have is Send.
unsafe impl Send for Scheduler {}
unsafe impl Sync for Scheduler {}

impl Scheduler {
    /// A scheduler without a pool, with defaults.
    pub fn new() -> io::Result<Scheduler> {
        Self::builder().open()
    }

    /// One that is not as [`new()`](Scheduler::new) makes it.
    pub fn builder() -> Builder {
        Builder { threads: 0, backend: None, clock: Clock::Monotonic, tick: Duration::ZERO, max_pending: 0 }
    }

    /// Call a function when it is time, as often as that says. `ESHUTDOWN` if it was stopped.
    pub fn add<F>(&self, when: When, function: F) -> io::Result<TaskId>
    where
        F: FnMut(&Run<'_>) + Send + 'static,
    {
        let period_ns = match when.period {
            None => 0,
            Some(Duration::ZERO) => return Err(io::Error::from_raw_os_error(libc::EINVAL)),
            Some(period) => ffi::ns(period) as i64,
        };
        let (key, key_len) = when.key.as_ref().map_or((ptr::null(), 0), |key| (key.as_ptr(), key.len()));
        if !key.is_null() && key_len == 0 {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let call = Box::into_raw(Box::new(Call { function: Box::new(function), panics: self.panics.clone() }));
        let task = ffi::twheel_task {
            run: run_task, release: release_task, arg: call.cast(), key: key.cast(), key_len,
            when_ns: when.when_ns, period_ns, flags: when.flags, reserved: 0,
            tolerance_ns: ffi::ns(when.tolerance) as i64,
        };
        let mut id = 0;
        // SAFETY: The key lives as long as the call, and the box until release_task().
        let added = checked(unsafe { ffi::twheel_sched_add(self.raw.as_ptr(), &task, &mut id) });
        if let Err(error) = added {
            // SAFETY: The library has not taken it.
            drop(unsafe { Box::from_raw(call) });
            return Err(error);
        }
        Ok(TaskId::new(id, task.flags))
    }

    /// Call a function once, after `delay`.
    pub fn after<F>(&self, delay: Duration, function: F) -> io::Result<TaskId>
    where
        F: FnOnce(&Run<'_>) + Send + 'static,
    {
        self.once(When::after(delay), function)
    }

    /// Call a function once, at a time of the clock on the wall.
    pub fn at<F>(&self, time: SystemTime, function: F) -> io::Result<TaskId>
    where
        F: FnOnce(&Run<'_>) + Send + 'static,
    {
        self.once(When::at(time), function)
    }

    /// Call a function again and again, for the first time after a period.
    pub fn every<F>(&self, period: Duration, function: F) -> io::Result<TaskId>
    where
        F: FnMut(&Run<'_>) + Send + 'static,
    {
        self.add(When::after(period).every(period), function)
    }

    fn once<F>(&self, when: When, function: F) -> io::Result<TaskId>
    where
        F: FnOnce(&Run<'_>) + Send + 'static,
    {
        let mut function = Some(function);
        self.add(when, move |run| {
            if let Some(function) = function.take() {
                function(run);
            }
        })
    }

    /// See to it that a task does not run again; return whether it was pending.
    pub fn cancel(&self, id: TaskId) -> io::Result<bool> {
        self.cancel_with(id, 0)
    }

    /// The same, and wait until it does not run any more. `EDEADLK` from its own function.
    pub fn cancel_wait(&self, id: TaskId) -> io::Result<bool> {
        self.cancel_with(id, ffi::SCHED_WAIT)
    }

    fn cancel_with(&self, id: TaskId, flags: u32) -> io::Result<bool> {
        // SAFETY: It is open.
        match unsafe { ffi::twheel_sched_cancel(self.raw.as_ptr(), id.id, flags) } {
            result if result == -libc::ENOENT => Ok(false),
            result => checked(result).map(|_| true),
        }
    }

    /// Give a pending task another time. `ENOENT` if it is over, `EALREADY` if it runs for the
    /// only time, `EINVAL` if it is one of [`When::at()`]. Of a task that was [found](Scheduler::find)
    /// by its key you must know that.
    pub fn reschedule(&self, id: TaskId, delay: Duration) -> io::Result<()> {
        self.reschedule_as(id, When::after(delay))
    }

    /// Give a pending task of [`When::at()`] another time. `EINVAL` if it is another.
    pub fn reschedule_at(&self, id: TaskId, time: SystemTime) -> io::Result<()> {
        self.reschedule_as(id, When::at(time))
    }

    fn reschedule_as(&self, id: TaskId, when: When) -> io::Result<()> {
        if id.at.map_or(false, |at| at != (when.flags & ffi::TASK_AT != 0)) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        // SAFETY: It is open.
        checked(unsafe { ffi::twheel_sched_mod(self.raw.as_ptr(), id.id, when.when_ns) }).map(|_| ())
    }

    /// The pending task of that key.
    pub fn find(&self, key: impl AsRef<[u8]>) -> Option<TaskId> {
        let key = key.as_ref();
        if key.is_empty() {
            return None;
        }
        // SAFETY: The key lives as long as the call.
        let id = unsafe { ffi::twheel_sched_find(self.raw.as_ptr(), key.as_ptr().cast(), key.len()) };
        Some(TaskId { id, at: None }).filter(|task| task.id != 0)
    }

    /// How many tasks are going to run.
    pub fn pending(&self) -> usize {
        // SAFETY: It is open.
        unsafe { ffi::twheel_sched_pending(self.raw.as_ptr()) as usize }
    }

    /// How many functions have panicked, or what they had when it was dropped.
    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// The descriptor that is readable when [`run()`](Scheduler::run) has something to do, to poll;
    /// it stays the scheduler's. `EINVAL` with a pool.
    pub fn fd(&self) -> io::Result<RawFd> {
        // SAFETY: It is open.
        checked(unsafe { ffi::twheel_sched_fd(self.raw.as_ptr()) }).map(|fd| fd as RawFd)
    }

    /// Call what is due, after having waited for the first as long as `timeout`, which is `None`
    /// for ever; return how many. `EINVAL` with a pool, `ESHUTDOWN` if it was stopped.
    pub fn run(&self, timeout: Option<Duration>) -> io::Result<usize> {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut left = timeout;
        loop {
            // SAFETY: It is open.
            let result = unsafe { ffi::twheel_sched_run(self.raw.as_ptr(), 0, ffi::timeout_ms(left)) };
            if result != -libc::EINTR && result != 0 {
                return checked(result).map(|n| n as usize);
            }
            left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(0);
            }
        }
    }

    /// Run nothing any more, and return how many tasks are over that were waiting.
    pub fn stop(&self) -> io::Result<usize> {
        self.stop_with(0)
    }

    /// Run what is to run once, at its time, and wait for that. `EDEADLK` without a pool, and from
    /// a function of its own.
    pub fn finish(&self) -> io::Result<usize> {
        self.stop_with(ffi::SCHED_FINISH | ffi::SCHED_WAIT)
    }

    fn stop_with(&self, flags: u32) -> io::Result<usize> {
        // SAFETY: It is open.
        checked(unsafe { ffi::twheel_sched_stop(self.raw.as_ptr(), flags, ptr::null_mut()) }).map(|n| n as usize)
    }
}

struct Closing(NonNull<ffi::twheel_sched>);

// SAFETY: It may be closed by any thread that is not in a function of its own.
unsafe impl Send for Closing {}

impl Closing {
    fn close(self) {
        // SAFETY: Nobody else has it.
        unsafe { ffi::twheel_sched_close(self.0.as_ptr()) };
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let closing = Closing(self.raw);

        if DEPTH.try_with(Cell::get).unwrap_or(1) == 0 {
            closing.close();
            return;
        }
        // This may be a function or a destructor that closing would wait for.
        // If there is no thread for it, the scheduler stops and stays.
        let _ = self.stop();
        let _ = thread::Builder::new().name("twheel-close".into()).spawn(move || closing.close());
    }
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler").field("pending", &self.pending()).finish()
    }
}
