#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# service.sh: "twheel run" as a service: reloading its file, metrics, the systemd unit. And the metrics
# of "twheel top"
# shellcheck disable=SC2317 # point calls the functions
# shellcheck source=selftest/lib/cli.sh
. "$(dirname "$0")/cli.sh"

rm -rf "${dir:?}"/*
trap 'kill "$pid" 2>/dev/null || :' EXIT
pid=

# begin [OPTION]...: run $dir/jobs, which is what is on the standard input.
begin() {
	cat >"$dir/jobs"
	rm -f "$dir"/ran.*
	env --default-signal=HUP setsid "$twheel" run --jobs=8 "$@" "$dir/jobs" >"$dir/out" 2>"$dir/err" </dev/null &
	pid=$!
	until_true is_up
}

# It hears signals, and has begun.
is_up() {
	local blocked

	blocked=$(sed -n 's/^SigBlk:\t//p' "/proc/$pid/status" 2>/dev/null)
	[ $((0x${blocked:-0} & 1)) = 1 ] && [ "$(find "/proc/$pid/task" -mindepth 1 -maxdepth 1 | wc -l)" -gt 1 ]
}

stop() { kill "$pid" && ends 143; }

told() { [ "$(grep -c "was $1" "$dir/err")" = "$2" ]; }

# reloads N: $dir/jobs becomes what is on the standard input, and is read for the N-th time.
reloads() {
	cat >"$dir/jobs"
	kill -HUP "$pid"
	until_true told "read again:" "$1"
}

# refused N: the same, and it is not taken.
refused() {
	cat >"$dir/jobs"
	kill -HUP "$pid"
	until_true told "not read again:" "$1"
}

# ran NAME: how often
ran() {
	local n

	n=$(wc -l 2>/dev/null <"$dir/ran.$1" || :)
	echo "${n:-0}"
}
has_run() { [ "$(ran "$1")" -ge "${2:-1}" ]; }

# job NAME: what notes that it has run
job() { echo "-- echo \$TWHEEL_RUN >>$dir/ran.$1"; }

# ---- reading it again ---------------------------------------------------------------------

# What waits goes on to wait for the same moment, what is over stays so; neither begins anew.
keeps() {
	local i

	begin <<-END || return
		after 50ms $(job over)
		after 1500ms $(job waits)
		every 100ms --now --count=5 $(job counts)
		every 1h --now $(job now)
		at '$(date -d '+12 seconds' '+%F %T')' $(job at)
	END
	until_true has_run over && until_true has_run now || return
	for i in {1..12}; do
		reloads "$i" <<-END || return
			# the ${i}th
			after 1500ms $(job waits)
			every 100ms --now --count=5 $(job counts)

			at '$(sed -n "s/^at '\([^']*\)'.*/\1/p" "$dir/jobs")' $(job at)
			every 1h --now $(job now)
			after 50ms $(job over)
		END
		grep -q "again: 0 new, 0 gone, 5 unchanged" "$dir/err" || return
		sleep 0.1
	done
	until_true has_run waits && until_true has_run counts 5 && until_true has_run at || return
	sleep 0.3
	tail "$dir"/ran.*
	[ "$(ran over) $(ran waits) $(ran counts) $(ran now) $(ran at)" = "1 1 5 1 1" ] &&
		[ "$(paste -sd ' ' "$dir/ran.counts")" = "1 2 3 4 5" ] && stop
}

# Two lines that are the same are two jobs, and three are one more.
twins() {
	begin <<-END || return
		every 1h --now $(job twin)
		every 1h --now $(job twin)
	END
	until_true has_run twin 2 || return
	reloads 1 <<-END || return
		every 1h --now $(job twin)
		every 1h --now $(job twin)
		every 1h --now $(job twin)
	END
	until_true has_run twin 3 || return
	reloads 2 <<<"every 1h --now $(job twin)" || return
	sleep 0.2
	[ "$(ran twin)" = 3 ] && grep -q "again: 0 new, 2 gone, 1 unchanged" "$dir/err" && stop
}

