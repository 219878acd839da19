// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
//! Timers of tokio: any number of them on one descriptor that the runtime watches.
//!
//! A task of the runtime, the driver, reads the events, and wakes the tasks that wait for them. Each
//! sleep and interval has a slot, found by the user data of its timer. The slot's deadline tells an
//! event that was read before the timer was re-armed from one that came after.

use crate::wheel::{Event, Timer, Wheel};
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::os::unix::io::{AsRawFd, RawFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::io::Interest;
use tokio::runtime::Handle;
use tokio::task::{self, JoinHandle};

const BATCH: usize = 256;
/// After so many batches the driver lets other tasks run.
const BATCHES: usize = 16;

#[derive(Default)]
struct State {
    count: u64,
    first_ns: u64,
    not_before_ns: u64,
    closed: bool,
    waker: Option<Waker>,
}

#[derive(Default)]
struct Slot(Mutex<State>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: It fills in `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the timers were closed")
}

impl Slot {
    /// Forget an event that has fired, and any that fires before `delay` has passed from now.
    fn expect(&self, delay: Duration) {
        let mut state = lock(&self.0);
        state.count = 0;
        state.not_before_ns = now_ns().saturating_add(crate::ffi::ns(delay));
    }

    fn fire(&self, event: &Event) {
        let waker = {
            let mut state = lock(&self.0);
            if event.expires_ns < state.not_before_ns {
                return;
            }
            if state.count == 0 {
                state.first_ns = event.expires_ns;
            }
            state.count += u64::from(event.count);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn close(&self) {
        let waker = {
            let mut state = lock(&self.0);
            state.closed = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The periods that have passed since the last call.
    fn poll(&self, cx: &mut Context<'_>) -> Poll<io::Result<Tick>> {
        let mut state = lock(&self.0);
        if state.count > 0 {
            let tick = Tick { count: state.count, due_ns: state.first_ns };
            state.count = 0;
            return Poll::Ready(Ok(tick));
        }
        if state.closed {
            return Poll::Ready(Err(closed()));
        }
        if !state.waker.as_ref().map_or(false, |waker| waker.will_wake(cx.waker())) {
            state.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

/// As in the standard library, which has it only since Rust 1.64.
struct PollFn<F>(F);

impl<F> Unpin for PollFn<F> {}

fn poll_fn<T, F: FnMut(&mut Context<'_>) -> Poll<T>>(poll: F) -> PollFn<F> {
    PollFn(poll)
}

impl<T, F: FnMut(&mut Context<'_>) -> Poll<T>> Future for PollFn<F> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        (self.0)(cx)
    }
}

/// The slots, or `None` after they were closed.
type Slots = Mutex<Option<HashMap<u64, Arc<Slot>>>>;

struct Core {
    wheel: Wheel,
    slots: Slots,
    next: AtomicU64,
}

impl Core {
    fn deliver(&self, events: &[Event]) {
        for event in events {
            let slot = lock(&self.slots).as_ref().and_then(|slots| slots.get(&event.user_data).cloned());
            if let Some(slot) = slot {
                slot.fire(event);
            }
        }
    }

    fn close(&self) {
        let slots = lock(&self.slots).take();
        for slot in slots.into_iter().flat_map(HashMap::into_values) {
            slot.close();
        }
    }
}

/// What the runtime watches: it keeps the wheel's descriptor open.
struct Watched(Wheel);

impl AsRawFd for Watched {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

async fn drive(core: &Core, fd: &AsyncFd<Watched>) -> io::Result<()> {
    let mut events = [Event::default(); BATCH];
    loop {
        let mut guard = fd.readable().await?;
        for batch in 1.. {
            let nr = core.wheel.read(&mut events, Some(Duration::ZERO))?;
            if nr == 0 {
                guard.clear_ready();
                break;
            }
            core.deliver(&events[..nr]);
            if batch == BATCHES {
                break;
            }
        }
        task::yield_now().await;
    }
}

struct Inner {
    core: Arc<Core>,
    driver: JoinHandle<()>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.core.close();
        self.driver.abort();
    }
}

/// Timers on one wheel, for tasks of one runtime.
///
/// A clone refers to the same timers. Nothing fires early, nor later than a tick plus the time that
/// the runtime takes. After it is closed, or its runtime has ended, sleeps and intervals give an error
/// of the kind `NotConnected`.
///
/// ```no_run
/// # use std::time::Duration;
/// # async fn work() {}
/// # async fn example() -> std::io::Result<()> {
/// let timers = twheel::aio::Timers::new()?;
/// timers.sleep(Duration::from_secs(1))?.await?;
/// timers.timeout(Duration::from_secs(5), work()).await?;
/// let mut interval = timers.interval(Duration::from_millis(100))?;
/// loop {
///     let tick = interval.tick().await?;
///     println!("{} periods have passed", tick.count);
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct Timers {
    inner: Arc<Inner>,
    tolerance: Duration,
}

impl Timers {
    /// Timers on a wheel with the defaults, in the caller's runtime. An error if there is no runtime;
    /// tokio panics if its I/O is not enabled.
    pub fn new() -> io::Result<Timers> {
        Self::on(Wheel::new()?)
    }

    /// Timers on `wheel`, whose clock is `CLOCK_MONOTONIC` and which nothing else uses.
    pub fn on(wheel: Wheel) -> io::Result<Timers> {
        let runtime = Handle::try_current().map_err(|error| io::Error::new(io::ErrorKind::Other, error))?;
        let core = Arc::new(Core {
            wheel: wheel.clone(), slots: Mutex::new(Some(HashMap::new())), next: AtomicU64::new(0),
        });
        let fd = AsyncFd::with_interest(Watched(wheel), Interest::READABLE)?;
        let driven = Driven(core.clone());
        let driver = runtime.spawn(async move {
            let _ = drive(&driven.0, &fd).await;
        });
        Ok(Timers { inner: Arc::new(Inner { core, driver }), tolerance: Duration::ZERO })
    }

    /// The same timers; but the sleeps, timeouts and intervals made through the result may be later by
    /// that much, each time. They share wake-ups, so the runtime is woken less often.
    pub fn within(&self, tolerance: Duration) -> Timers {
        Timers { inner: self.inner.clone(), tolerance }
    }

    /// A future that is ready after `delay`. Its time begins now.
    pub fn sleep(&self, delay: Duration) -> io::Result<Sleep> {
        Ok(Sleep(self.register(delay, |wheel, key| wheel.add(delay, key))?))
    }

    /// The output of `future`, or an error of the kind `TimedOut` if it takes longer than that.
    pub async fn timeout<F: Future>(&self, delay: Duration, future: F) -> io::Result<F::Output> {
        let mut sleep = self.sleep(delay)?;
        tokio::pin!(future);
        poll_fn(|cx| {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            Pin::new(&mut sleep).poll(cx).map(|slept| Err(slept.err().unwrap_or_else(|| io::ErrorKind::TimedOut.into())))
        })
        .await
    }

    /// An interval whose first period begins now. Periods that pass unseen are counted.
    pub fn interval(&self, period: Duration) -> io::Result<Interval> {
        Ok(Interval(self.register(period, |wheel, key| wheel.add_periodic(period, period, key))?))
    }

    /// How many sleeps and intervals there are.
    pub fn len(&self) -> usize {
        lock(&self.inner.core.slots).as_ref().map_or(0, HashMap::len)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// End all of them: tasks that wait get an error.
    pub fn close(&self) {
        self.inner.core.close();
        self.inner.driver.abort();
    }

    fn register(&self, delay: Duration, add: impl FnOnce(&Wheel, u64) -> io::Result<Timer>) -> io::Result<Entry> {
        let core = &self.inner.core;
        let key = core.next.fetch_add(1, Ordering::Relaxed);
        let slot = Arc::new(Slot::default());
        slot.expect(delay);
        lock(&core.slots).as_mut().ok_or_else(closed)?.insert(key, slot.clone());
        match add(&core.wheel.within(self.tolerance), key) {
            Ok(timer) => Ok(Entry { timer, slot, key, inner: self.inner.clone() }),
            Err(error) => {
                lock(&core.slots).as_mut().map(|slots| slots.remove(&key));
                Err(error)
            }
        }
    }
}

/// However the driver ends, also with its runtime, this ends every wait.
struct Driven(Arc<Core>);

impl Drop for Driven {
    fn drop(&mut self) {
        self.0.close();
    }
}

struct Entry {
    timer: Timer,
    slot: Arc<Slot>,
    key: u64,
    inner: Arc<Inner>,
}

impl Entry {
    fn reset(&mut self, delay: Duration) -> io::Result<()> {
        self.slot.expect(delay);
        self.timer.rearm(delay).map(|_| ())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let slot = lock(&self.inner.core.slots).as_mut().and_then(|slots| slots.remove(&self.key));
        drop(slot);
    }
}

/// [`Timers::sleep()`]. Dropping it cancels its timer.
#[must_use = "it does nothing unless it is awaited"]
pub struct Sleep(Entry);

impl Sleep {
    /// Make it ready after `delay` from now, whether or not it is ready already.
    pub fn reset(&mut self, delay: Duration) -> io::Result<()> {
        self.0.reset(delay)
    }
}

impl Future for Sleep {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.slot.poll(cx).map_ok(|_| ())
    }
}

/// Periods that have passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// How many, at least 1.
    pub count: u64,
    /// When the first of them ended, in ns of `CLOCK_MONOTONIC`.
    pub due_ns: u64,
}

/// [`Timers::interval()`]. Dropping it cancels its timer.
pub struct Interval(Entry);

impl Interval {
    /// Wait until a period has passed. If the future is dropped meanwhile, no period is lost.
    pub async fn tick(&mut self) -> io::Result<Tick> {
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// The same, for callers that have a context.
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Tick>> {
        self.0.slot.poll(cx)
    }

    /// Let the next period end after `delay`, and each further one a period after that.
    pub fn reset(&mut self, delay: Duration) -> io::Result<()> {
        self.0.reset(delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Wake;

    struct Nobody;

    impl Wake for Nobody {
        fn wake(self: Arc<Self>) {}
    }

    fn event(expires_ns: u64) -> Event {
        let mut event = Event::default();
        event.expires_ns = expires_ns;
        event.count = 1;
        event
    }

    /// The driver has read an event, and has yet to tell of it, when the sleep is reset.
    #[test]
    fn an_event_from_before_a_reset_is_none() {
        let waker = Arc::new(Nobody).into();
        let mut cx = Context::from_waker(&waker);
        let (slot, now) = (Slot::default(), now_ns());

        slot.expect(Duration::from_millis(5));
        slot.fire(&event(now));
        assert!(slot.poll(&mut cx).is_pending());
        slot.fire(&event(now + 10_000_000_000));
        assert!(slot.poll(&mut cx).is_ready());
        assert!(slot.poll(&mut cx).is_pending());
    }
}
