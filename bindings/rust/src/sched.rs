// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
//! Functions that are called at their time.
//!
//! A task's function is in a box, whose address the library has until it calls `release()`: then
//! nothing will use the box any more. The library never calls a function twice at once, so the box may
//! be borrowed for the call. It calls `release()` after that.

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

/// What to do about periods that pass before a function can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// They are made up for, one call after the other.
    Burst,
    /// They are skipped, and the phase is kept.
    Skip,
    /// The next period begins at the late call.
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

    /// At a time of the wall clock. If the clock is set, the task is due when it shows that time.
    pub fn at(time: SystemTime) -> When {
        let when_ns = time.duration_since(UNIX_EPOCH).map_or(0, |since| ffi::ns(since) as i64);
        When { when_ns, period: None, tolerance: Duration::ZERO, flags: ffi::TASK_AT, key: None }
    }

    /// Then again, each time a period after it was due.
    pub fn every(mut self, period: Duration) -> When {
        self.period = Some(period);
        self
    }

    /// Each call may be later by that much, to share a wake-up with others. That does not change when
    /// the next one is due.
    pub fn within(mut self, tolerance: Duration) -> When {
        self.tolerance = tolerance;
        self
    }

    /// A period begins when the function returns.
    pub fn fixed_delay(mut self) -> When {
        self.flags |= ffi::TASK_DELAY;
        self
    }

    /// What to do about missed periods. The default is [`Missed::Burst`].
    pub fn missed(mut self, missed: Missed) -> When {
        self.flags &= !(ffi::MISSED_SKIP | ffi::MISSED_DELAY);
        self.flags |= match missed {
            Missed::Burst => 0,
            Missed::Skip => ffi::MISSED_SKIP,
            Missed::Delay => ffi::MISSED_DELAY,
        };
        self
    }

    /// A name, which must not be empty. No two pending tasks have the same: a task that is added
    /// replaces the one with its key.
    pub fn key(mut self, key: impl AsRef<[u8]>) -> When {
        self.key = Some(key.as_ref().to_vec());
        self
    }
}

/// A run: one call of a task's function.
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

    /// Periods skipped so far.
    pub fn missed(&self) -> u64 {
        self.info.missed
    }

    /// When it was due, in ns of the scheduler's clock; for a task of [`When::at()`], since 1970.
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

/// Call `what`, which may panic, so that no panic goes through the library's frames. Returns false if
/// it panicked.
fn contained(what: impl FnOnce()) -> bool {
    let _ = DEPTH.try_with(|depth| depth.set(depth.get() + 1));
    let result = panic::catch_unwind(AssertUnwindSafe(what));
    let good = result.is_ok();
    if let Err(payload) = result {
        // The payload may panic when it is dropped, and the payload of that panic too.
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

/// The options of a scheduler, see [`Scheduler::builder()`].
#[derive(Clone, Debug)]
pub struct Builder {
    threads: u32,
    backend: Option<Backend>,
    clock: Clock,
    tick: Duration,
    max_pending: u32,
}

impl Builder {
    /// The size of the pool that calls the functions. If 0, callers of [`Scheduler::run()`] call them.
    pub fn threads(mut self, threads: u32) -> Self {
        self.threads = threads;
        self
    }

    /// Only this backend. The default is the kernel's if the device can be opened, else the other.
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backend = Some(backend);
        self
    }

    /// The clock that delays count on. The default is [`Clock::Monotonic`].
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The resolution. The default is a millisecond.
    pub fn tick(mut self, tick: Duration) -> Self {
        self.tick = tick;
        self
    }

    /// The most tasks that may be pending. The default is as many as the wheel may hold.
    pub fn max_pending(mut self, most: u32) -> Self {
        self.max_pending = most;
        self
    }

    /// Make the scheduler.
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
        // SAFETY: What all pointers point to lives as long as the call.
        checked(unsafe { ffi::twheel_sched_open(&mut raw, &options) })?;
        let raw = NonNull::new(raw).ok_or_else(|| io::Error::from(io::ErrorKind::Other))?;
        Ok(Scheduler { raw, panics: Arc::default() })
    }
}

