// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
//! The parts of libtwheel that the crate uses: structures and functions of `<linux/twheel.h>`,
//! `<libtwheel.h>` and `<libtwheel-sched.h>`, which explain them. Everything that depends on the
//! library's ABI is in this file.

#![allow(non_camel_case_types)]

use libc::{c_char, c_int, c_uint, c_void, size_t};
use std::time::Duration;
use std::{io, mem};

pub const KERNEL: c_uint = 0x1;
pub const EMBEDDED: c_uint = 0x2;

pub const OP_ADD: u32 = 1;
pub const OP_MOD: u32 = 2;
pub const F_KEEP: u32 = 0x2;
pub const F_DELAY: u32 = 0x4;

pub const TASK_AT: u32 = 0x1;
pub const TASK_DELAY: u32 = 0x2;
pub const MISSED_DELAY: u32 = 0x4;
pub const MISSED_SKIP: u32 = 0x8;
pub const SCHED_WAIT: u32 = 0x1;
pub const SCHED_FINISH: u32 = 0x2;

const NS_MAX: u64 = i64::MAX as u64;

#[repr(C)]
pub struct twheel {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct twheel_sched {
    _opaque: [u8; 0],
}

#[repr(C)]
#[derive(Default)]
pub struct twheel_setup {
    pub clockid: i32,
    pub flags: u32,
    pub tick_ns: u64,
    pub slack_ns: u64,
    pub max_timers: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Default)]
