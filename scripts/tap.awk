# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# Count the points of a TAP stream, which may be several one after the other.
#
#	awk -v status=N -v skips=FILE -f tap.awk
#
# Prints a "# ..." line for each thing that is wrong beyond a plain "not ok", and
# at the end "PASSED FAILED". These count as failed: a point that is not ok; a
# skip that FILE does not list; points that were planned and did not come, or the
# other way round; no points at all; an exit status that no failed point explains.

function wrong(what)
{
	print "# " what
	failed++
}

BEGIN {
	while (skips && (getline line < skips) > 0)
		may_skip[line] = 1
}

/^1\.\.[0-9]+/ { planned += substr($1, 4) }

/^(not )?ok( |$)/ {
	points++
	name = $0
	sub(/^(not )?ok *[0-9]* *-? */, "", name)
	skip = toupper(name) ~ /# *SKIP/
	sub(/ *# .*/, "", name)
	if (/^not/)
		failed++
	else if (skip && !(name in may_skip))
		wrong("skipped: " name)
	else
		passed++
}

/^Bail out!/ { wrong($0) }

END {
	if (!points)
		wrong("no test points")
	else if (planned != points)
		wrong("planned " planned + 0 " points, got " points)
	if (status && !failed)
		wrong("exit status " status)
	print passed + 0, failed + 0
}
