/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/* What is a character of UTF-8. Used by twheel(1), twheel-job(1) and twheeld(8). */
#ifndef UTF8_H
#define UTF8_H

#include <stdbool.h>
#include <stddef.h>

/*
 * How many bytes the character at @s has; 0 if there is none: no UTF-8, longer than it need be, a
 * surrogate, or beyond U+10FFFF. Nothing is read beyond the NUL at the end of a string.
 */
static inline size_t utf8_length(const char *s)
{
	static const unsigned int least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned int c = (unsigned char)*s;
	size_t n = c < 0x80 ? 1 : c >> 5 == 6 ? 2 : c >> 4 == 14 ? 3 : c >> 3 == 30 ? 4 : 0;

	c &= n > 1 ? 0x7fU >> n : 0x7f;
	for (size_t i = 1; i < n; i++) {
		if (((unsigned char)s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | ((unsigned char)s[i] & 0x3f);
	}
	return n && c >= least[n] && c < 0x110000 && c >> 11 != 27 ? n : 0;
}

/* Is the character at @s one from U+0080 to U+009F? Terminals obey these as they do ASCII's. */
static inline bool utf8_is_control(const char *s)
{
	return (unsigned char)s[0] == 0xc2 && (unsigned char)s[1] >> 5 == 4;
}

#endif
