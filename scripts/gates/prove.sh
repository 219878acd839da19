#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# prove.sh: prove what tests can only try. Prints TAP, of two kinds:
#
#	placement	selftest/proof/place.py, with z3: where wheel.h puts a timer
#	models		selftest/proof/*.pml, with spin: every way in which the users of
#			a timer can interleave. Each model is checked as it is, in each of its
#			variants, and with each of the mistakes that it names. Those must be found
# shellcheck disable=SC2317 # point and xargs call the functions
. "$(dirname "$0")/../lib.sh"

src=$top/selftest/proof out=$top/build/proof
small=(-DWHEEL_R0=3 -DWHEEL_R1=3 -DWHEEL_R2=2 -DWHEEL_R3=4 -DWHEEL_R4=3 -DWHEEL_BIG=2 -DWHEEL_PARTS=3)
device=(-DDEVICE) sync=(-DCANCEL -DSHUTDOWN -DSELF) jobs=(-DBURIALS -DCUTS -DGIFTS)
# What takes so long hangs, in s. On a busy host the placement takes more than ten minutes.
limit=3600
nr=0 bad=0

probe() {
	gcc -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -Wall -Wextra -Werror \
		-I"$top" -o "$out/$1" "${@:2}" "$src/probe.c"
}

# keep FILE KNOWN: make it the known result, as a whole or not at all
keep() {
	cp "$1" "$2.$$"
	mv "$2.$$" "$2"
}

# What is proved depends on nothing but place.py, z3 and the wheel that the probes compile. So what
# was proved once is shown again. What was not is tried again.
placement() {
	local known

	known=$(result_of "$(/usr/bin/python3 -c 'import z3; print(z3.get_full_version())')" "$(gcc --version)" \
		"$(declare -f placement probe)" "${small[*]}" "$(cat "$src"/{place.py,probe.c} "$top"/wheel*.h)")
	if [ ! -e "$known" ]; then
		probe probe-real && probe probe-small "${small[@]}" &&
			timeout "$limit" "$src/place.py" "$out/probe-real" "$out/probe-small" | tee "$out/placement" || return
		keep "$out/placement" "$known"
		return
	fi
	cat "$known"
}

# explore MODEL FLAG...: go through all states
explore() {
	spin "${@:2}" -a "$src/$1.pml" && gcc -w -O0 -DSAFETY -DMEMLIM=4000 -o pan pan.c &&
		timeout "$limit" ./pan -n -w23 -m3000000
}

# search MODEL MISTAKE VARIANT...: search until something wrong is found. MODEL-MISTAKE.result is
# then "found, where and what", or "none, how many states". It depends on nothing but the model.
search() {
	local model=$1 mistake=$2 dir=$out/$1-$2 variant states='' known

	known=$(result_of "$(spin -V)" "$(declare -f search_all explore)" "$(cat "$src/$1.pml")" "$@")
	shift 2
	if [ -e "$known" ]; then
		cp "$known" "$dir.result"
		return
	fi
	search_all "$@" || return
	keep "$dir.result" "$known"
}

# Search without looking for a known result. Uses search()'s variables.
search_all() {
	mkdir "$dir" && cd "$dir" || return
	for variant; do
		explore "$model" "$variant" "-D$mistake" >"log$variant" 2>&1
		if grep -q '^pan:1: ' "log$variant"; then
			sed -n "s/^pan:1: \(.*\) (at depth.*/found, ${variant#-D}: \1/p" \
				"log$variant" >"$dir.result"
			return
		fi
		# A search that ended early proves nothing.
		grep -q 'errors: 0$' "log$variant" || return
		! grep -qE 'not completed|depth too small' "log$variant" || return
		states+=$(sed -n "s/^ *\([0-9]*\) states, stored.*/ ${variant#-D}: \1/p" "log$variant")
	done
	echo "none,$states states" >"$dir.result"
}

mistakes() { grep -oE 'BREAK_[A-Z]+(_[A-Z]+)*' "$src/$1.pml" | sort -u; }

# searches MODEL VARIANT...: print the arguments of each search
searches() {
	local mistake

	for mistake in NO_MISTAKE $(mistakes "$1"); do
		echo "$1" "$mistake" "${@:2}"
	done
}

point() {
	local name=$1

	shift
	nr=$((nr + 1))
	if "$@"; then
		echo "ok $nr - $name"
	else
		echo "not ok $nr - $name"
		bad=1
	fi
}

model() {
	local mistake result wanted=none

	for mistake in NO_MISTAKE $(mistakes "$1"); do
		result=$(cat "$out/$1-$mistake.result" || echo "no answer, see $out/$1-$mistake")
		point "$1, $mistake: $result" [ "${result%%,*}" = "$wanted" ]
		wanted=found
	done
}

# A model no longer describes the code if the code lacks one of the model's functions.
named() {
	local functions function missing=0

	mapfile -t functions < <(sed -nE 's/^inline (\w+)\(.*/\1/p; s/^.*proctype (\w+)\(.*/\1/p' \
		"$src"/{device,sync}.pml | grep -vxE 'submitter|user|owner|monitor' | sort -u)
	for function in "${functions[@]}"; do
		grep -qE "^[a-z].*\b$function\(" "$top"/twheel{,_chardev}.c && continue
		echo "# there is no $function()"
		missing=1
	done
	for function in turn join_as go_on balance; do
		grep -q "^inline $function(\|^proctype $function(" "$src/jobs.pml" &&
			grep -q "FUNCTION twheel.$function(" "$top/jobs/store_pg.sql" && continue
		echo "# there is no twheel.$function()"
		missing=1
	done
	return "$missing"
}

rm -rf "$out"
mkdir -p "$out"
placement || bad=1

export -f explore keep search search_all result_of
export src out cache limit
{ searches device "${device[@]}"; searches sync "${sync[@]}"; searches jobs "${jobs[@]}"; } |
	xargs -P "$(nproc)" -L 1 bash -c 'search "$@" || :' search
model device
model sync
model jobs
point "the functions of the models are in the code" named
echo "1..$nr"
exit $bad
