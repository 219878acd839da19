# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# report.awk LOG COUNTS: instructions of each call by function, from what calls.c printed and what
# profile.c counted. Addresses are 16 hexadecimal digits, which have the order of strings. Functions
# of fewer than LEAST instructions are one row.
FNR == NR && /^part\t/ {
	split($0, field, "\t")
	name[nr_parts++] = field[2]
	times[nr_parts - 1] = field[3]
}

FNR == NR && /^symbol\t/ {
	split($0, field, "\t")
	print field[2], field[3] | "sort >" symbols
}

FNR == NR { next }

FNR == 1 {
	close("sort >" symbols)
	while ((getline line < symbols) > 0) {
		address[nr_symbols] = substr(line, 1, 16)
		symbol[nr_symbols++] = substr(line, 18)
	}
}

# The number of the last function that does not begin after @where.
function function_at(where,  low, high, middle)
{
	low = 0
	high = nr_symbols
	while (high - low > 1) {
		middle = int((low + high) / 2)
		if (address[middle] "" <= where "")
			low = middle
		else
			high = middle
	}
	return low
}

# What is below is the program's.
$2 >= "8" && $1 < nr_parts {
	i = function_at($2)
	taken[$1, i] += $3
	sum[$1] += $3
}

END {
	printf "\n| call | instructions |\n|---|--:|\n"
	for (p = 0; p < nr_parts; p++)
		printf "| %s | %.0f |\n", name[p], sum[p] / times[p]
	beside()
	for (p = 0; p < nr_parts; p++)
		part(p)
}

# What is done through io_uring beside the same by its ioctl.
function beside(  p, q, ioctl, share)
{
	printf "\n| through io_uring, everything counted | instructions | of the ioctl's | at most 1.1 |\n|---|--:|--:|---|\n"
	for (p = 0; p < nr_parts; p++) {
		ioctl = name[p]
		if (!sub(/ by io_uring/, "", ioctl))
			continue
		for (q = 0; name[q] != ioctl; q++)
			;
		share = sum[p] / times[p] / (sum[q] / times[q])
		printf "| %s | %.1f | %.3f | %s |\n", ioctl, sum[p] / times[p], share,
			share <= 1.1 ? "reached" : "**missed**"
	}
}

function part(p,  i, each, rest)
{
	printf "\n## %s: %.0f\n\n| function | instructions |\n|---|--:|\n", name[p], sum[p] / times[p]
	fflush()
	for (i = 0; i < nr_symbols; i++) {
		each = taken[p, i] / times[p]
		if (each >= least)
			printf "| %s | %.0f |\n", symbol[i], each | "sort -t \\| -k 3,3nr -k 2,2"
		else
			rest += each
	}
	close("sort -t \\| -k 3,3nr -k 2,2")
	if (rest >= 0.5)
		printf "| others | %.0f |\n", rest
}
