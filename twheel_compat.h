/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * What differs between the kernels twheel is built for, and nothing else. Kbuild
 * looks into the headers it builds against and defines the HAVE_ names: stable
 * kernels take over interfaces of later ones, so version numbers say little.
 */
#ifndef TWHEEL_COMPAT_H
#define TWHEEL_COMPAT_H

#include <linux/alarmtimer.h>
#include <linux/hrtimer.h>
#if HAVE_IO_URING_CMD_H
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif
#include <linux/sched/isolation.h>

#if !HAVE_CPU_IS_ISOLATED
static inline bool cpu_is_isolated(int cpu)
{
	return !housekeeping_test_cpu(cpu, HK_TYPE_DOMAIN);
}
#endif

#if !HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/* The first of what is armed on a clock of a CPU. Under the lock of the CPU's hrtimers. */
#if HAVE_TIMERQUEUE_LINKED
#define hrtimer_first(clock)	timerqueue_linked_first(&(clock)->active)
#else
#define hrtimer_first(clock)	timerqueue_getnext(&(clock)->active)
#endif

/* What the callback of an alarm returns, and how an alarm is started for a time of its clock. */
#if HAVE_ALARM_START_TIMER
#define ALARM_RETURNS		void
#define ALARM_DONE
#else
#define ALARM_RETURNS		enum alarmtimer_restart
#define ALARM_DONE		ALARMTIMER_NORESTART

static inline bool alarm_start_timer(struct alarm *alarm, ktime_t expires, bool relative)
{
	alarm_start(alarm, expires);
	return true;
}
#endif

/* The part of a command's SQE that is for the driver: 16 bytes at least. */
static inline const void *uring_cmd_payload(const struct io_uring_cmd *cmd)
{
#if HAVE_URING_CMD_SQE
	return cmd->sqe->cmd;
#else
	return cmd->cmd;
#endif
}

/*
 * @cmd is done, with @res, which is not negative. Its ->uring_cmd() must return what this function
 * returns. From Linux 6.12 on it could also return @res. Older kernels would take a @res other than
 * 0 for an error, and would never complete a command that a worker executes.
 */
static inline int uring_cmd_end(struct io_uring_cmd *cmd, int res, unsigned int issue_flags)
{
#if HAVE_URING_CMD_DONE32
	io_uring_cmd_done(cmd, res, issue_flags);
#else
	io_uring_cmd_done(cmd, res, 0, issue_flags);
#endif
	return -EIOCBQUEUED;
}

#endif