/// Functions at their time, on a pool of threads or on the caller's.
///
/// A function is never called early, and never twice at once. If it panics, its task is over, the panic
/// is reported as that of a thread is, and [`panics()`](Scheduler::panics) counts it; all other tasks
/// continue. Dropping the scheduler waits for functions that are running, and drops the others. A
/// function may own the last `Arc` of its own scheduler: then another thread drops the scheduler.
///
/// A function must own what it captures, and that must be `Send`:
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
/// A run does not outlive its call:
///
/// ```compile_fail,E0521
/// # let scheduler = twheel::Scheduler::builder().threads(1).open().unwrap();
/// scheduler.after(std::time::Duration::ZERO, |run| { std::thread::spawn(|| run.cancel()); });
/// ```
pub struct Scheduler {
    raw: NonNull<ffi::twheel_sched>,
    panics: Arc<AtomicU64>,
}

// SAFETY: Any thread may call all functions of the library at any time, except twheel_sched_close(),
// which only drop() calls; and what tasks own is Send.
unsafe impl Send for Scheduler {}
unsafe impl Sync for Scheduler {}

impl Scheduler {
    /// A scheduler without a pool, with the defaults.
    pub fn new() -> io::Result<Scheduler> {
        Self::builder().open()
    }

    /// Options for a scheduler other than that of [`new()`](Scheduler::new).
    pub fn builder() -> Builder {
        Builder { threads: 0, backend: None, clock: Clock::Monotonic, tick: Duration::ZERO, max_pending: 0 }
    }

    /// Call a function when `when` says, as often as it says. `ESHUTDOWN` if the scheduler was stopped.
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

    /// Call a function once, at a time of the wall clock.
    pub fn at<F>(&self, time: SystemTime, function: F) -> io::Result<TaskId>
    where
        F: FnOnce(&Run<'_>) + Send + 'static,
    {
        self.once(When::at(time), function)
    }

    /// Call a function periodically, for the first time after one period.
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

    /// Cancel a task: it will not run again. Return whether it was pending.
    pub fn cancel(&self, id: TaskId) -> io::Result<bool> {
        self.cancel_with(id, 0)
    }

    /// The same, and wait until it is not running. `EDEADLK` from its own function.
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

    /// Give a pending task another time. `ENOENT` if it is over, `EALREADY` if it is running for the
    /// only time, `EINVAL` if it is a task of [`When::at()`]: for those there is
    /// [`reschedule_at()`](Scheduler::reschedule_at). A task that was [found](Scheduler::find) by
    /// its key is not checked: you must know which it is.
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

    /// The pending task with that key.
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

    /// How many functions have panicked, or what they owned when that was dropped.
    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// The descriptor that is readable when [`run()`](Scheduler::run) has something to do, to poll;
    /// it stays the scheduler's. `EINVAL` with a pool.
    pub fn fd(&self) -> io::Result<RawFd> {
        // SAFETY: It is open.
        checked(unsafe { ffi::twheel_sched_fd(self.raw.as_ptr()) }).map(|fd| fd as RawFd)
    }

    /// Wait for the first function that is due, at most `timeout` (`None` is for ever); then call those
    /// that are due, and return how many were called. `EINVAL` with a pool, `ESHUTDOWN` if it was
    /// stopped.
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

    /// Call no function any more. Return how many waiting tasks were cancelled.
    pub fn stop(&self) -> io::Result<usize> {
        self.stop_with(0)
    }

    /// Cancel the periodic tasks, run the others at their time, and wait for that. `EDEADLK` without a
    /// pool, and from a function of its own.
    pub fn finish(&self) -> io::Result<usize> {
        self.stop_with(ffi::SCHED_FINISH | ffi::SCHED_WAIT)
    }

    fn stop_with(&self, flags: u32) -> io::Result<usize> {
        // SAFETY: It is open.
        checked(unsafe { ffi::twheel_sched_stop(self.raw.as_ptr(), flags, ptr::null_mut()) }).map(|n| n as usize)
    }
}

struct Closing(NonNull<ffi::twheel_sched>);

// SAFETY: Any thread may close it that is not inside one of its functions.
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
        // If this is inside a function or a destructor that closing would wait for, another
        // thread closes it. If no thread can be made, the scheduler is stopped and not freed.
        let _ = self.stop();
        let _ = thread::Builder::new().name("twheel-close".into()).spawn(move || closing.close());
    }
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler").field("pending", &self.pending()).finish()
    }
}
