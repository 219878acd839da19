#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# types.sh: the types of the package twheel for Python, as a type checker sees them.
# shellcheck disable=SC2317 # point calls the functions
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
# shellcheck source=selftest/lib/tap.sh
. "$top/selftest/lib/tap.sh"
cd "$top"

check_types() { /usr/bin/mypy --strict --no-error-summary --cache-dir=build/python/mypy "$@"; }

typed() { check_types bindings/python/twheel; }

# Without py.typed all would be Any for them.
users() {
	MYPYPATH=bindings/python check_types examples/asyncio_alarms.py || return
	! MYPYPATH=bindings/python check_types -c 'import twheel
twheel.Scheduler(threads="two")' >build/python/wrong || return
	grep 'incompatible type "str"; expected "int"' build/python/wrong
}

mkdir -p build/python
echo 1..2
point "mypy --strict finds nothing in the package" typed
point "mypy checks programs that use the package" users
exit $bad
