// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
//! Tests the crate's scheduler, with the backend that TWHEEL_BACKEND names.

mod met;

use met::{met, now_ns, WITHIN};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{channel, Receiver};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use twheel::{Missed, Scheduler, When};

const LONG: Duration = Duration::from_secs(3600);
const PATIENCE: Duration = Duration::from_secs(60);
const MS: Duration = Duration::from_millis(1);

fn errno<T>(result: io::Result<T>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

fn pool(threads: u32) -> Scheduler {
    Scheduler::builder().threads(threads).open().unwrap()
}

fn take<T>(from: &Receiver<T>) -> T {
    from.recv_timeout(PATIENCE).unwrap()
}

fn until(what: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !what() {
        assert!(Instant::now() < end, "never");
        thread::sleep(MS);
    }
}

/// Counts how often it is dropped.
struct Thing(Arc<AtomicU32>);

impl Drop for Thing {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_function_is_called_once_in_time_by_the_pool() {
    let (sched, (to, from)) = (pool(2), channel());
    let start = Instant::now();
    let id = sched
        .add(When::after(20 * MS), move |run| {
            to.send((Instant::now(), thread::current().id(), run.id(), run.nr(), run.missed())).unwrap();
        })
        .unwrap();
    let (when, thread, run_id, nr, missed) = take(&from);
    assert!(when >= start + 20 * MS);
    assert_ne!(thread, thread::current().id());
    assert_eq!((run_id, nr, missed), (id, 1, 0));
    until(|| !sched.cancel(id).unwrap()); // it may not have ended yet
    assert!(from.recv_timeout(50 * MS).is_err());
    assert_eq!(errno(sched.reschedule(id, MS)), Some(libc::ENOENT));
}

#[test]
fn tasks_with_a_tolerance_run_together_and_keep_their_phase() {
    let (sched, (to, from)) = (pool(2), channel());
    let mut added = HashMap::new();
    for nr in 1..4 {
        let to = to.clone();
        let run = move |run: &twheel::Run<'_>| {
            let due = run.due_ns() as u64;
            to.send((run.id(), due, met(due))).unwrap();
        };
        let id = sched.add(When::after(100 * nr * MS).within(WITHIN), run).unwrap();
        added.insert(id, now_ns());
    }
    // One that was due when the host let it be added has no tolerance.
    assert!((1..4).map(|_| take(&from)).all(|(id, due, there)| there || due <= added[&id]));
    let (to, from) = channel();
    let run = move |run: &twheel::Run<'_>| to.send(run.due_ns()).unwrap_or_default();
    sched.add(When::after(50 * MS).every(50 * MS).within(30 * MS), run).unwrap();
    let first = take(&from);
    assert!((1..4).all(|nr| take(&from) == first + nr * 50_000_000));
}

// As in wheel.rs: it ends with time, and is not refused.
#[test]
fn no_tolerance_is_too_long() {
    let (sched, (to, _from)) = (pool(1), channel::<()>());
    for delay in [Duration::ZERO, LONG, Duration::MAX] {
        let to = to.clone();
        let run = move |_: &twheel::Run<'_>| to.send(()).unwrap_or_default();
        sched.add(When::after(delay).every(LONG).within(Duration::MAX), run).unwrap();
    }
    assert_eq!(sched.pending(), 3);
}

#[test]
fn missed_periods_follow_the_policy() {
    let sched = pool(3);
    let begin = |missed| {
        let (to, from) = channel();
        let mut first = true;
        let run = move |run: &twheel::Run<'_>| {
            let _ = to.send((run.due_ns(), run.missed()));
            if std::mem::take(&mut first) {
                thread::sleep(110 * MS);
            }
        };
        sched.add(When::after(10 * MS).every(10 * MS).missed(missed), run).unwrap();
        from
    };
    let (burst, skip, delay) = (begin(Missed::Burst), begin(Missed::Skip), begin(Missed::Delay));
    let ((b0, _), (b1, missed)) = (take(&burst), take(&burst));
    assert_eq!((b1 - b0, missed), (10_000_000, 0));
    let ((s0, _), (s1, missed)) = (take(&skip), take(&skip));
    let ((s2, more), _) = (take(&skip), ());
    assert_eq!((s1 - s0) % 10_000_000, 0);
    assert_eq!((s2 - s0) % 10_000_000, 0);
    assert!(missed + more >= 9, "{missed} {more}");
    let ((d0, _), _, (d2, _)) = (take(&delay), take(&delay), take(&delay));
    assert!(d2 - d0 >= 110_000_000);
}

