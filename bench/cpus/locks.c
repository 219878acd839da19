// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A plugin for QEMU that counts, on each CPU of the machine, the instructions that a module wants
 * counted; how many of them run while a spinlock is held; and how often and how long locks are
 * held.
 *
 *	-plugin locks.so,out=FILE,lock=ADDRESS,...,unlock=ADDRESS,...,spin=FROM-TO,...
 *
 * lock and unlock are the kernel's functions that do this. spin is where a CPU waits for a lock:
 * what runs there is counted apart, because it depends on how the host runs its threads. A hold
 * begins with the lock function, and ends when the unlock function of the outermost lock is called.
 * FILE gets a line
 *
 *	PART INSTRUCTIONS HELD HOLDS LONGEST SPINS
 *
 * for each part, with the sums over all CPUs; LONGEST is the longest hold.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../calls/marks.h"
#include "../calls/plugin.h"

#define PARTS_MAX	64
#define CPUS_MAX	64
#define PLACES_MAX	16

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

struct counts {
	uint64_t	instructions;
	uint64_t	held;
	uint64_t	holds;
	uint64_t	longest;
	uint64_t	spins;
};

/* The counts of a CPU, and the hold that it is in. */
struct cpu {
	bool		counting;
	unsigned int	depth;
	uint64_t	hold;
	struct counts	counts[PARTS_MAX];
} __attribute__((aligned(64)));

struct place {
	uint64_t	from;
	uint64_t	to;
};

struct places {
	struct place	place[PLACES_MAX];
	unsigned int	nr;
};

enum kind { PLAIN, LOCK, UNLOCK, SPIN };

static struct cpu cpus[CPUS_MAX];
static struct places locks, unlocks, spins;
static unsigned int part;
static const char *out;

static bool is_at(const struct places *places, uint64_t address)
{
	unsigned int i;

	for (i = 0; i < places->nr; i++)
		if (address >= places->place[i].from && address < places->place[i].to)
			return true;
	return false;
}

static enum kind kind_of(uint64_t address)
{
	if (is_at(&locks, address))
		return LOCK;
	if (is_at(&unlocks, address))
		return UNLOCK;
	return is_at(&spins, address) ? SPIN : PLAIN;
}

static void end_hold(struct cpu *cpu, struct counts *c)
{
	if (cpu->depth && !--cpu->depth) {
		c->holds++;
		c->held += cpu->hold;
		c->longest = c->longest > cpu->hold ? c->longest : cpu->hold;
	}
}

/* @arg says what kind of block this is, and how long. */
static void block_runs(unsigned int nr, void *arg)
{
	uint32_t instructions = (uintptr_t)arg >> 2;
	enum kind kind = (uintptr_t)arg & 3;
	struct cpu *cpu = &cpus[nr % CPUS_MAX];
	struct counts *c = &cpu->counts[part];

	if (!cpu->counting)
		return;
	if (kind == SPIN) {
		c->spins += instructions;
		return;
	}
	c->instructions += instructions;
	if (kind == UNLOCK)
		end_hold(cpu, c);
	if (kind == LOCK && !cpu->depth++)
		cpu->hold = 0;
	if (cpu->depth)
		cpu->hold += instructions;
}

static void mark_runs(unsigned int nr, void *arg)
{
	struct cpu *cpu = &cpus[nr % CPUS_MAX];
	uint32_t mark = (uintptr_t)arg;

	if (mark == MARK_NEXT) {
		part += part + 1 < PARTS_MAX;
		return;
	}
	cpu->counting = mark == MARK_ON;
	cpu->depth = 0;
}

static void see_mark(struct qemu_plugin_insn *insn)
{
	const uint8_t *bytes = qemu_plugin_insn_data(insn);
	uint32_t mark;

	if (qemu_plugin_insn_size(insn) != 3 + sizeof(mark) || memcmp(bytes, MARK_CODE, 3))
		return;
	memcpy(&mark, bytes + 3, sizeof(mark));
	if (mark >= MARK_ON && mark <= MARK_NEXT)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, mark_runs, NO_REGISTERS,
						       (void *)(uintptr_t)mark);
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
	size_t i, n = qemu_plugin_tb_n_insns(tb);
	uintptr_t what = n << 2 | kind_of(qemu_plugin_tb_vaddr(tb));

	for (i = 0; i < n; i++)
		see_mark(qemu_plugin_tb_get_insn(tb, i));
	qemu_plugin_register_vcpu_tb_exec_cb(tb, block_runs, NO_REGISTERS, (void *)what);
}

static void add_up(struct counts *sum, const struct counts *c)
{
	sum->instructions += c->instructions;
	sum->held += c->held;
	sum->holds += c->holds;
	sum->longest = sum->longest > c->longest ? sum->longest : c->longest;
	sum->spins += c->spins;
}

static void write_counts(plugin_id id, void *arg)
{
	FILE *file = fopen(out, "w");
	unsigned int i, cpu;

	for (i = 0; file && i < part; i++) {
		struct counts sum = { 0 };

		for (cpu = 0; cpu < CPUS_MAX; cpu++)
			add_up(&sum, &cpus[cpu].counts[i]);
		fprintf(file, "%u %llu %llu %llu %llu %llu\n", i,
			(unsigned long long)sum.instructions, (unsigned long long)sum.held,
			(unsigned long long)sum.holds, (unsigned long long)sum.longest,
			(unsigned long long)sum.spins);
	}
	if (!file || fclose(file))
		abort();
}

static void add_place(struct places *places, const char *text)
{
	struct place *place = &places->place[places->nr];
	char *end;

	if (places->nr >= PLACES_MAX)
		abort();
	place->from = strtoull(text, &end, 16);
	place->to = *end == '-' ? strtoull(end + 1, NULL, 16) : place->from + 1;
	places->nr++;
}

static int take_argument(const char *arg)
{
	if (!strncmp(arg, "out=", 4))
		out = strdup(arg + 4);
	else if (!strncmp(arg, "lock=", 5))
		add_place(&locks, arg + 5);
	else if (!strncmp(arg, "unlock=", 7))
		add_place(&unlocks, arg + 7);
	else if (!strncmp(arg, "spin=", 5))
		add_place(&spins, arg + 5);
	else
		return -1;
	return 0;
}

__attribute__((visibility("default")))
int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	int i;

	for (i = 0; i < argc; i++)
		if (take_argument(argv[i]))
			return -1;
	if (!out || !locks.nr || !unlocks.nr || !spins.nr)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, write_counts, NULL);
	return 0;
}
