# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# programs.awk: extract the programs of a text into files in DIR, and the output that it shows for them.
#
# In Markdown a program is a block that begins with "```c NAME.c"; the next block without
# such words is its output, NAME.out.
function end_block()
{
	if (name) {
		printf "%s", block >(dir "/" name)
		program = name
	} else if (program && !words) {
		sub(/\.c$/, ".out", program)
		printf "%s", block >(dir "/" program)
		program = ""
	}
}

/^```/ && inside { end_block(); inside = 0; next }
/^```/ { inside = 1; block = name = ""; words = NF > 1; if ($2 ~ /\.c$/) name = $2; next }
inside { block = block $0 "\n" }
