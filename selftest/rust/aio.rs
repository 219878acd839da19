// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
//! Tests the crate's timers for tokio, with the backend that TWHEEL_BACKEND names.

mod met;

use met::{met, now_ns, WITHIN};
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Barrier;
use tokio::task;
use twheel::aio::Timers;
use twheel::Wheel;

const LONG: Duration = Duration::from_secs(3600);
const MS: Duration = Duration::from_millis(1);

fn one() -> Runtime {
    Builder::new_current_thread().enable_io().build().unwrap()
}

fn two() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_io().build().unwrap()
}

/// Run `test` on a runtime of one thread, and on one of two.
fn on_each<F: Future<Output = io::Result<()>>>(test: impl Fn() -> F) {
    one().block_on(test()).unwrap();
    two().block_on(test()).unwrap();
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

async fn until(what: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !what() {
        assert!(Instant::now() < end, "never");
        task::yield_now().await;
    }
}

fn kind<T>(result: io::Result<T>) -> Option<io::ErrorKind> {
    result.err().map(|error| error.kind())
}

#[test]
fn a_sleep_is_never_short() {
    on_each(|| async {
        let timers = Timers::new()?;
        for delay in [0, 1, 10, 30] {
            let start = Instant::now();
            timers.sleep(delay * MS)?.await?;
            assert!(start.elapsed() >= delay * MS);
        }
        assert!(timers.is_empty());
        Ok(())
    });
}

#[test]
fn sleeps_and_intervals_with_a_tolerance_end_together() {
    on_each(|| async {
        let timers = Timers::new()?;
        let late = timers.within(WITHIN);
        let begin = now_ns();
        let (sleep, mut interval) = (late.sleep(200 * MS)?, late.interval(100 * MS)?);
        let timeout = late.timeout(50 * MS, std::future::pending::<()>()).await;
        assert_eq!(kind(timeout), Some(io::ErrorKind::TimedOut));
        assert!(met(begin + 50_000_000));
        sleep.await?;
        assert!(met(begin + 200_000_000));
        assert!(met(interval.tick().await?.due_ns));
        drop(interval);
        assert!(timers.is_empty());
        Ok(())
    });
}

/// All timers together take one descriptor.
#[test]
fn many_sleeps_on_one_descriptor() {
    on_each(|| async {
        let timers = Timers::new()?;
        // None ends before all have begun, and have been counted, however slow the host is.
        let all = Arc::new(Barrier::new(5001));
        let sleeper = |i: u32| {
            let (timers, all) = (timers.clone(), all.clone());
            async move {
                let mut sleep = timers.sleep(LONG)?;
                all.wait().await;
                all.wait().await;
                let start = Instant::now();
                sleep.reset(i % 300 * MS)?;
                (&mut sleep).await?;
                assert!(start.elapsed() >= i % 300 * MS);
                io::Result::Ok(i)
            }
        };
        let tasks: Vec<_> = (0..5000).map(|i| task::spawn(sleeper(i))).collect();
        all.wait().await;
        assert_eq!(timers.len(), 5000);
        assert!(descriptors() < 200);
        all.wait().await;
        for (i, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.await??, i as u32);
        }
        Ok(())
    });
}

#[test]
fn a_sleep_that_is_dropped_is_cancelled() {
    on_each(|| async {
        let wheel = Wheel::new()?;
        let timers = Timers::on(wheel.clone())?;
        let sleep = timers.sleep(LONG)?;
        assert_eq!((timers.len(), wheel.info()?.timers), (1, 1));
        drop(sleep);
        assert_eq!((timers.len(), wheel.info()?.timers), (0, 0));
        let task = task::spawn(timers.sleep(LONG)?);
        task.abort();
        let _ = task.await;
        assert_eq!((timers.len(), wheel.info()?.timers), (0, 0));
        Ok(())
    });
}