# New lines begin, those that have gone do not run again, and what they have started goes on.
changes() {
	local before

	begin <<-END || return
		every 50ms --now $(job gone)
		every 1h --now -- echo \$\$ >$dir/ran.long; sleep 1; echo end >>$dir/ran.long
		every 1h $(job stays)
		cron '* * * * * *' $(job second)
	END
	until_true has_run gone && until_true has_run long && until_true has_run second || return
	reloads 1 <<-END || return
		every 1h $(job stays)
		every 50ms --now --count=3 $(job new)
		cron '* * * * * *' $(job other)
	END
	grep -q "again: 2 new, 3 gone, 1 unchanged" "$dir/err" && until_true none_runs 'ran\.(gone|second)$' || return
	before="$(ran gone) $(ran second)"
	until_true has_run new 3 && until_true has_run other && until_true has_run long 2 || return
	[ "$(ran gone) $(ran second)" = "$before" ] && [ "$(ran stays)" = 0 ] && stop
}

# none_runs REGEX: no command of twheel's that is like this
none_runs() { ! pgrep -P "$pid" -f "$1" >/dev/null; }

# When nothing is left it ends; and a new line that fails makes it 1.
ends_empty() {
	begin <<<"after 1h -- true" && : >"$dir/jobs" && kill -HUP "$pid" && ends 0 || return
	begin <<<"after 1h -- true" && echo "after 1ms -- false" >"$dir/jobs" && kill -HUP "$pid" && ends 1
}

# An error is told with its line, and nothing changes: no new line begins, no old one ends.
bad_file() {
	begin <<<"every 100ms $(job old)" || return
	until_true has_run old || return
	refused 1 <<-END || return
		after 1ms $(job new)
		never 5 -- true
		every 100ms --count=0 $(job old)
	END
	grep -q "$dir/jobs:2: unknown command 'never'" "$dir/err" && grep -q "$dir/jobs:3: invalid number '0'" "$dir/err" || return
	until_true has_run old $(($(ran old) + 3)) && [ "$(ran new)" = 0 ] || return
	# Nor if there is no file, or something else in its place.
	rm "$dir/jobs"
	kill -HUP "$pid"
	until_true told "not read again:" 2 && mkfifo "$dir/jobs" || return
	kill -HUP "$pid"
	until_true told "not read again:" 3 && rm "$dir/jobs" || return
	# What is right again is taken, by a new file as well.
	reloads 1 <<<"every 100ms $(job new)" && until_true has_run new && stop
}

# A signal at any moment: each line of the file runs once, however often it is read meanwhile.
signals_now() {
	local i lines=''

	for i in {1..200}; do
		lines+="after $((i * 10))ms $(job "x$((i % 4))")"$'\n'
	done
	begin <<<"$lines" || return
	for i in {1..60}; do
		kill -HUP "$pid" 2>/dev/null || break
		sleep "0.0$((i % 5))3"
	done
	ends 0 && [ "$(cat "$dir"/ran.x* | wc -l)" = 200 ] || return 1
	# On a host that stands still many signals become one.
	[ "$(grep -c 'again: 0 new, 0 gone, 200' "$dir/err")" -gt 10 ] || return 2
}

any_moment() { in_time signals_now; }

# The lock is that of the file that was read last.
locks() {
	local status=0

	begin <<<"every 1h $(job a)" || return
	mv "$dir/jobs" "$dir/old"
	reloads 1 <<<"every 1h $(job b)" || return
	"$twheel" run "$dir/jobs" 2>"$dir/second" || status=$?
	[ "$status" = 125 ] && grep -q "is locked" "$dir/second" || return
	flock -n "$dir/old" true || return
	# One that another process has locked is not taken.
	rm "$dir/jobs"
	echo "every 1h --now $(job c)" >"$dir/jobs"
	exec 7<"$dir/jobs" && flock 7 && kill -HUP "$pid" && until_true told "not read again:" 1 || return
	exec 7<&-
	told "not read again:" 1 && [ "$(ran c)" = 0 ] && stop
}