pub struct twheel_info {
    pub abi: u32,
    pub clockid: i32,
    pub features: u64,
    pub clocks: u64,
    pub tick_ns: u64,
    pub slack_ns: u64,
    pub min_tick_ns: u64,
    pub max_timers: u32,
    pub op_size: u32,
    pub event_size: u32,
    pub nr_timers: u32,
    pub nr_armed: u32,
    pub nr_ready: u32,
    pub mem_bytes: u64,
    pub nr_expired: u64,
    pub nr_wakeups: u64,
    pub nr_moves: u64,
    pub nr_deferred: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct twheel_op {
    pub op: u32,
    pub flags: u32,
    pub handle: u64,
    pub user_data: u64,
    pub expires_ns: u64,
    pub interval_ns: u64,
    pub res: i32,
    pub reserved: u32,
    pub tolerance_ns: u64,
}

#[repr(C)]
pub struct twheel_sched_options {
    pub threads: u32,
    pub flags: u32,
    pub max_pending: u32,
    pub clockid: i32,
    pub tick_ns: u64,
    pub reserved: [u64; 3],
}

#[repr(C)]
pub struct twheel_task {
    pub run: unsafe extern "C" fn(*mut c_void, *const twheel_task_info),
    pub release: unsafe extern "C" fn(*mut c_void),
    pub arg: *mut c_void,
    pub key: *const c_void,
    pub key_len: size_t,
    pub when_ns: i64,
    pub period_ns: i64,
    pub flags: u32,
    pub reserved: u32,
    pub tolerance_ns: i64,
}

#[repr(C)]
pub struct twheel_task_info {
    pub sched: *mut twheel_sched,
    pub id: u64,
    pub run: *const c_void,
    pub release: *const c_void,
    pub arg: *mut c_void,
    pub key: *const c_void,
    pub key_len: size_t,
    pub due_ns: i64,
    pub period_ns: i64,
    pub runs: u64,
    pub missed: u64,
    pub flags: u32,
    pub state: u32,
    pub tolerance_ns: i64,
}

extern "C" {
    fn twheel_open_sized(wheel: *mut *mut twheel, flags: c_uint, setup: *const twheel_setup, size: size_t) -> c_int;
    pub fn twheel_close(wheel: *mut twheel);
    pub fn twheel_fd(wheel: *const twheel) -> c_int;
    pub fn twheel_backend(wheel: *const twheel) -> *const c_char;
    pub fn twheel_add_within(
        wheel: *mut twheel, handle: *mut u64, user_data: u64, expires_ns: u64, interval_ns: u64, tolerance_ns: u64,
        flags: u32,
    ) -> c_int;
    pub fn twheel_mod_within(
        wheel: *mut twheel, handle: u64, expires_ns: u64, interval_ns: u64, tolerance_ns: u64, flags: u32,
    ) -> c_int;
    pub fn twheel_cancel(wheel: *mut twheel, handle: u64, user_data: *mut u64) -> c_int;
    fn twheel_submit_sized(wheel: *mut twheel, ops: *mut twheel_op, nr: u32, size: size_t) -> c_int;
    fn twheel_read_sized(wheel: *mut twheel, events: *mut crate::Event, nr: u32, timeout_ms: c_int, size: size_t) -> c_int;
    fn twheel_query_sized(wheel: *mut twheel, handle: u64, flags: u32, op: *mut twheel_op, size: size_t) -> c_int;
    fn twheel_get_info_sized(wheel: *mut twheel, info: *mut twheel_info, size: size_t) -> c_int;

    fn twheel_sched_open_sized(sched: *mut *mut twheel_sched, options: *const twheel_sched_options, size: size_t) -> c_int;
    pub fn twheel_sched_close(sched: *mut twheel_sched) -> c_int;
    pub fn twheel_sched_fd(sched: *const twheel_sched) -> c_int;
    pub fn twheel_sched_run(sched: *mut twheel_sched, max: u32, timeout_ms: c_int) -> c_int;
    fn twheel_sched_add_sized(sched: *mut twheel_sched, task: *const twheel_task, id: *mut u64, size: size_t) -> c_int;
    pub fn twheel_sched_mod(sched: *mut twheel_sched, id: u64, when_ns: i64) -> c_int;
    pub fn twheel_sched_cancel(sched: *mut twheel_sched, id: u64, flags: u32) -> c_int;
    pub fn twheel_sched_find(sched: *mut twheel_sched, key: *const c_void, key_len: size_t) -> u64;
    pub fn twheel_sched_pending(sched: *mut twheel_sched) -> u32;
    fn twheel_sched_stop_sized(sched: *mut twheel_sched, flags: u32, list: *mut *mut twheel_task_info, size: size_t) -> c_int;
}

/// As the inline functions of the headers: each call passes the size of its structure.
macro_rules! sized {
    ($($vis:vis fn $name:ident($($arg:ident: $type:ty),*) = $sized:ident: $of:ty;)*) => {
        $($vis unsafe fn $name($($arg: $type),*) -> c_int {
            $sized($($arg,)* mem::size_of::<$of>())
        })*
    };
}

sized! {
    pub fn twheel_open(wheel: *mut *mut twheel, flags: c_uint, setup: *const twheel_setup) = twheel_open_sized: twheel_setup;
    pub fn twheel_submit(wheel: *mut twheel, ops: *mut twheel_op, nr: u32) = twheel_submit_sized: twheel_op;
    pub fn twheel_query(wheel: *mut twheel, handle: u64, flags: u32, op: *mut twheel_op) = twheel_query_sized: twheel_op;
    fn twheel_get_info(wheel: *mut twheel, info: *mut twheel_info) = twheel_get_info_sized: twheel_info;
    pub fn twheel_read(wheel: *mut twheel, events: *mut crate::Event, nr: u32, timeout_ms: c_int) = twheel_read_sized: crate::Event;
    pub fn twheel_sched_open(sched: *mut *mut twheel_sched, options: *const twheel_sched_options) = twheel_sched_open_sized: twheel_sched_options;
    pub fn twheel_sched_add(sched: *mut twheel_sched, task: *const twheel_task, id: *mut u64) = twheel_sched_add_sized: twheel_task;
    pub fn twheel_sched_stop(sched: *mut twheel_sched, flags: u32, list: *mut *mut twheel_task_info) = twheel_sched_stop_sized: twheel_task_info;
}

/// # Safety
/// `wheel` is open.
pub unsafe fn get_info(wheel: *mut twheel) -> io::Result<twheel_info> {
    let mut info = twheel_info::default();
    checked(twheel_get_info(wheel, &mut info))?;
    Ok(info)
}

pub fn checked(result: c_int) -> io::Result<u32> {
    u32::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))
}

/// The delay in ns; one that is too long for the library becomes the longest it has.
pub fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).map_or(NS_MAX, |ns| ns.min(NS_MAX))
}

/// The tolerance of a timer that is due after `delay`, cut off at the end of time.
pub fn tolerance_ns(tolerance_ns: u64, delay: Duration) -> u64 {
    tolerance_ns.min(NS_MAX - ns(delay))
}

/// How many ms to wait: at least `left`; `None` is for ever.
pub fn timeout_ms(left: Option<Duration>) -> c_int {
    left.map_or(-1, |left| {
        let ms = (left.as_nanos() + 999_999) / 1_000_000;
        c_int::try_from(ms).unwrap_or(c_int::MAX)
    })
}