#[test]
fn a_fixed_delay_counts_from_the_return() {
    let (sched, (to, from)) = (pool(1), channel());
    let run = move |_: &twheel::Run<'_>| {
        let start = Instant::now();
        thread::sleep(20 * MS);
        let _ = to.send((start, Instant::now()));
    };
    sched.add(When::after(MS).every(20 * MS).fixed_delay(), run).unwrap();
    let (first, second) = (take(&from), take(&from));
    assert!(second.0 >= first.1 + 19 * MS);
}

#[test]
fn a_task_runs_at_a_time_of_the_wall_clock() {
    let (sched, (to, from)) = (pool(1), channel());
    let when = SystemTime::now() + 30 * MS;
    sched.at(when, move |_| to.send(SystemTime::now()).unwrap()).unwrap();
    assert!(take(&from) >= when);
    let (to, from) = channel();
    let id = sched.at(SystemTime::now() + LONG, move |_| to.send(()).unwrap()).unwrap();
    sched.reschedule_at(id, SystemTime::UNIX_EPOCH).unwrap();
    take(&from);
}

#[test]
fn a_task_after_a_delay_has_no_wall_clock_time() {
    let (sched, (to, from)) = (pool(1), channel());
    let other = to.clone();
    let at = sched.at(SystemTime::now() + LONG, move |_| to.send(1).unwrap()).unwrap();
    let after = sched.add(When::after(LONG).key("x"), move |_| other.send(2).unwrap()).unwrap();
    assert_eq!(errno(sched.reschedule(at, Duration::ZERO)), Some(libc::EINVAL));
    assert_eq!(errno(sched.reschedule_at(after, SystemTime::now())), Some(libc::EINVAL));
    sched.reschedule_at(at, SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(take(&from), 1);
    sched.reschedule(sched.find("x").unwrap(), Duration::ZERO).unwrap();
    assert_eq!(take(&from), 2);
}

#[test]
fn no_two_tasks_have_the_same_key() {
    let (sched, (to, from)) = (pool(1), channel());
    let other = to.clone();
    let first = sched.add(When::after(LONG).key(b"a\0b"), move |_| to.send(1).unwrap()).unwrap();
    let second = sched.add(When::after(LONG).key(b"a\0b"), move |_| other.send(2).unwrap()).unwrap();
    assert_eq!((sched.pending(), sched.find(b"a\0b"), sched.find(b"a")), (1, Some(second), None));
    assert!(!sched.cancel(first).unwrap());
    sched.reschedule(second, Duration::ZERO).unwrap();
    assert_eq!(take(&from), 2);
    assert_eq!(errno(sched.add(When::after(LONG).key([b'x'; 65536]), |_| ())), Some(libc::EINVAL));
    assert_eq!(errno(sched.add(When::after(LONG).key(""), |_| ())), Some(libc::EINVAL));
}

#[test]
fn cancelling_waits_and_is_refused_to_the_function() {
    let sched = Arc::new(pool(1));
    let ((to, from), state) = (channel(), Arc::new(AtomicU32::new(0)));
    let (inner, inner_state) = (sched.clone(), state.clone());
    let id = sched
        .add(When::after(MS).every(LONG), move |run| {
            to.send(errno(inner.cancel_wait(run.id()))).unwrap();
            thread::sleep(50 * MS);
            inner_state.store(1, Ordering::SeqCst);
        })
        .unwrap();
    assert_eq!(take(&from), Some(libc::EDEADLK));
    assert!(sched.cancel_wait(id).unwrap());
    assert_eq!(state.load(Ordering::SeqCst), 1);
    assert_eq!(sched.pending(), 0);
}

#[test]
fn a_run_can_cancel_its_task() {
    let (sched, (to, from)) = (pool(1), channel());
    sched
        .every(5 * MS, move |run| {
            if run.nr() == 3 {
                run.cancel();
            }
            to.send(run.nr()).unwrap();
        })
        .unwrap();
    assert_eq!((take(&from), take(&from), take(&from)), (1, 2, 3));
    assert!(from.recv_timeout(PATIENCE).is_err()); // at once: the sender has gone
}

/// The payload of a panic, which panics again when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("boom");
    }
}

#[test]
fn panics_end_their_task_and_nothing_else() {
    let ((to, from), drops) = (channel(), Arc::new(AtomicU32::new(0)));
    let sched = pool(2);
    let thing = Thing(drops.clone());
    sched.every(5 * MS, move |_| panic!("{}", thing.0.load(Ordering::SeqCst))).unwrap();
    let bomb = Bomb;
    sched.after(5 * MS, move |_| { let _bomb = &bomb; }).unwrap();
    sched.after(5 * MS, |_| std::panic::panic_any(Bomb)).unwrap();
    until(|| sched.panics() >= 3 && sched.pending() == 0);
    until(|| drops.load(Ordering::SeqCst) > 0); // by a thread of the pool, when nothing is pending any more
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    assert_eq!(sched.panics(), 3);
    sched.after(MS, move |_| to.send(()).unwrap()).unwrap();
    take(&from);
}