# In a terminal that goes away, and where it is ignored, SIGHUP is what it was.
hangup() {
	python3 - "$twheel" "$dir" <<-'END' || return
		import os, pty, signal, sys, time
		twheel, dir = sys.argv[1:]
		open(f"{dir}/jobs", "w").write(f"every 50ms -- echo x >>{dir}/ran.terminal\n")
		pid, fd = pty.fork()
		if not pid:
		    os.execv(twheel, [twheel, "run", f"{dir}/jobs"])
		while not os.path.exists(f"{dir}/ran.terminal"):
		    time.sleep(0.05)
		os.kill(pid, signal.SIGHUP)     # it has a terminal still
		got = b""
		try:
		    while b"was read again" not in got:
		        got += os.read(fd, 1000)
		except OSError:
		    sys.exit(f"{got} {os.waitpid(pid, 0)}")
		assert os.waitpid(pid, os.WNOHANG) == (0, 0)
		os.close(fd)
		end = time.time() + 60
		while (got := os.waitpid(pid, os.WNOHANG)) == (0, 0) and time.time() < end:
		    time.sleep(0.05)
		assert os.WIFSIGNALED(got[1]) and os.WTERMSIG(got[1]) == signal.SIGHUP, got
	END
	echo "after 1s $(job ignored)" >"$dir/jobs"
	env --ignore-signal=HUP "$twheel" run "$dir/jobs" 2>"$dir/err" &
	pid=$!
	until_true knows "$pid" SigIgn HUP
	kill -HUP "$pid"
	ends 0 && [ "$(ran ignored)" = 1 ] && [ ! -s "$dir/err" ] || return
	# What comes from elsewhere cannot be read again.
	env --default-signal=HUP "$twheel" run - < <(echo "after 1h -- true") 2>"$dir/err" &
	pid=$!
	until_true is_up && kill -HUP "$pid" && ends 129
}

# ---- metrics ---------------------------------------------------------------------------------

# metrics FILE PYTHON: is it what Prometheus reads, as promtool(1) has it, and true? In PYTHON, get(NAME,
# LABEL=VALUE...) is a sample's value, and families are those of the client library.
metrics() {
	/usr/bin/python3 - "$@" <<-'END'
		import re, sys
		from prometheus_client.parser import text_string_to_metric_families
		text = open(sys.argv[1], encoding="utf-8").read()
		assert text.endswith("\n")
		families = {f.name: f for f in text_string_to_metric_families(text)}
		samples, seen, current = {}, set(), None
		for line in text.splitlines():
		    if line.startswith("# HELP "):
		        current = line.split()[2]
		        assert current not in seen and line.split(" ", 3)[3].endswith("."), line
		        seen.add(current)
		    elif line.startswith("# TYPE "):
		        assert line.split()[2] == current, line
		        kind = line.split()[3]
		        assert (kind == "counter") == current.endswith("_total"), line
		    else:
		        name = re.match(r"[a-z_]+(?=[{ ])", line).group()
		        assert name == current or kind == "summary" and name in (current + "_sum", current + "_count"), line
		for family in families.values():
		    for sample in family.samples:
		        key = (sample.name, frozenset(sample.labels.items()))
		        assert key not in samples, key
		        samples[key] = sample.value
		assert len(samples) == sum(not line.startswith("#") for line in text.splitlines())

		def get(name, **labels):
		    [value] = [v for (n, l), v in samples.items() if n == name and labels.items() <= dict(l).items()]
		    return value

		exec(sys.argv[2])
	END
}

