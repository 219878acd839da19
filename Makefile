# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# The entry points. Kbuild and scripts/ do the work.

PREFIX	?= /usr/local
BINDIR	?= $(PREFIX)/bin
LIBDIR	?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR	?= $(PREFIX)/share/man
SYSCONFDIR ?= /etc
# Where udev and systemd-sysusers look, whatever PREFIX is. Units of systemd are below PREFIX.
UDEVDIR	?= /usr/lib/udev
SYSUSERSDIR ?= /usr/lib/sysusers.d
UNITDIR	?= $(PREFIX)/lib/systemd/system
USERUNITDIR ?= $(PREFIX)/lib/systemd/user
# Where the Python interpreter looks.
PYTHONDIR ?= $(shell python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
# A directory source of cargo: crates that are unpacked. Cargo uses it if its configuration names it.
CARGODIR ?= $(PREFIX)/share/cargo/registry
export PREFIX BINDIR LIBDIR INCLUDEDIR MANDIR SYSCONFDIR UDEVDIR SYSUSERSDIR UNITDIR USERUNITDIR

kbuild	= kdir=$$(scripts/kdir.sh) && $(MAKE) -C "$$kdir" M="$(CURDIR)"

.PHONY: modules clean modules_install install uninstall user_install headers_install
.PHONY: tools demo check
.PHONY: check-fast lint fuzz prove walk coverage mutate bench-wheel bench-kernel
.PHONY: udev_install python_install rust_install bench-user bench-lib bench-calls bench-within bench-cpus bench-jobs docs-fresh pictures help

# deps.sh cannot always install headers of the running kernel. Then kdir.sh takes others, or says what to install.
modules:
	@[ -n "$(KDIR)" ] || [ -e /lib/modules/$$(uname -r)/build ] || scripts/deps.sh modules || :
	@$(kbuild) modules

clean:
	@$(kbuild) clean
	@rm -rf build

# With DESTDIR, files are only copied there. Without it, this machine is told about them: depmod,
# ldconfig, udev.
staged	= [ -n "$(DESTDIR)" ] ||
put	= install -D -m 644

install: modules_install udev_install user_install

# Kbuild runs depmod only where there is a System.map.
modules_install: modules
	@$(staged) scripts/deps.sh install
	@$(kbuild) INSTALL_MOD_PATH="$(DESTDIR)" modules_install
	@$(staged) depmod "$$(bash -c '. scripts/lib.sh && kernel_release')"

headers_install:
	$(put) include/uapi/linux/twheel.h $(DESTDIR)$(INCLUDEDIR)/linux/twheel.h

udev_install:
	$(put) udev/60-twheel.rules $(DESTDIR)$(UDEVDIR)/rules.d/60-twheel.rules
	$(put) udev/twheel.conf $(DESTDIR)$(SYSUSERSDIR)/twheel.conf
	@for dir in modprobe modules-load; do \
		file="$(DESTDIR)$(SYSCONFDIR)/$$dir.d/twheel.conf"; \
		[ -e "$$file" ] || $(put) udev/$$dir.conf "$$file"; done
	@$(staged) udev/activate

# The package twheel for Python. It has nothing to compile.
python_install:
	$(put) -t $(DESTDIR)$(PYTHONDIR)/twheel bindings/python/twheel/*.py bindings/python/twheel/py.typed

# The crate, without its tests. These are not in bindings/, so sed removes their sections, which are
# the last in Cargo.toml. Cargo requires .cargo-checksum.json, but accepts an empty list.
crate	= $(DESTDIR)$(CARGODIR)/twheel-$$($(MAKE) -s --no-print-directory -C lib version)

rust_install:
	@crate="$(crate)"; \
	$(put) -t "$$crate" bindings/rust/README.md bindings/rust/build.rs && \
	$(put) -t "$$crate/src" bindings/rust/src/*.rs && \
	$(put) -t "$$crate/examples" bindings/rust/examples/*.rs && \
	sed '/^\[\[test\]\]/,$$d' bindings/rust/Cargo.toml | $(put) /dev/stdin "$$crate/Cargo.toml" && \
	echo '{"package":null,"files":{}}' | $(put) /dev/stdin "$$crate/.cargo-checksum.json"

user_install: lib command man
	@$(MAKE) --no-print-directory -C lib install
	install -D build/tools/twheel $(DESTDIR)$(BINDIR)/twheel
	$(put) tools/twheel/completion.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/twheel
	sed 's|@BINDIR@|$(BINDIR)|' 'tools/twheel/twheel-run@.service.in' >'build/tools/twheel-run@.service'
	$(put) 'build/tools/twheel-run@.service' -t $(DESTDIR)$(UNITDIR)
	@scripts/docs/man.sh install "$(DESTDIR)$(MANDIR)" twheel
	@$(staged) ldconfig

# uninstall.sh runs make install into an empty directory, and removes the files that are there.
uninstall:
	@$(staged) scripts/deps.sh install
	@scripts/packages/uninstall.sh

tools:
	@scripts/deps.sh native
	@$(MAKE) --no-print-directory -C tools

.PHONY: lib command jobs jobs_install jobs_uninstall examples man htmldocs try

lib:
	@scripts/deps.sh lib
	@$(MAKE) --no-print-directory -C lib

command:
	@scripts/deps.sh command
	@$(MAKE) --no-print-directory -C tools/twheel

jobs:
	@scripts/deps.sh jobs
	@$(MAKE) --no-print-directory -C jobs

jobs_install: jobs man
	@$(MAKE) --no-print-directory -C jobs install
	@scripts/docs/man.sh install "$(DESTDIR)$(MANDIR)" jobs

jobs_uninstall:
	@scripts/packages/uninstall.sh jobs_install

examples:
	@scripts/deps.sh examples
	@$(MAKE) --no-print-directory -C examples

man:
	@scripts/deps.sh man
	@scripts/docs/man.sh build

htmldocs:
	@scripts/deps.sh htmldocs
	@scripts/docs/htmldocs.sh

try:
	@scripts/deps.sh lib
	@$(MAKE) -s --no-print-directory -C lib try

.PHONY: deb deb-check release

deb:
	@scripts/deps.sh deb
	@scripts/packages/deb.sh

deb-check:
	@scripts/packages/deb-check.sh
	@PACKAGES=there DEBIAN=trixie scripts/packages/deb-check.sh
	@scripts/packages/bare-check.sh

release:
	@scripts/deps.sh lib lint
	@scripts/packages/release.sh "$(VERSION)"

demo:
	@scripts/machines/demo.sh

check:
	@scripts/check.sh

check-fast:
	@scripts/check.sh fast

lint:
	@scripts/deps.sh build lint
	@scripts/gates/lint.sh

# A minute for each change; an hour before a release finds more.
fuzz:
	@scripts/deps.sh fuzz
	@scripts/gates/fuzz.sh $(FUZZ_SECONDS)

prove:
	@scripts/deps.sh prove
	@scripts/gates/prove.sh

# Each minute of two centuries, in each time zone.
walk:
	@scripts/deps.sh calendar
	@$(MAKE) -s --no-print-directory -C selftest/calendar walk

coverage:
	@scripts/deps.sh native uml coverage
	@scripts/long/coverage.sh

mutate:
	@scripts/deps.sh build native calendar fuzz rig uml
	@scripts/long/mutate.sh "$(MUTATION)"

.PHONY: matrix patches debug soak check-jobs kernel-users

patches:
	@scripts/long/patches.sh

matrix:
	@scripts/long/kept.sh matrix scripts/long/matrix.sh

debug:
	@scripts/long/debug.sh

soak:
	@scripts/long/kept.sh soak scripts/long/soak.sh

check-jobs:
	@scripts/long/check-jobs.sh

kernel-users:
	@scripts/long/kernel-users.sh

bench-wheel:
	@bench/wheel/run.sh

bench-kernel:
	@bench/kernel/run.sh

bench-user:
	@bench/user/run.sh

bench-lib:
	@bench/lib/run.sh

bench-cpus:
	@bench/cpus/run.sh

bench-calls:
	@bench/calls/run.sh

bench-jobs:
	@bench/jobs/run.sh

pictures:
	@bench/pictures/draw.sh

bench-within:
	@bench/within/run.sh

docs-fresh:
	@scripts/docs/docs-fresh.sh

define HELP
First                     values in parentheses are the defaults
  make                    build twheel.ko and twheel_chardev.ko (KDIR=, a kernel's build directory)
  make try                show libtwheel at work in a process, without a module
  make demo               run a million timers in a virtual machine; WORKLOAD=file, ARGS=options
  make check-fast         run the tests that need no virtual machine
  make install            install everything for the running kernel; make uninstall removes it

Build                     into build/
  make lib                libtwheel
  make command            twheel(1)
  make jobs               twheeld and twheel job
  make tools              the programs of the demo
  make examples           libtwheel in the event loops of others
  make man                the manual pages
  make htmldocs           the interfaces, from the comments in the code, as HTML
  make deb                Debian packages. Vcs-Git is the address of the remote "origin", if that is
                          public, or VCS_GIT=https://...; Homepage is the same, or
                          HOMEPAGE=https://...
  make clean              remove all that was built

Install                   below PREFIX=/usr/local: BINDIR=, LIBDIR=, INCLUDEDIR=, MANDIR=, UNITDIR=,
                          USERUNITDIR=
  make modules_install, make udev_install, make user_install    the parts of make install
  make headers_install    <linux/twheel.h> alone
  make jobs_install       twheeld; make jobs_uninstall removes it
  make python_install     the package twheel for Python (PYTHONDIR=)
  make rust_install       the crate twheel for Rust, into a directory source of cargo (CARGODIR=)
  make uninstall          remove what make install has installed, given the same variables
                          Whatever PREFIX is: SYSCONFDIR=/etc, UDEVDIR=/usr/lib/udev,
                          SYSUSERSDIR=/usr/lib/sysusers.d.
                          DESTDIR= is put in front of all of these.

Test
  make check              run all tests but the longer ones below; needs root or sudo if a package is
                          missing.
                          ONLY="suites" runs some of them
  make lint               run the static checks
  make prove              prove where a timer is put (z3); explore the state machines (spin)
  make fuzz               fuzz the wheel, cron, time zones and twheeld with libFuzzer
                          (FUZZ_SECONDS=60)
  make coverage           report the lines and branches that the tests reach
  make mutate             apply wrong edits, one at a time: a test must fail. MUTATION=pattern
                          chooses some of selftest/mutations
  make walk               compare cron with the C library's clock, each minute of 1900 to 2100 in
                          each zone: an hour

Test for longer           before a release
  make matrix             run the tests on other kernels; make patches; make kernel-users.
                          ONLY="6.1-rt 6.12-rt" runs some rows
  make patches            write twheel as patches for a kernel, and try them (KERNEL=6.12; or 7.2)
  make debug              run the tests in debugging kernels. ONLY="bugs debug kcsan" runs some
  make kernel-users       translate IPVS and WireGuard to twheel, run the kernel's own tests of
                          them, and measure what they cost
  make soak               torture the modules for an hour; load, freeze and count timers for half
                          an hour more (SOAK_MINUTES=60)
  make check-jobs         let daemons, connections, clocks, the server and the power of a machine
                          fail, for half an hour (STORM=100, percent). ONLY="storm power" runs some;
                          ONLY=hour has ten million runs pending for an hour
  make deb-check          install and use the packages in a Debian 12 and a Debian 13, and run
                          check-fast in a bare Debian 12; needs root

Measure                   bench/README.md says which benchmark answers which question
  make bench-kernel       compare the modules with timer_list and hrtimer (NMAX=1000000)
  make bench-user         compare /dev/twheel with timerfd, POSIX timers, io_uring and libevent
  make bench-wheel        compare the wheel in user space with a heap, a tree and others
                          (NMAX=1000000)
  make bench-lib          compare libtwheel with libevent and libuv; measure the worst call of its
                          scheduler
  make bench-cpus         count the instructions of operations that 1 to 8 CPUs do at once, and of
                          their lock holds
  make bench-calls        count the instructions of a single call, by function
  make bench-jobs         compare twheeld with Quartz, pg-boss, graphile-worker and pg_cron: firings
                          a second, lateness, fail-over
  make bench-within       count how often timers with a tolerance wake a process, and how often
                          exact timers do
  make pictures           draw doc/pictures again, from the figures in doc/data
  make docs-fresh         say which tables and figures in doc/ are older than what they measure

Release
  make release            make the tree the version VERSION=X.Y.Z: CONTRIBUTING.md has the steps
endef

help:
	@: $(info $(HELP))
