# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# shellcheck shell=bash disable=SC2034
# Source this: functions that read the edits of selftest/mutations, check that each still applies, and
# judge what a test said of one.

# The tests of selftest/jobs, those that take seconds first. That of the page needs a browser, and
# that of the tutorial tests a document: they are not here.
jobs_tests='test_policy test_store test_judge.py test_quartz.py test_xxl_job.py test_web.py test_users.py test_http.py
	test_command.py test_module.py test_xinye.py test_runs.py test_pool.py test_crash.py test_many.py'

# Is $first one of the stages that may notice an edit of $file?
has_stage() {
	case $file in
	lib/* | wheel_decimal.h) stages='lib device' ;;
	calendar/* | tools/*) stages=calendar ;;
	jobs/*)	stages=${jobs_tests//test_/jobs:test_} ;;
	*)	stages='native fuzz uml qemu cpus icount cpusets' ;;
	esac
	what="no such stage: $first"
	[[ " ${stages//[$'\n\t']/ } " == *" $first "* ]]
}

begin() { file=$2 first=$3 name=${*:4} old='' new=''; }

# each_edit FUNCTION [PATTERN]: call FUNCTION for each edit, with $file, $first, $name, $old and $new set
each_edit() {
	local line words

	while IFS= read -r line || [ "$line" ]; do
		case $line in
		'== '*)
			first=''
			[[ ! $line =~ ${2:-} ]] || { read -ra words <<<"$line"; begin "${words[@]}"; } ;;
		-*) old+=${line#-}$'\n' ;;
		+*) new+=${line#+}$'\n' ;;
		'') [ -z "${first:-}" ] || "$1"; first='' ;;
		esac
	done < <(cat selftest/mutations; echo)
}

# edits DIR [WRITE]: stdin has for each edit a file, the old lines and the new lines, each ended by NUL.
# For each edit print what is wrong with it, or an empty line. The old lines must be whole lines of that
# file in DIR, and be there once. With WRITE, replace them.
edits() {
	DIR=$1 WRITE=${2:-} perl -0 -ne '
		sub wrong {
			my ($file, $old, $new) = @_;
			my $path = "$ENV{DIR}/$file";
			if (!exists $text{$path}) {
				local $/;
				open my $in, "<", $path or return "there is no $file";
				$text{$path} = "\n" . <$in>;
			}
			my $n = () = $text{$path} =~ /(?<=\n)\Q$old\E/g;
			return "does not apply: the lines are there $n times" if $n != 1;
			return "changes nothing" if $old eq $new;
			return "" if !$ENV{WRITE};
			$text{$path} =~ s/(?<=\n)\Q$old\E/$new/;
			open my $out, ">", $path or return "cannot write";
			print $out substr($text{$path}, 1);
			return "";
		}
		chomp;
		push @edit, $_;
		print wrong(splice @edit), "\n" if @edit == 3;'
}

# Do all edits apply to the tree? If one does not, say what is wrong. This takes less than a second.
edits_apply() {
	local names=() wrong=() file first name old new stages what i=0

	collect() { has_stage || wrong+=("$file: $name: $what"); names+=("$file: $name"); }
	record() { printf '%s\0' "$file" "$old" "$new"; }
	each_edit collect
	while IFS= read -r what; do
		[ -z "$what" ] || wrong+=("${names[i]}: $what")
		i=$((i + 1))
	done < <(each_edit record | edits .)
	[ "$i" = ${#names[@]} ] || wrong+=("$i of ${#names[@]} edits were tried")
	[ ${#wrong[@]} = 0 ] || printf '%s\n' "${wrong[@]}"
	[ ${#wrong[@]} = 0 ] && [ ${#names[@]} != 0 ]
}

# Do tests of this stage wait in real time, so that they may fail because the host is busy? In the others
# a run is like the one before.
in_real_time() { [[ " uml qemu cpus cpusets lib device jobs " == *" ${1%%:*} "* ]]; }

# said LOG: print the suite and the point that failed first, from what a stage printed. If none did:
# that a suite was out of time; or what else is wrong with one; or, if a suite was running when the
# machine died, what its console shows. Otherwise print nothing, and return 1.
said() {
	awk '
		/^# suite [^ ]+$/ { suite = $3 ": " }
		/^# [^ ]*\/[^ \/]+$/ { n = split($2, path, "/"); suite = path[n] ": " }	# of selftest/lib
		!suite { next }
		/^ *not ok|^Bail out!/ && !point { point = suite $0 }
		/^# (verdict: )?(timed out|killed: out of|status (124|137):)/ && !late { late = "out of time: " suite $0 }
		/^# (planned|exit status) / && !wrong { wrong = suite $0 }
		/^# .*(BUG:|WARNING:|KASAN:|Kernel panic|Oops|soft lockup)/ && !console { console = suite $0 }
		/^# verdict: / && !verdict { verdict = suite $0 }
		END { print point ? point : late ? late : wrong ? wrong : console ? console : verdict }' "$1" |
		tr -s ' \r' ' ' | grep .
}

# is_noticed WHAT NAME: does that, which said() has printed, tell that a test noticed the edit of this name?
is_noticed() { [[ $1 != 'out of time: '* || $2 == *hangs* ]]; }
