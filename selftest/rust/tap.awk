# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# Turn the output of Rust's tests into TAP. A program that ends without a result counts as failed.
/^running [0-9]+ tests?$/ { running++ }
/^test result: / { running-- }
/^test .* \.\.\. / {
	name = $0
	sub(/^test /, "", name)
	sub(/ \.\.\. .*/, "", name)
	gsub(/_/, " ", name)
	verdict = / \.\.\. ok$/ ? "ok" : "not ok"
	nr++
	print verdict, nr, "-", name
	next
}
NF { print "# " $0 }
END {
	if (running) {
		nr++
		print "not ok", nr, "- a program that was cut short"
	}
	print "1.." (nr + 0)
}
