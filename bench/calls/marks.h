/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Instructions that do nothing, and that the plugin recognises. They say that what follows counts
 * for a part, does not count, or belongs to the next part.
 */
#ifndef MARKS_H
#define MARKS_H

#define MARK_CODE	"\x0f\x1f\x80"		/* nopl MARK(%rax) */
#define MARK_ON		0x74776801
#define MARK_OFF	0x74776802
#define MARK_NEXT	0x74776803

static inline __attribute__((always_inline)) void mark(unsigned int m)
{
	asm volatile(".byte 0x0f, 0x1f, 0x80; .long %c0" : : "i"(m) : "memory");
}

#endif
