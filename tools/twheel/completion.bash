# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# bash completion for twheel(1); installed as /usr/share/bash-completion/completions/twheel
# shellcheck shell=bash

# The index of the command that twheel is to run, or of where it will be.
_twheel_command()
{
	local i time=''

	for ((i = 2; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--) echo $((i + 1)); return ;;
		-k) i=$((i + 1)) ;;
		-*|=) ;;
		*)
			[ "${COMP_WORDS[i - 1]}" = = ] && continue
			[ -z "$time" ] || { echo "$i"; return; }
			time=$i
			;;
		esac
	done
	if [ -n "$time" ]; then echo "$COMP_CWORD"; else echo $((COMP_CWORD + 1)); fi
}

# The names of time zones.
_twheel_zones()
{
	sed -n 's/^[^#][^\t]*\t[^\t]*\t\([^\t]*\).*/\1/p' "${TZDIR:-/usr/share/zoneinfo}/zone1970.tab" 2>/dev/null
	echo UTC
}

# The names of the jobs of a running twheeld.
_twheel_job_names()
{
	twheel job ls 2>/dev/null | awk 'NR > 1 { print $1 }'
}

# What may follow "twheel job".
_twheel_job()
{
	local words='--json --socket= --help' command=${COMP_WORDS[2]}
	local when='--at= --after= --key= --arg='

	if [ "$COMP_CWORD" = 2 ]; then
		echo "$words add at after every put ls export show rm pause resume run cancel history runs log
			kill nodes runners next days import"
		return
	fi
	case $command in
	add|at|after|every)
		words+=" --cron= --every= --start= --delay= --at= --after= --zone= --except= --spread= --missed= --grace=
			--overlap= --queue= --retry= --wait-retry= --timeout= --stop= --lost= --keep= --user= --dir= --env=
			--memory= --cpu= --pids= --then= --then-fail= --alarm= --late= --http= --pool= --prio= --prefer= --each"
		[ "$command" != add ] || words+=' --replace' ;;
	run)	words+=" $when --wait" ;;
	history|runs)
		words+=' --outcome= --since= --limit=' ;;
	log)	words+=' --follow --attempt=' ;;
	next)	words+=' --zone= --limit=' ;;
	import)	words+=' --prefix= --user-field --replace' ;;
	esac
	if [[ $COMP_CWORD = 3 && $command = @(show|rm|pause|resume|run|cancel|history|runs|log|ls) ]]; then
		words+=" $(_twheel_job_names)"
	fi
	echo "$words"
}

_twheel()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words=''

	COMPREPLY=()
	[ "$cur" != = ] || cur=''
	[ "$prev" != = ] || prev=${COMP_WORDS[COMP_CWORD - 2]}
	if [ "$COMP_CWORD" = 1 ]; then
		words='after at every cron run job ls info top bench plot help --help --version'
	elif [ "${COMP_WORDS[1]}" = job ]; then
		[[ $COMP_CWORD -gt 3 && " ${COMP_WORDS[*]:3:COMP_CWORD - 3} " = *' -- '* ]] || words=$(_twheel_job)
	elif [ "$prev" = --missed ]; then
		words='skip burst'
		case ${COMP_WORDS[1]} in
		every)	words+=' once delay' ;;
		cron)	words+=' once' ;;
		esac
	elif [ "$prev" = --zone ]; then
		words=$(_twheel_zones)
	elif [[ ${COMP_WORDS[1]} = every && $COMP_CWORD = 2 && $cur = [a-z]* ]]; then
		words='minute hour day weekday weekend week month
			monday tuesday wednesday thursday friday saturday sunday'
	elif [ "$prev" = --backend ]; then
		words='kernel embedded'
	elif [[ ${COMP_WORDS[1]} = @(after|at|every|cron) && $COMP_CWORD -ge $(_twheel_command) &&
		$cur != -* ]]; then
		if declare -F _command_offset >/dev/null; then
			_command_offset "$(_twheel_command)"
		else
			mapfile -t COMPREPLY < <(compgen -c -- "$cur" | sort -u)
		fi
		return
	else
		case ${COMP_WORDS[1]} in
		after|at) words='--within= --kill-after= --json --json-fd= --help' ;;
		every)	words='--within= --count= --now --fixed-delay --missed= --zone= --jitter= --explain
			--kill-after= --json --json-fd= --help' ;;
		cron)	words='--within= --count= --now --missed= --zone= --jitter= --explain
			--kill-after= --json --json-fd= --help' ;;
		run)	words='--jobs= --check --lock= --metrics= --kill-after= --json --json-fd= --help' ;;
		help)	words='after at every cron run job ls info top bench plot' ;;
		top)	words='--batch --delay= --count= --embedded --metrics= --json --help' ;;
		plot)	words='--output= --help' ;;
		bench)	words='--timers= --backend= --json --help' ;;
		*)	words='--json --help' ;;
		esac
		if [[ ${COMP_WORDS[1]} = @(run|plot) && $cur != -* ]]; then
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
			return
		fi
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
	[[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null || :
}

complete -o default -F _twheel twheel
