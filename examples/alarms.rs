// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
//! libtwheel from Rust: the few declarations that are needed, and a safe type around them. rustc
//! alone builds it. It is the alarm clock that alarms.h describes.

use std::fs::File;
use std::io::Read;
use std::os::raw::{c_int, c_short, c_uint, c_ulong, c_void};
use std::os::unix::io::FromRawFd;
use std::time::Duration;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    user_data: u64,
    handle: u64,
    expires_ns: u64,
    count: u32,
    flags: u32,
}

#[repr(C)]
struct PollFd {
    fd: c_int,
    events: c_short,
    revents: c_short,
}

#[repr(C)]
struct Timespec {
    sec: i64,
    nsec: i64,
}

const POLLIN: c_short = 1;
const CLOCK_MONOTONIC: c_int = 1;

extern "C" {
    fn twheel_open(wheel: *mut *mut c_void, flags: c_uint, setup: *const c_void) -> c_int;
    fn twheel_close(wheel: *mut c_void);
    fn twheel_fd(wheel: *const c_void) -> c_int;
    fn twheel_add(wheel: *mut c_void, handle: *mut u64, user_data: u64, expires_ns: u64,
                  interval_ns: u64, flags: u32) -> c_int;
    fn twheel_read(wheel: *mut c_void, events: *mut Event, nr: u32, timeout_ms: c_int) -> c_int;
    fn poll(fds: *mut PollFd, nr: c_ulong, timeout_ms: c_int) -> c_int;
    fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
}

struct Wheel(*mut c_void);

fn checked(result: c_int) -> std::io::Result<u32> {
    u32::try_from(result).map_err(|_| std::io::Error::from_raw_os_error(-result))
}

impl Wheel {
    fn open() -> std::io::Result<Wheel> {
        let mut wheel = std::ptr::null_mut();
        checked(unsafe { twheel_open(&mut wheel, 0, std::ptr::null()) })?;
        Ok(Wheel(wheel))
    }

    fn fd(&self) -> c_int {
        unsafe { twheel_fd(self.0) }
    }

    /// Returns the handle.
    fn add(&self, after: Duration, user_data: u64) -> std::io::Result<u64> {
        let mut handle = 0;
        let ns = after.as_nanos() as u64;
        checked(unsafe { twheel_add(self.0, &mut handle, user_data, ns, 0, 0) })?;
        Ok(handle)
    }

    /// What has expired; empty if nothing has.
    fn read(&self) -> Vec<Event> {
        let mut events = [Event::default(); 64];
        let nr = unsafe { twheel_read(self.0, events.as_mut_ptr(), 64, 0) };
        events[..nr.max(0) as usize].to_vec()
    }
}

impl Drop for Wheel {
    fn drop(&mut self) {
        unsafe { twheel_close(self.0) }
    }
}

fn monotonic_ns() -> u64 {
    let mut time = Timespec { sec: 0, nsec: 0 };
    unsafe { clock_gettime(CLOCK_MONOTONIC, &mut time) };
    time.sec as u64 * 1_000_000_000 + time.nsec as u64
}

/// The whole lines of `text`, which keeps what may become one.
fn take_lines(text: &mut Vec<u8>) -> String {
    let end = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    String::from_utf8(text.drain(..end).collect()).unwrap()
}

fn main() -> std::io::Result<()> {
    let wheel = Wheel::open()?;
    let mut stdin = unsafe { File::from_raw_fd(0) }; // unbuffered, for poll()
    let mut names: Vec<String> = Vec::new(); // of alarm N, which is its timer's user data
    let (mut fired, mut text, mut open) = (0, Vec::new(), true);

    while open || fired < names.len() {
        let input = if open { 0 } else { -1 };
        let mut fds = [PollFd { fd: wheel.fd(), events: POLLIN, revents: 0 },
                       PollFd { fd: input, events: POLLIN, revents: 0 }];
        unsafe { poll(fds.as_mut_ptr(), 2, -1) };
        if fds[1].revents != 0 {
            let mut buffer = [0; 4096];
            let nr = stdin.read(&mut buffer)?;
            open = nr > 0;
            text.extend_from_slice(&buffer[..nr]);
            for line in take_lines(&mut text).lines() {
                let (ms, name) = line.split_once(' ').unwrap();
                wheel.add(Duration::from_millis(ms.parse().unwrap()), names.len() as u64)?;
                names.push(name.to_string());
            }
        }
        for event in wheel.read() {
            let late = monotonic_ns() as i64 - event.expires_ns as i64;
            println!("{} {}", names[event.user_data as usize], late / 1000);
            fired += 1;
        }
    }
    Ok(())
}