#[test]
fn a_sleep_is_reset_before_and_after_its_end() {
    on_each(|| async {
        let timers = Timers::new()?;
        let mut sleep = timers.sleep(LONG)?;
        sleep.reset(10 * MS)?;
        (&mut sleep).await?;
        let start = Instant::now();
        sleep.reset(20 * MS)?;
        (&mut sleep).await?;
        assert!(start.elapsed() >= 20 * MS);
        Ok(())
    });
}

#[test]
fn a_timeout_is_an_error_or_the_output() {
    on_each(|| async {
        let timers = Timers::new()?;
        assert_eq!(timers.timeout(LONG, async { 7 }).await?, 7);
        let never = std::future::pending::<()>();
        assert_eq!(kind(timers.timeout(5 * MS, never).await), Some(io::ErrorKind::TimedOut));
        let slow = async {
            timers.sleep(LONG)?.await
        };
        assert_eq!(kind(timers.timeout(5 * MS, slow).await), Some(io::ErrorKind::TimedOut));
        assert!(timers.is_empty());
        Ok(())
    });
}

#[test]
fn an_interval_counts_what_passes() {
    on_each(|| async {
        let timers = Timers::new()?;
        let mut interval = timers.interval(5 * MS)?;
        let first = interval.tick().await?;
        std::thread::sleep(60 * MS);
        let second = interval.tick().await?;
        let (mut all, mut last) = (second.count, second);
        while all < 11 {
            last = interval.tick().await?;
            all += last.count;
        }
        assert_eq!(last.due_ns - first.due_ns, (first.count + all - last.count) * 5_000_000);
        let start = Instant::now();
        interval.reset(30 * MS)?;
        interval.tick().await?;
        assert!(start.elapsed() >= 30 * MS);
        Ok(())
    });
}

#[test]
fn closing_ends_every_wait() {
    on_each(|| async {
        let timers = Timers::new()?;
        let sleeper = task::spawn(timers.sleep(LONG)?);
        let mut interval = timers.interval(LONG)?;
        let ticker = task::spawn(async move { interval.tick().await });
        task::yield_now().await;
        timers.close();
        assert_eq!(kind(sleeper.await?), Some(io::ErrorKind::NotConnected));
        assert_eq!(kind(ticker.await?), Some(io::ErrorKind::NotConnected));
        assert_eq!(kind(timers.sleep(MS)), Some(io::ErrorKind::NotConnected));
        Ok(())
    });
}

#[test]
fn the_last_clone_frees_the_wheel() {
    on_each(|| async {
        let wheel = Wheel::new()?;
        let timers = Timers::on(wheel.clone())?;
        let sleep = timers.sleep(10 * MS)?;
        drop(timers.clone());
        drop(timers);
        sleep.await?; // it holds the last reference
        // The driver ends, and the runtime does not watch that descriptor any more.
        until(|| Timers::on(wheel.clone()).is_ok()).await;
        Ok(())
    });
}

#[test]
fn timers_fail_when_their_runtime_has_ended() {
    let runtime = two();
    let (timers, sleep) = runtime.block_on(async {
        let timers = Timers::new().unwrap();
        let sleep = timers.sleep(LONG).unwrap();
        (timers, sleep)
    });
    drop(runtime);
    assert_eq!(kind(one().block_on(sleep)), Some(io::ErrorKind::NotConnected));
    assert_eq!(kind(timers.sleep(MS)), Some(io::ErrorKind::NotConnected));
}

#[test]
fn without_a_runtime_timers_are_an_error() {
    assert_eq!(kind(Timers::new()), Some(io::ErrorKind::Other));
}

#[test]
fn errors_of_the_wheel_are_passed_on() {
    on_each(|| async {
        let timers = Timers::on(Wheel::builder().max_timers(1).open()?)?;
        let _sleep = timers.sleep(LONG)?;
        assert_eq!(timers.sleep(MS).err().and_then(|error| error.raw_os_error()), Some(libc::EDQUOT));
        assert_eq!(timers.len(), 1);
        let output = timers.timeout(MS, async { 1 }).await;
        assert_eq!(output.err().and_then(|error| error.raw_os_error()), Some(libc::EDQUOT));
        Ok(())
    });
}