run_metrics() {
	local awkward line

	awkward=': "\back" '$'\xff\xc3\xa4'
	begin --metrics="$dir/run.prom" <<-END || return
		every 50ms --now --count=3 -- exit 3
		after 1ms -- $awkward
		after 1ms -- $awkward
		every 1h -- true
		every 1h --now -- sleep 1000
		after 1ms -- : $(printf 'x%.0s' {1..300})
	END
	metrics "$dir/run.prom" 'assert get("twheel_run_start_time_seconds") > 1e9' &&
		until_true grep -q 'runs_total{.*line="1".*} 3' "$dir/run.prom" || return
	for line in 2 3 6; do
		until_true grep -q "runs_total{.*line=\"$line\".*} 1" "$dir/run.prom" || return
	done
	until_true grep -q '^twheel_run_commands_running.* 1$' "$dir/run.prom" &&
		until_true grep -q '^twheel_run_jobs_pending.* 2$' "$dir/run.prom" || return
	metrics "$dir/run.prom" "
import time
assert get('twheel_run_up') == 1 and get('twheel_run_jobs_pending') == 2
assert get('twheel_run_commands_running') == 1
assert get('twheel_run_job_runs_total', line='1') == get('twheel_run_job_failures_total', line='1') == 3
assert get('twheel_run_job_last_status', line='1') == 3 and get('twheel_run_job_last_status', line='2') == 0
assert 0 < get('twheel_run_job_duration_seconds_total', line='1') < 60
assert 0 <= get('twheel_run_job_late_seconds_total', line='1') < 60
assert 0 <= time.time() - get('twheel_run_job_last_success_timestamp_seconds', line='2') < 60
assert not [s for s in families['twheel_run_job_last_success_timestamp_seconds'].samples if s.labels['line'] in '14']
assert get('twheel_run_job_runs_total', line='2', command=': \"\\\\back\" \ufffd\xe4', file='$dir/jobs') == 1
assert len(families['twheel_run_job_runs'].samples[5].labels['command']) == 201
assert get('twheel_run_reloads_total', result='success') == 0" || return
	sed '$d' "$dir/jobs" >"$dir/less"
	reloads 1 <"$dir/less" && refused 1 <<<"x" &&
		until_true grep -q 'result="failure"} 1' "$dir/run.prom" || return
	metrics "$dir/run.prom" 'assert get("twheel_run_reloads_total", result="success") == 1
assert get("twheel_run_job_runs_total", line="1") == 3 and len(families["twheel_run_job_runs"].samples) == 5' || return
	stop && metrics "$dir/run.prom" 'assert get("twheel_run_up") == 0' && [ "$(stat -c %a "$dir/run.prom")" = 644 ]
}

# A reader that has begun to read it reads the old file to its end, and no other file is left.
replaced() {
	mkdir -p "$dir/prom"
	begin --metrics="$dir/prom/x.prom" <<<"every 10ms --count=200 -- :" || return
	exec 8<"$dir/prom/x.prom"
	cp /dev/fd/8 "$dir/first"	# that file: there may be another one of its name by now
	ends 0 && cmp "$dir/first" - <&8 && ! cmp -s "$dir/first" "$dir/prom/x.prom" &&
		[ "$(ls "$dir/prom")" = x.prom ] && metrics "$dir/prom/x.prom" 'assert get("twheel_run_job_runs_total") == 200'
}

# What is not a file stays what it is: root would replace /dev/stdout.
in_the_way() {
	local name command

	rm -rf "$dir/way"
	mkdir -p "$dir/way/dir" && mkfifo "$dir/way/fifo" && echo file >"$dir/way/file" && ln -s file "$dir/way/link" || return
	for name in dir fifo link; do
		for command in "run $dir/jobs" "run --check $dir/jobs" "top --embedded --count=1 --delay=100ms"; do
			# shellcheck disable=SC2086 # words
			! timeout 60 "$twheel" $command --metrics="$dir/way/$name" 2>"$dir/err" &&
				grep -qx "$twheel: cannot write '$dir/way/$name': it is not a regular file" \
					"$dir/err" || return
		done
	done
	[ "$(stat -c %F "$dir/way"/* | xargs)" = "directory fifo regular file symbolic link" ] && [ "$(cat "$dir/way/link")" = file ]
}

