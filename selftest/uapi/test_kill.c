// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Processes that arm, cancel and read on one file are killed with SIGKILL at random moments. What
 * the kernel told them must hold, whatever they were doing.
 *
 * All that the processes pass to the kernel and get from it is in shared memory, so that it
 * outlives them. If an add returned 0, the timer fires exactly once, or a cancel of it returned 0
 * and it never fires. Nothing is certain about calls that were in progress when the process died:
 * an add or cancel without a result may have been done, and an event that is in a dead reader's
 * buffer may come again.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define ROUNDS		300
#define LIVE_US		4000	/* how long a process lives at most, after it has begun */
#define HANG_S		60	/* a round takes milliseconds, or tenths of a second */
#define ADDS		192
#define CANCELS		64	/* how many timers of the last batch are cancelled */
#define NR_OPS		(ADDS + CANCELS)
#define ROOM		1048576	/* for so many timers and events */

#define ARMED		0x1
#define CANCELLED	0x2
#define OPEN		0x4	/* may come or not, or twice */

static struct shared {
	struct twheel_op	ops[NR_OPS];
	u64			numbers[NR_OPS];	/* the numbers of their timers */
	u32			nr_ops;		/* operations that are in progress */
	u32			last;		/* where in ops[] the adds of the last batch are */
	bool			last_adds;	/* whether there are any */
	u64			next;		/* the number of the next timer */
	u64			nr_events;	/* events that read() has returned so far */
	u64			early;
	unsigned char		told[ROOM];
	struct twheel_event	events[ROOM + READ_MAX];
} *s;

/*
 * Take the results of operations. An add without a result has no handle yet; of a cancel without
 * one nothing is known. If this is interrupted, it can be repeated.
 */
static void note(u32 nr, bool died)
{
	for (u32 i = 0; i < nr; i++) {
		const struct twheel_op *op = &s->ops[i];
		bool adds = op->op == TWHEEL_OP_ADD;

		if (died && (!adds || !op->handle))
			s->told[s->numbers[i]] |= OPEN;
		else if (op->res >= 0)
			s->told[s->numbers[i]] |= adds ? ARMED : CANCELLED;
	}
}

/*
 * Fill in a batch: cancel some timers of the last batch, and add others. Returns how many
 * operations.
 */
static u32 fill(u64 *seed)
{
	u32 nr = 0;

	for (u32 i = 0; i < ADDS; i++) {
		const struct twheel_op *add = &s->ops[s->last + i];

		if (!s->last_adds || nr == CANCELS || add->res)
			continue;
		s->numbers[nr] = add->user_data;
		s->ops[nr++] = (struct twheel_op){
			.op = TWHEEL_OP_CANCEL, .handle = add->handle };
	}
	s->last = nr;
	for (u32 i = 0; i < ADDS; i++, nr++) {
		s->numbers[nr] = s->next;
		s->ops[nr] = (struct twheel_op){
			.op = TWHEEL_OP_ADD, .user_data = s->next++,
			.expires_ns = rnd(seed) % (8 * MS) };
	}
	return nr;
}

static void write_on(int fd, u64 seed)
{
	while (s->next + NR_OPS < ROOM) {
		struct twheel_batch batch = {
			.ops = (uintptr_t)s->ops, .op_size = sizeof(*s->ops) };

		batch.nr = fill(&seed);
		__atomic_store_n(&s->nr_ops, batch.nr, __ATOMIC_SEQ_CST);
		if (!CHECK_EQ(ioctl(fd, TWHEEL_IOC_SUBMIT, &batch), 0))
			return;
		note(batch.nr, false);
		__atomic_store_n(&s->nr_ops, 0, __ATOMIC_SEQ_CST);
		s->last_adds = true;
	}
}

/* Read events directly into the list of all events. */
static void read_on(int fd, u32 max)
{
	ssize_t n;

	while (s->nr_events + max < ROOM &&
	       (n = read(fd, &s->events[s->nr_events], max * sizeof(*s->events))) > 0) {
		u64 now = now_ns(CLOCK_MONOTONIC);

		n /= sizeof(*s->events);
		for (ssize_t i = 0; i < n; i++)
			s->early += now < s->events[s->nr_events + i].expires_ns;
		__atomic_store_n(&s->nr_events, s->nr_events + n, __ATOMIC_SEQ_CST);
	}
}

static pid_t start(int fd, bool writes, u64 seed)
{
	pid_t pid = fork();

	if (pid < 0)
		bail("fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (writes)
		write_on(fd, seed);
	else
		read_on(fd, 1 + rnd(&seed) % 256);
	for (;;)
		pause();
}

/* Bring the record in order after a process has died. */
static void reconcile(void)
{
	note(s->nr_ops, true);
	s->nr_ops = 0;
	s->last_adds = false;
	for (u64 i = s->nr_events; s->events[i].handle; i++) {
		if (s->events[i].user_data < ROOM)
			s->told[s->events[i].user_data] |= OPEN;
		memset(&s->events[i], 0, sizeof(s->events[i]));
	}
}

static void judge(void)
{
	static unsigned char came[ROOM];
	u64 lost = 0, twice = 0, ghosts = 0, open = 0, cancelled = 0;

	for (u64 i = 0; i < s->nr_events; i++) {
		u64 n = s->events[i].user_data;

		if (n < s->next)
			came[n]++;
		else
			ghosts++;
	}
	for (u64 n = 0; n < s->next; n++) {
		u32 told = s->told[n];

		cancelled += !!(told & CANCELLED);
		open += !!(told & OPEN);
		if (told & OPEN)
			continue;
		lost += told == ARMED && !came[n];
		twice += came[n] > 1;
		ghosts += came[n] && told != ARMED;
	}
	diag("%llu timers, %llu events, %llu cancelled, %llu open", s->next, s->nr_events,
	     cancelled, open);
	diag("lost %llu, twice %llu, ghosts %llu", lost, twice, ghosts);
	CHECK(s->nr_events && cancelled && open);
	CHECK(!lost && !twice && !ghosts && !s->early);
}

static void kills(void)
{
	u64 seed = now_ns(CLOCK_MONOTONIC);
	int fd = dev_open(0);
	struct twheel_info i;

	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		bail("mmap");
	for (u32 round = 0; round < ROUNDS && !failed(); round++) {
		pid_t writer = start(fd, true, rnd(&seed));
		pid_t reader = start(fd, false, rnd(&seed));

		alarm(HANG_S);
		usleep(rnd(&seed) % LIVE_US);
		kill(writer, SIGKILL);
		usleep(rnd(&seed) % LIVE_US);
		kill(reader, SIGKILL);
		CHECK_EQ(waitpid(writer, NULL, 0), writer);
		CHECK_EQ(waitpid(reader, NULL, 0), reader);
		reconcile();
	}
	for (info(fd, &i); i.nr_timers && readable(fd, WAIT_MS); info(fd, &i)) {
		u64 before = s->nr_events;
		int n = read(fd, &s->events[before], 256 * sizeof(*s->events));

		if (!CHECK(n > 0) || !CHECK(before < ROOM))
			break;
		s->nr_events += n / sizeof(*s->events);
	}
	CHECK_EQ(i.nr_timers, 0);
	judge();
	close(fd);
}

static const struct test tests[] = {
	{ kills, "what killed processes were told holds" },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
