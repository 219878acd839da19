# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# sorted(LIST, v): put the numbers of LIST, with spaces in between, into v[1], v[2] ..., the least first. Returns
# how many they are.
function sorted(list, v,	n, i, k, x) {
	n = split(list, v, " ")
	for (i = 2; i <= n; i++) {
		x = v[i]
		for (k = i - 1; k > 0 && v[k] + 0 > x + 0; k--)
			v[k + 1] = v[k]
		v[k + 1] = x
	}
	return n
}
