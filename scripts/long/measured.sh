# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# shellcheck shell=bash
# The lines of a table that say how it was measured. Scripts that run machines source this after lib.sh.

# measured_now: print which sources are measured now, and on which machine, as lines of key and value
measured_now() {
	printf 'commit\t%s, %s\n' "$(source_id)" "$(date -u +%Y-%m-%d)"
	printf 'machine\t%s, %s CPUs\n' "$(processor)" "$(nproc)"
	printf 'emulator\t%s\n' "$(qemu-system-x86_64 --version | head -n 1)"
}

# facts FILE...: print the lines of measured_now that are in FILEs as a list. NAME.facts is the file of the
# part NAME. If parts differ, the list says which part each line belongs to.
facts() {
	awk -F '\t' '
		FNR == 1 {
			name = FILENAME
			gsub(/.*\/|\.facts$/, "", name)
			names[++nr] = name
		}
		!($1 in text) { keys[++nr_keys] = $1; text[$1] = $2 }
		$2 != text[$1] { differs[$1] = 1 }
		{ of[$1, name] = $2 }
		END {
			for (i = 1; i <= nr_keys; i++) {
				if (!(keys[i] in differs))
					print "* " keys[i] ": " text[keys[i]]
				else
					for (k = 1; k <= nr; k++)
						if ((keys[i], names[k]) in of)
							print "* " keys[i] ", " names[k] ": " of[keys[i], names[k]]
			}
		}' "$@"
}
