/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * What a backend of libtwheel is. libtwheel.c checks the arguments as far as both backends agree,
 * and then calls these functions.
 */
#ifndef BACKEND_H
#define BACKEND_H

#include <time.h>

#include "libtwheel.h"
#include "sized.h"
#include "wheel_user.h"

typedef int64_t s64;

#define NSEC_PER_SEC	1000000000ULL
#define NSEC_PER_MSEC	1000000ULL

/**
 * struct twheel_backend - the functions of a backend. They return what those of libtwheel.h return;
 *	structures have the sizes of this version
 * @name:	see twheel_backend()
 * @open:	makes a wheel. libtwheel.c fills in @backend and @family. Of @flags only
 *		TWHEEL_ONE_THREAD counts
 * @close:	frees it
 * @op:		does one operation; returns its res and does not store it
 * @submit:	does at most TWHEEL_BATCH_MAX operations
 * @read:	reads events without waiting
 * @drain:	takes out at most TWHEEL_BATCH_MAX timers
 * @info:	never fails
 * @levels:	never fails; NULL if the backend cannot tell
 */
struct twheel_backend {
	const char *name;
	int (*open)(struct twheel **twheel, unsigned int flags, const struct twheel_setup *setup);
	void (*close)(struct twheel *twheel);
	int (*op)(struct twheel *twheel, struct twheel_op *op);
	int (*submit)(struct twheel *twheel, struct twheel_op *ops, u32 nr);
	int (*read)(struct twheel *twheel, struct twheel_event *events, u32 nr);
	int (*drain)(struct twheel *twheel, struct twheel_op *ops, u32 nr, u32 flags);
	int (*info)(struct twheel *twheel, struct twheel_info *info);
	int (*levels)(struct twheel *twheel, struct twheel_levels *levels);
};

/**
 * struct twheel - what the wheels of both backends begin with. While a wheel is open it is constant
 * @backend:	the functions
 * @fd:		the descriptor to poll
 * @family:	twheel_family() of the process that opened it, see fork.c
 */
struct twheel {
	const struct twheel_backend	*backend;
	int				fd;
	unsigned long			family;
};

extern const struct twheel_backend twheel_kernel_backend;
extern const struct twheel_backend twheel_embedded_backend;

unsigned long twheel_family_enter(void);
unsigned long twheel_family(void);

/* The time of @clock in ns. The system must have that clock. */
static inline u64 twheel_clock(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (u64)ts.tv_sec * NSEC_PER_SEC + (u64)ts.tv_nsec;
}

/* Was the wheel opened by this process, and not by an ancestor? See fork.c. */
static inline bool is_ours(unsigned long family)
{
	return family == twheel_family();
}

#endif
