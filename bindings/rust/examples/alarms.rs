// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
//! libtwheel in tokio. It is the alarm clock that alarms.h in examples/ describes: a task for each
//! alarm, and all of them on one descriptor.

use std::io;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader};
use twheel::aio::Timers;

async fn ring(timers: Timers, due: Instant, name: String) -> io::Result<()> {
    timers.sleep(due.saturating_duration_since(Instant::now()))?.await?;
    match Instant::now().checked_duration_since(due) {
        Some(late) => println!("{name} {}", late.as_micros()),
        None => println!("{name} -1"),
    }
    Ok(())
}

async fn alarm_clock() -> io::Result<()> {
    let timers = Timers::new()?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut alarms = Vec::new();

    while let Some(line) = lines.next_line().await? {
        let (ms, name) = line.split_once(' ').ok_or(io::ErrorKind::InvalidData)?;
        let ms = ms.parse().map_err(|_| io::ErrorKind::InvalidData)?;
        let due = Instant::now() + Duration::from_millis(ms);
        alarms.push(tokio::spawn(ring(timers.clone(), due, name.to_string())));
    }
    for alarm in alarms {
        alarm.await??;
    }
    Ok(())
}

fn main() -> io::Result<()> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_io().build()?.block_on(alarm_clock())
}
