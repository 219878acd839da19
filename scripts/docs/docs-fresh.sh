#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# docs-fresh.sh: print which tables of doc/ are older than what they measure; `make docs-fresh`. The
# exit status is 1 if any is. doc/tables says what each table measures. A C file or a script in which only
# comments have changed counts as unchanged, and so do a text, and a Python program in which only comments and
# docstrings have changed. Neither do #error and static_assert() change what is compiled.
#
# The list at the head of a table names its commit, or one for each of its parts:
#
#	* commit: 0123456789ab, 2026-01-01
#	* commit, icount: 0123456789ab, 2026-01-01
#
# A part that measures fewer files than the others has a line of its own in doc/tables, TABLE@PART.
#
# A line "=" of doc/tables names a commit, and files in which the commit changed nothing that counts for a figure, or
# only what counts for kernels with PREEMPT_RT; doc/tables says how that is known. For all tables but those of such
# kernels, the code before the commit counts as the code after it.
#
# The figures of pictures name the commit of each part in their rows "environment".
. "$(dirname "$0")/../lib.sh"
cd "$top"

in_tree() { git -c safe.directory='*' "$@"; }

# section FILE HEADING: print the section whose heading begins with HEADING; without HEADING, all of FILE
section() {
	awk -v heading="$2" '
		/^## / { on = heading != "" && index($0, "## " heading) == 1 }
		on || heading == ""' "$1"
}

# commits TABLE PART: print the commits on stdin: those of PART, or of all parts that have no line of their own
commits() {
	sed -nE -e 's/^\* commit(, ([^:]*))?: ([^ ,]+).*/\3\t\2/p' \
		-e 's/^[^\t]*\t([^\t]*)\t.*\tenvironment\tcommit\ttext\t([^ ,]+).*/\2\t\1/p' |
		awk -F '\t' -v table="$1" -v part="$2" '
			NR == FNR { if (index($1, table "@") == 1) own[substr($1, length(table) + 2)]; next }
			$2 == part || $2 == "" || (part == "" && !($2 in own)) { print $1 }' doc/tables - | sort -u
}

# headers SOURCE...: print what the C files of SOURCEs include of the top of the tree, also by way of others
headers() {
	in_tree ls-files -- "$@" | awk '
		function follow(file, line, part) {
			if (file in seen)
				return
			seen[file] = 1
			while ((getline line <file) > 0)
				if (line ~ /^#include "[^\/"]+"/) {
					split(line, part, "\"")
					if (!(part[2] in seen) && (getline line <part[2]) >= 0) {
						print part[2]
						close(part[2])
						follow(part[2])
					}
				}
			close(file)
		}
		/\.[ch]$/ { follow($0) }'
}

# A program that prints the syntax tree of the Python on stdin, without docstrings. If there is no such tree,
# code() prints a number by chance, so that the file counts as changed.
python_code='import ast, sys

def is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)

tree = ast.parse(sys.stdin.read())
for node in ast.walk(tree):
    if isinstance(getattr(node, "body", None), list):
        node.body = [child for child in node.body if not is_text(child)]
print(ast.dump(tree))'

# code KIND: print the file on stdin, whose name ends with KIND, without comments; C a word a line
code() {
	case $1 in
	c | h) gcc -fpreprocessed -dD -E -P -x c - 2>/dev/null |
		sed -E 's/^[[:space:]]*#[[:space:]]*error.*/#error/; /^static_assert\(.*\);$/d' | tr -s '[:space:]' '\n' ;;
	sh) grep -v '^[[:space:]]*#' ;;
	py) python3 -c "$python_code" 2>/dev/null || echo "$RANDOM" ;;
	md) ;;
	*) cat ;;
	esac
}

# code_of COMMIT FILE: print a checksum of the code of FILE, as it was at COMMIT
code_of() { in_tree show "$1:$2" 2>/dev/null | code "${2##*.}" | sha256sum; }

# is_changed TABLE COMMIT FILE: does FILE, which is not as it was at COMMIT, differ in more than comments?
is_changed() {
	local was now equal by files

	[ -e "$3" ] || return 0
	now=$(code "${3##*.}" <"$3" | sha256sum)
	was=$(code_of "$2" "$3")
	[[ $was = "$now" || $1 =~ -rt$|PREEMPT_RT ]] || while IFS=$'\t' read -r equal by files; do
		[[ $equal = = && " $files " = *" $3 "* && $was = "$(code_of "$by^" "$3")" ]] || continue
		was=$(code_of "$by" "$3")
	done <doc/tables
	[ "$was" != "$now" ]
}

# stale TABLE COMMIT SOURCE...: print why TABLE, of COMMIT, does not fit the tree's SOURCEs
stale() {
	local table=$1 commit=$2 changed='' file

	shift 2
	case $commit in
	*-dirty) echo "is of sources that were not committed, $commit"; return ;;
	esac
	if ! in_tree cat-file -e "$commit^{commit}" 2>/dev/null; then
		echo "is of $commit, which is not here"
		return
	fi
	while IFS= read -r file; do
		! is_changed "$table" "$commit" "$file" || changed+=" $file"
	done < <(in_tree diff --name-only "$commit" -- "$@")
	[ -z "$changed" ] || echo "is of $commit, and since then there changed:$changed"
}

bad=0
while IFS=$'\t' read -r table command sources; do
	[[ -n $table && $table != ['#=']* ]] || continue
	heading='' part='' file=${table%%[#@]*}
	[[ $table != *'#'* ]] || heading=${table#*#}
	[[ $table != *@* ]] || part=${table#*@}
	text=$(section "doc/$file" "$heading")
	why=''
	[ -n "$text" ] || why="is not there"
	of=$(commits "$file" "$part" <<<"$text")
	[ -n "$of" ] || why=${why:-"does not say which commit it is of"}
	read -ra paths <<<"$sources"
	mapfile -t -O "${#paths[@]}" paths < <(headers "${paths[@]}")
	for commit in $of; do
		found=$(stale "$table" "$commit" "${paths[@]}")
		why+=${found:+${why:+; }$found}
	done
	if [ -n "$why" ]; then
		echo "doc/$table: $why"
		echo "	$command"
		bad=1
	else
		echo "doc/$table: fresh"
	fi
done <doc/tables
exit $bad
