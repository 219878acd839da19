// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A plugin for QEMU that counts the instructions that a program in the machine causes: its own, the
 * kernel's, and those of whatever interrupts it.
 *
 *	-plugin profile.so,out=FILE
 *
 * The program says what is counted, by instructions that do nothing else: see calls.c. Blocks of
 * code are counted, which run from the first to the last instruction; a block that a page fault
 * interrupts counts as a whole. FILE gets a line
 *
 *	PART ADDRESS INSTRUCTIONS
 *
 * for each block that ran in a part.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "marks.h"
#include "plugin.h"

#define PARTS_MAX	32

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

/* QEMU translates a block again and again. Each translation is a block of its own here. */
struct block {
	struct block	*next;
	uint64_t	address;
	uint32_t	instructions;
	uint64_t	runs[PARTS_MAX];
};

static struct block *blocks;
static unsigned int part;
static bool counting;
static const char *out;

static void block_runs(unsigned int cpu, void *arg)
{
	struct block *block = arg;

	if (counting)
		block->runs[part]++;
}

static void mark_runs(unsigned int cpu, void *arg)
{
	uint32_t mark = (uintptr_t)arg;

	counting = mark == MARK_ON;
	if (mark == MARK_NEXT && part + 1 < PARTS_MAX)
		part++;
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
	struct block *block = calloc(1, sizeof(*block));
	size_t i;

	if (!block)
		abort();
	block->address = qemu_plugin_tb_vaddr(tb);
	block->instructions = qemu_plugin_tb_n_insns(tb);
	block->next = blocks;
	blocks = block;
	for (i = 0; i < block->instructions; i++)
		see_mark(qemu_plugin_tb_get_insn(tb, i));
	qemu_plugin_register_vcpu_tb_exec_cb(tb, block_runs, NO_REGISTERS, block);
}

static void write_counts(plugin_id id, void *arg)
{
	FILE *file = fopen(out, "w");
	const struct block *block;
	unsigned int i;

	for (block = blocks; file && block; block = block->next)
		for (i = 0; i <= part; i++)
			if (block->runs[i])
				fprintf(file, "%u %016llx %llu\n", i,
					(unsigned long long)block->address,
					(unsigned long long)block->runs[i] * block->instructions);
	if (!file || fclose(file))
		abort();
}

__attribute__((visibility("default")))
int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	if (argc != 1 || strncmp(argv[0], "out=", 4))
		return -1;
	out = strdup(argv[0] + 4);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, write_counts, NULL);
	return 0;
}