#[test]
fn functions_are_dropped_once() {
    let drops = Arc::new(AtomicU32::new(0));
    let count = || drops.load(Ordering::SeqCst);
    let sched = pool(1);
    let add = |delay, key: &str| {
        let thing = Thing(drops.clone());
        sched.add(When::after(delay).key(key), move |_| { let _ = &thing; })
    };
    add(Duration::ZERO, "over").unwrap();
    until(|| count() == 1);
    let id = add(LONG, "cancelled").unwrap();
    assert_eq!(count(), 1);
    sched.cancel(id).unwrap();
    assert_eq!(count(), 2);
    add(LONG, "replaced").unwrap();
    add(LONG, "replaced").unwrap();
    assert_eq!(count(), 3);
    assert_eq!(sched.stop().unwrap(), 1);
    assert_eq!(count(), 4);
    assert_eq!(errno(add(LONG, "late")), Some(libc::ESHUTDOWN));
    assert_eq!(count(), 5);
    drop(sched);
    assert_eq!(drops.load(Ordering::SeqCst), 5);
}

#[test]
fn dropping_the_scheduler_waits_for_functions() {
    let (state, (to, from)) = (Arc::new(Mutex::new(0)), channel());
    let (sched, inner) = (pool(1), state.clone());
    sched
        .after(Duration::ZERO, move |_| {
            to.send(()).unwrap();
            thread::sleep(50 * MS);
            *inner.lock().unwrap() = 1;
        })
        .unwrap();
    take(&from);
    drop(sched);
    assert_eq!(*state.lock().unwrap(), 1);
}

/// The last reference to a scheduler is dropped by its own function, or with what a function owned.
#[test]
fn a_function_may_drop_its_own_scheduler() {
    for in_function in [true, false] {
        let ((to, from), drops) = (channel(), Arc::new(AtomicU32::new(0)));
        let sched = Arc::new(pool(1));
        let (inner, thing) = (sched.clone(), Thing(drops.clone()));
        sched.after(LONG, move |_| { let _ = &thing; }).unwrap();
        let mut inner = Some(inner);
        let run = move |run: &twheel::Run<'_>| {
            run.cancel();
            if in_function {
                inner.take();
            }
            to.send(()).unwrap();
        };
        sched.add(When::after(20 * MS).every(LONG), run).unwrap();
        drop(sched);
        take(&from);
        until(|| drops.load(Ordering::SeqCst) == 1);
    }
}

#[test]
fn finish_runs_the_tasks_that_run_once() {
    let (sched, (to, from)) = (pool(1), channel());
    sched.after(20 * MS, move |_| to.send(()).unwrap()).unwrap();
    sched.every(LONG, |_| ()).unwrap();
    assert_eq!(sched.finish().unwrap(), 1);
    from.try_recv().unwrap();
}

#[test]
fn without_a_pool_the_caller_runs_tasks() {
    let sched = Scheduler::new().unwrap();
    let got = loop {
        let ((to, from), start) = (channel(), Instant::now());
        for delay in [60, 20, 40] {
            let to = to.clone();
            sched.after(delay * MS, move |run| to.send((run.due_ns(), thread::current().id())).unwrap()).unwrap();
        }
        let late = start.elapsed() >= 20 * MS;
        thread::sleep(80 * MS);
        assert_eq!(sched.run(Some(Duration::ZERO)).unwrap(), 3);
        // If the host stood still until one was due before all had been added, that one may be first.
        if !late {
            break from.try_iter().collect::<Vec<_>>();
        }
    };
    // How long the calls took decides which task is due first.
    let mut in_order = got.clone();
    in_order.sort_by_key(|(due, _)| *due);
    assert_eq!(got, in_order);
    assert!(got.iter().all(|(_, id)| *id == thread::current().id()));
    assert_eq!(sched.run(Some(20 * MS)).unwrap(), 0);
    sched.after(10 * MS, |_| panic!("contained")).unwrap();
    assert_eq!((sched.run(None).unwrap(), sched.panics()), (1, 1));
    assert!(sched.fd().unwrap() >= 0);
    assert_eq!((errno(pool(1).fd()), errno(pool(1).run(None))), (Some(libc::EINVAL), Some(libc::EINVAL)));
    assert_eq!(errno(sched.finish()), Some(libc::EDEADLK));
}