# Where it cannot be written that is said: at the start it is the end, and later once.
unwritten() {
	local status=0

	echo "after 1h -- true" >"$dir/jobs"
	"$twheel" run --metrics="$dir/no/x.prom" "$dir/jobs" 2>"$dir/err" || status=$?
	[ "$status" = 125 ] && grep -qx "$twheel: cannot write '$dir/no/x.prom': No such file or directory" "$dir/err" || return
	in_the_way || return
	mkdir -p "$dir/gone"
	begin --metrics="$dir/gone/x.prom" <<<"every 200ms --count=30 $(job tick)" || return
	mv "$dir/gone" "$dir/went"	# at once: while its files are removed, there could be a new one
	ends 0 && [ "$(ran tick)" = 30 ] && [ "$(grep -c "cannot write" "$dir/err")" = 1 ]
}

# The figures are those of a load, which a busy host may keep from working.
top_figures() {
	"$twheel" top --embedded --metrics="$dir/top.prom" --count=2 --delay=300ms && metrics "$dir/top.prom" '' || return 1
	metrics "$dir/top.prom" '
assert 19000 < get("twheel_timers_pending") <= 20000 and get("twheel_tick_seconds") == 0.001
balance = get("twheel_timers_armed_total") - sum(get(f"twheel_timers_{n}_total") for n in ("fired", "cancelled", "rearmed"))
assert abs(balance - get("twheel_timers_pending")) < 200, balance
assert abs(sum(get("twheel_level_timers", level=l) for l in ("0", "1", "2", "3", "4", "far")) - balance) < 200
assert 0 < get("twheel_level_buckets", level="2") <= 48
assert 0 <= get("twheel_late_seconds", quantile="0.5") <= get("twheel_late_seconds", quantile="0.99") <= get("twheel_late_seconds", quantile="1")
assert get("twheel_late_seconds_count") > 50 and 0 < get("twheel_late_seconds_sum") / get("twheel_late_seconds_count") < 60
assert get("twheel_runs_total", kind="embedded", command="twheel", clock="monotonic") > 1' || return 2
}

top_metrics() {
	local status=0

	in_time top_figures || return
	# Once, if nothing else is said.
	timeout 60 "$twheel" top --embedded --metrics=- --delay=100ms >"$dir/top.prom" && metrics "$dir/top.prom" '' || return
	"$twheel" top --embedded --metrics=- >/dev/full 2>"$dir/err" || status=$?
	[ "$status" = 1 ] && grep -q "write error: No space left" "$dir/err" || return
	! "$twheel" top --embedded --metrics="$dir/no/x" --delay=100ms 2>"$dir/err" && grep -q "cannot write '$dir/no/x'" "$dir/err" &&
		! "$twheel" top --embedded --metrics=- --json 2>/dev/null
}

# ---- systemd ---------------------------------------------------------------------------------

# unit BINDIR: as `make install` has it
unit() {
	sed "s|@BINDIR@|$1|" 'tools/twheel/twheel-run@.service.in' >"$dir/twheel-run@.service"
}

# What it says of an instance, too: systemd-analyze makes one.
verified() {
	unit "$(dirname "$twheel")" && ! systemd-analyze verify --man=no "$dir/twheel-run@.service" 2>&1 | grep .
}

hardened() { systemd-analyze security --offline=true --threshold=25 --no-pager "$dir/twheel-run@.service"; }

# Who reloads the service while it starts does not end it: SIGHUP waits.
early() {
	{ yes '# long' | head -n 6000000; echo "after 1ms $(job early)"; } >"$dir/jobs"
	in_time starts_long || return
	# The commands hear it.
	echo "after 1ms -- kill -HUP \$\$" >"$dir/jobs"
	gives 1 env --default-signal=HUP "$twheel" run "$dir/jobs" &&
		gives 1 env --default-signal=HUP bash -c "exec '$twheel' run - <'$dir/jobs'"
}

starts_long() {
	local in_time=''

	rm -f "$dir/ran.early"
	env --default-signal=HUP setsid "$twheel" run "$dir/jobs" 2>"$dir/err" </dev/null &
	pid=$!
	until has_open "$dir/jobs" || is_gone "$pid"; do :; done
	# It is stopped for the signal: if it reads the file still, the signal comes in time.
	kill -STOP "$pid" 2>/dev/null && has_open "$dir/jobs" && in_time=yes
	kill -HUP "$pid" 2>/dev/null || :
	kill -CONT "$pid" 2>/dev/null || :
	ends 0 && [ "$(ran early)" = 1 ] || return 1
	[ "$in_time" ] || return 2
}

