// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
//! Timers of a wheel, of a scheduler, and of tokio.

use std::sync::mpsc;
use std::time::Duration;

use twheel::{aio::Timers, Event, Scheduler, Wheel};

const SOON: Duration = Duration::from_millis(1);

fn wheel() -> std::io::Result<()> {
    let wheel = Wheel::new()?;
    let timer = wheel.add(SOON, 42)?;
    let mut events = [Event::default(); 4];
    assert_eq!(wheel.read(&mut events, Some(Duration::from_secs(10)))?, 1);
    assert_eq!(events[0].user_data, 42);
    drop(timer);
    Ok(())
}

fn scheduler() -> std::io::Result<()> {
    let (sender, receiver) = mpsc::channel();
    let scheduler = Scheduler::builder().threads(1).open()?;
    scheduler.every(SOON, move |run| sender.send(run.nr()).unwrap_or_default())?;
    assert_eq!(receiver.recv_timeout(Duration::from_secs(10)), Ok(1));
    Ok(())
}

async fn sleep() -> std::io::Result<()> {
    Timers::new()?.sleep(SOON)?.await
}

fn main() -> std::io::Result<()> {
    wheel()?;
    scheduler()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(sleep())?;
    println!("used");
    Ok(())
}
