// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
//! Tests the crate's wheel and timers, with the backend that TWHEEL_BACKEND names. No test checks
//! how late events are: the host may be busy.

mod met;

use met::{met, WITHIN};
use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use twheel::{Backend, Clock, Event, State, Timer, Wheel};

const LONG: Duration = Duration::from_secs(3600);
const MS: Duration = Duration::from_millis(1);

fn errno<T>(result: io::Result<T>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

fn read(wheel: &Wheel, timeout: Duration) -> Vec<Event> {
    let mut events = [Event::default(); 64];
    let nr = wheel.read(&mut events, Some(timeout)).unwrap();
    events[..nr].to_vec()
}

fn until(what: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !what() {
        assert!(Instant::now() < end, "never");
        thread::sleep(MS);
    }
}

#[test]
fn the_backend_is_the_one_asked_for() {
    let wanted = std::env::var("TWHEEL_BACKEND").unwrap();
    let wheel = Wheel::new().unwrap();
    assert_eq!(format!("{:?}", wheel.backend()).to_lowercase(), wanted);
    let embedded = Wheel::builder().backend(Backend::Embedded).open().unwrap();
    assert_eq!(embedded.backend(), Backend::Embedded);
}

#[test]
fn a_timer_fires_once_and_not_early() {
    let wheel = Wheel::new().unwrap();
    let start = Instant::now();
    let timer = wheel.add(30 * MS, u64::MAX).unwrap();
    let events = read(&wheel, LONG);
    assert!(start.elapsed() >= 30 * MS);
    assert_eq!((events[0].user_data, events[0].handle, events[0].count), (u64::MAX, timer.handle(), 1));
    assert_eq!(timer.state().unwrap().0, State::Idle);
    assert!(read(&wheel, 30 * MS).is_empty());
}

#[test]
fn dropping_a_timer_cancels_it() {
    let wheel = Wheel::new().unwrap();
    let armed = wheel.add(20 * MS, 1).unwrap();
    let ready = wheel.add(Duration::ZERO, 2).unwrap();
    until(|| ready.state().unwrap().0 == State::Ready);
    assert_eq!(wheel.info().unwrap().timers, 2);
    drop(armed);
    drop(ready);
    assert_eq!(wheel.info().unwrap().timers, 0);
    assert!(wheel.add(LONG, 3).unwrap().cancel());
    let over = wheel.add(Duration::ZERO, 4).unwrap();
    assert_eq!(read(&wheel, LONG)[0].user_data, 4);
    assert!(!over.cancel());
    assert_eq!(wheel.info().unwrap().timers, 0);
    assert!(read(&wheel, 50 * MS).is_empty());
}

#[test]
fn timers_with_a_tolerance_fire_together() {
    let wheel = Wheel::new().unwrap();
    let late = wheel.within(WITHIN);
    let one = late.add(10 * MS, 1).unwrap();
    let many = late.add_many(&[(100 * MS, 2), (200 * MS, 3)]).unwrap();
    let again = late.add(LONG, 4).unwrap();
    assert!(again.rearm(300 * MS).unwrap());
    let endless = late.add(Duration::MAX, 5).unwrap();
    wheel.rearm_many(&[(&one, 50 * MS)]).unwrap();
    let exact = wheel.add(LONG, 6).unwrap();
    let mut seen = HashSet::new();
    while seen.len() < 4 {
        for event in read(&late, LONG) {
            assert!(met(event.expires_ns));
            assert!(seen.insert(event.user_data));
        }
    }
    assert_eq!(seen, HashSet::from([1, 2, 3, 4]));
    assert!(exact.cancel() && endless.cancel());
    drop((one, many, again));
    assert_eq!(wheel.info().unwrap().timers, 0);
}

// The library refuses what would end after time; the crate lets it end with time.
#[test]
fn no_tolerance_is_too_long() {
    let wheel = Wheel::new().unwrap();
    let late = wheel.within(Duration::MAX);
    let one = late.add(LONG, 1).unwrap();
    let periodic = late.add_periodic(LONG, LONG, 2).unwrap();
    let many = late.add_many(&[(LONG, 3), (Duration::ZERO, 4), (Duration::MAX, 5)]).unwrap();
    assert!(many.iter().all(|added| added.is_ok()));
    assert!(one.rearm(2 * LONG).unwrap() && one.rearm(Duration::MAX).unwrap());
    let again = wheel.rearm_many(&[(&one, LONG), (&periodic, Duration::MAX)]).unwrap();
    assert!(again.iter().all(|armed| *armed.as_ref().unwrap()));
    late.add_detached(LONG, 6).unwrap();
    assert_eq!(wheel.info().unwrap().armed, 6);
}

#[test]
fn a_timer_keeps_its_wheel_open() {
    let wheel = Wheel::new().unwrap();
    let timer = wheel.add(LONG, 1).unwrap();
    drop(wheel);
    assert!(timer.rearm(LONG).unwrap());
    assert_eq!(timer.state().unwrap().0, State::Armed);
}

#[test]
fn a_timer_is_rearmed_in_each_state() {
    let wheel = Wheel::new().unwrap();
    let mut timer = wheel.add(LONG, 1).unwrap();
    assert!(timer.rearm(Duration::ZERO).unwrap());
    assert_eq!(read(&wheel, LONG).len(), 1);
    assert!(!timer.rearm(Duration::ZERO).unwrap());
    until(|| timer.state().unwrap().0 == State::Ready);
    assert!(!timer.rearm(10 * MS).unwrap());
    assert_eq!(read(&wheel, LONG).len(), 1);
    timer.rearm_with(MS, Some(MS)).unwrap();
    assert_eq!(read(&wheel, LONG).len(), 1);
    assert_eq!(read(&wheel, LONG).len(), 1);
    timer.rearm_with(LONG, None).unwrap();
    assert!(timer.state().unwrap().1 > LONG / 2);
}

#[test]
fn periods_that_pass_are_counted() {
    let wheel = Wheel::new().unwrap();
    let _timer = wheel.add_periodic(10 * MS, 10 * MS, 1).unwrap();
    thread::sleep(100 * MS);
    let first = read(&wheel, LONG)[0];
    let second = read(&wheel, LONG)[0];
    assert!(first.count >= 9);
    assert_eq!(second.expires_ns - first.expires_ns, u64::from(first.count) * 10_000_000);
}

#[test]
fn a_fixed_delay_counts_from_the_reading() {
    let wheel = Wheel::new().unwrap();
    let _timer = wheel.add_fixed_delay(MS, 20 * MS, 1).unwrap();
    thread::sleep(100 * MS);
    // Before the reading: the host may be away after it.
    let start = Instant::now();
    assert_eq!(read(&wheel, LONG)[0].count, 1);
    assert_eq!(read(&wheel, LONG)[0].count, 1);
    assert!(start.elapsed() >= 20 * MS);
}

#[test]
fn many_timers_in_one_call() {
    let wheel = Wheel::new().unwrap();
    let wanted: Vec<_> = (0..5000).map(|i| (LONG, i)).collect();
    let timers: Vec<Timer> = wheel.add_many(&wanted).unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!(wheel.info().unwrap().armed, 5000);
    let mods: Vec<_> = timers.iter().map(|timer| (timer, Duration::ZERO)).collect();
    assert!(wheel.rearm_many(&mods).unwrap().into_iter().all(Result::unwrap));
    let mut seen = HashSet::new();
    while seen.len() < 5000 {
        for event in read(&wheel, LONG) {
            assert!(seen.insert(event.user_data));
            assert_eq!(timers[event.user_data as usize].handle(), event.handle);
        }
    }
    wheel.add_detached(Duration::ZERO, 1).unwrap();
    assert_eq!(read(&wheel, LONG).len(), 1);
    drop(timers);
    assert_eq!(wheel.info().unwrap().timers, 0);
}

#[test]
fn errors_have_their_errno() {
    let wheel = Wheel::builder().max_timers(1).clock(Clock::Boottime).open().unwrap();
    let timer = wheel.add(Duration::MAX, 1).unwrap();
    assert_eq!(errno(wheel.add(LONG, 2)), Some(libc::EDQUOT));
    let many = wheel.add_many(&[(LONG, 3)]).unwrap();
    assert_eq!(errno(many.into_iter().next().unwrap()), Some(libc::EDQUOT));
    drop(timer);
    assert_eq!(errno(wheel.add_periodic(MS, Duration::from_nanos(1), 2)), Some(libc::EINVAL));
    assert_eq!(errno(wheel.add_periodic(MS, Duration::ZERO, 2)), Some(libc::EINVAL));
    assert_eq!(errno(Wheel::builder().tick(LONG).open()), Some(libc::EINVAL));
    assert_eq!(errno(wheel.read(&mut [], Some(MS))), Some(libc::EINVAL));
}

#[test]
fn read_waits_until_its_timeout() {
    let wheel = Wheel::new().unwrap();
    let start = Instant::now();
    assert!(read(&wheel, Duration::from_micros(20_500)).is_empty());
    assert!(start.elapsed() >= Duration::from_micros(20_500));
}

/// Threads arm, drop and read at the same time. A dropped timer leaves nothing; each other one fires.
#[test]
fn threads_share_a_wheel() {
    let wheel = Wheel::new().unwrap();
    let (over, fired) = (AtomicBool::new(false), AtomicU64::new(0));
    let kept: u64 = thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) || wheel.info().unwrap().armed + wheel.info().unwrap().ready > 0 {
                    let kept = read(&wheel, MS).iter().filter(|event| event.user_data == 1).count();
                    fired.fetch_add(kept as u64, Ordering::Relaxed);
                }
            });
        }
        let arm = |_| {
            scope.spawn(|| {
                for i in 0..2000u64 {
                    let timer = wheel.add(Duration::from_micros(i % 7 * 500), 0).unwrap();
                    timer.rearm(Duration::from_micros(i % 5 * 500)).unwrap();
                    wheel.add_detached(Duration::from_micros(i % 3 * 500), 1).unwrap();
                }
                2000
            })
        };
        let armers: Vec<_> = (0..3).map(arm).collect();
        let kept = armers.into_iter().map(|thread| thread.join().unwrap()).sum();
        over.store(true, Ordering::Relaxed);
        kept
    });
    assert_eq!(fired.load(Ordering::Relaxed), kept);
    assert_eq!(wheel.info().unwrap().timers, 0);
}

#[test]
fn after_fork_the_child_is_refused_and_the_parent_continues() {
    let wheel = Wheel::new().unwrap();
    let timer = wheel.add(20 * MS, 1).unwrap();
    // SAFETY: The child does nothing that needs the other threads.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = errno(timer.rearm(MS)) == Some(libc::ECHILD);
        unsafe { libc::_exit(i32::from(!refused)) };
    }
    let mut status = -1;
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0);
    assert_eq!(read(&wheel, LONG).len(), 1);
}