has_open() { [[ $(readlink "/proc/$pid"/fd/*) = *$1* ]]; }

# It is told when the commands wait, and by a file that is wrong never. The commands do not see it.
notifies() {
	python3 - "$twheel" "$dir" <<-'END'
		import os, socket, subprocess, sys
		twheel, dir = sys.argv[1:]
		def run(name, text):
		    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
		        if os.path.exists(name):
		            os.unlink(name)
		        s.bind(name.replace("@", "\0"))
		        open(f"{dir}/jobs", "w").write(text)
		        with subprocess.Popen([twheel, "run", f"{dir}/jobs"], env=dict(os.environ, NOTIFY_SOCKET=name),
		                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
		            s.settimeout(60)
		            told = [s.recv(100)] if not text.startswith("x") else []
		            out, err = p.communicate(timeout=60)
		        s.setblocking(False)
		        try:
		            told.append(s.recv(100))
		        except BlockingIOError:
		            pass
		        return told, p.returncode, out, err
		for name in f"{dir}/notify", f"@twheel-{os.getpid()}":
		    want = [b"READY=1"], 0, b"[]\n", b""
		    assert run(name, "after 300ms -- echo [$NOTIFY_SOCKET]\n") == want
		    assert run(name, "after 0 -- echo [$NOTIFY_SOCKET]\n") == want
		assert run(f"{dir}/notify", "# empty\n") == ([b"READY=1"], 0, b"", b"")
		assert run(f"{dir}/notify", "x\n")[:2] == ([], 125)
	END
}

# reloading: what systemctl reload does, with the last twheel
reloading() {
	local line

	while read -r line; do
		line=${line//%i/} line=${line//\/etc\/twheel\/.run/$dir/jobs}
		MAINPID=$pid sh -c "$line" 2>"$dir/err.reload" || return
	done < <(sed -n 's/^ExecReload=//p' "$dir/twheel-run@.service")
}

reloads_unit() {
	grep -qx Type=notify "$dir/twheel-run@.service" || return
	begin <<<"every 1h $(job a)" || return
	echo "every 1h --now $(job b)" >"$dir/jobs" && reloading && until_true has_run b || return
	echo "every 1h --now --frob $(job c)" >"$dir/jobs"
	! reloading && grep -q "unrecognized option '--frob'" "$dir/err.reload" && ! grep -q "not read again" "$dir/err" && stop
}

# The command of the unit is one that this twheel takes.
starts() {
	local words

	read -ra words < <(sed -n 's/^ExecStart=//p' "$dir/twheel-run@.service" | sed "s|%t/twheel-run-%i|$dir|g; s|/etc/twheel/%i.run|$dir/jobs|")
	echo "after 1ms $(job service)" >"$dir/jobs"
	"${words[@]}" && [ "$(ran service)" = 1 ] && [ -e "$dir/lock" ] && metrics "$dir/metrics.prom" ''
}

echo 1..18
[ -n "${TWHEEL:-}" ] || builds || exit
point "reload: nothing is lost, nothing is done twice" keeps
point "reload: equal lines are as many jobs" twins
point "reload: new lines begin, lines that are gone end" changes
point "reload: twheel ends if no line is left" ends_empty
point "reload: a file with an error changes nothing" bad_file
point "reload at any moment" any_moment
point "reload: the lock goes with the file" locks
point "SIGHUP from a closed terminal ends twheel" hangup
point "metrics of run, as Prometheus reads them" run_metrics
point "metrics are replaced as a whole" replaced
point "an error message if metrics cannot be written" unwritten
point "metrics of top" top_metrics
point "the unit: systemd-analyze verify finds nothing" verified
point "the unit: systemd-analyze finds it hardened" hardened
point "the unit: its command works" starts
point "the unit: its commands for reloading work" reloads_unit
point "the unit: a reload during the start does not end it" early
point "systemd is told when it has started" notifies
exit $bad
