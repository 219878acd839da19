# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# The entry points. Kbuild and scripts/ do the work.

PREFIX	?= /usr/local
BINDIR	?= $(PREFIX)/bin
LIBDIR	?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR	?= $(PREFIX)/share/man
SYSCONFDIR ?= /etc
# Where udev and systemd look, whatever PREFIX is.
UDEVDIR	?= /usr/lib/udev
SYSUSERSDIR ?= /usr/lib/sysusers.d
UNITDIR	?= $(PREFIX)/lib/systemd/system
USERUNITDIR ?= $(PREFIX)/lib/systemd/user
# Where the Python interpreter looks.
PYTHONDIR ?= $(shell python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
# Crates that cargo takes as they are, of which it is told as a source (`directory`).
CARGODIR ?= $(PREFIX)/share/cargo/registry
export PREFIX BINDIR LIBDIR INCLUDEDIR MANDIR SYSCONFDIR UDEVDIR SYSUSERSDIR UNITDIR USERUNITDIR

kbuild	= kdir=$$(scripts/kdir.sh) && $(MAKE) -C "$$kdir" M="$(CURDIR)"

.PHONY: modules clean modules_install install uninstall user_install headers_install
.PHONY: tools demo check
.PHONY: check-fast lint fuzz prove walk coverage mutate bench-wheel bench-kernel
.PHONY: udev_install python_install rust_install bench-user bench-lib bench-calls bench-within bench-cpus bench-jobs docs-fresh pictures help

modules:
	@$(kbuild) modules

clean:
	@$(kbuild) clean
	@rm -rf build

# With DESTDIR, files are only copied there. Without it, this machine is told about them: depmod, ldconfig, udev.
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

# The crate, without its tests, which are not in bindings/: the last sections of Cargo.toml. Cargo
# wants a file of checksums, but no checksums.
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
	@scripts/long/soak.sh

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
First
  make                    build twheel.ko and twheel_chardev.ko (KDIR=kernel build directory)
  make try                a tour of libtwheel in a process, without a module
  make demo               a million timers in a virtual machine (WORKLOAD=file, ARGS=options)
  make check-fast         the tests that need no virtual machine
  make install            install everything for the running kernel; make uninstall removes it

Build                     into build/
  make lib                libtwheel
  make command            twheel(1)
  make jobs               twheeld and twheel job
  make tools              the programs of the demo
  make examples           libtwheel in the event loops of others
  make man                the manual pages
  make htmldocs           the interfaces, from the comments in the code, as HTML
  make deb                Debian packages. Their Homepage and Vcs-Git are that of the remote origin, if it is
                          public, or HOMEPAGE=https://... VCS_GIT=https://...
  make clean              remove all that was built

Install                   PREFIX=/usr/local, and below it BINDIR=, LIBDIR=, INCLUDEDIR=, MANDIR=, UNITDIR=
  make modules_install, make udev_install, make user_install    the parts of make install
  make headers_install    <linux/twheel.h> alone
  make jobs_install       twheeld; make jobs_uninstall removes it
  make python_install     the package twheel for Python (PYTHONDIR=)
  make rust_install       the crate twheel for Rust, as a directory that cargo takes crates from (CARGODIR=)
  make uninstall          remove what make install has installed, given the same variables
                          Files for udev and systemd go where these look: SYSCONFDIR=/etc,
                          UDEVDIR=/usr/lib/udev, SYSUSERSDIR=/usr/lib/sysusers.d.
                          DESTDIR= is put in front of all of them.

Test
  make check              every test; needs root or sudo if a package is missing (ONLY="suites")
  make lint               the static gates
  make prove              the placement by z3, the state machines by spin
  make fuzz               the wheel, cron and time zones under libFuzzer (FUZZ_SECONDS=60)
  make coverage           the lines and branches that the tests reach
  make mutate             wrong edits: does a test notice each? (MUTATION=pattern, of selftest/mutations)
  make walk               cron beside the C library, each minute of 1900 to 2100 in each zone: an hour

Test for longer           before a release
  make matrix             the tests on other kernels, make patches, make kernel-users (ONLY="6.1-rt 6.12-rt")
  make patches            write twheel as patches for a kernel, and try them (KERNEL=7.2)
  make debug              the tests in debugging kernels (ONLY="bugs debug kcsan")
  make kernel-users       IPVS and WireGuard on twheel, the kernel's own tests of them, and what they cost
  make soak               an hour of torture and more, counted timer by timer (SOAK_MINUTES=60)
  make check-jobs         half an hour of what may happen to several twheeld and their server (STORM=100)
  make deb-check          the packages in a Debian 12 and a Debian 13, booted, and the tests in a bare
                          Debian 12; needs root

Measure                   bench/README.md says which benchmark answers which question
  make bench-kernel       the modules beside timer_list and hrtimer (NMAX=10000000)
  make bench-user         /dev/twheel beside timerfd, POSIX timers, io_uring and libevent
  make bench-wheel        the wheel in user space beside a heap, a tree and others (NMAX=10000000)
  make bench-lib          libtwheel beside libevent and libuv, and the worst call of its scheduler
  make bench-cpus         operations of 1 to 8 CPUs at once, and how long they hold locks
  make bench-calls        where the instructions of a single call go, by function
  make bench-jobs         twheeld beside Quartz, pg-boss, graphile-worker, pg_cron: firings a second, lateness, fail-over
  make bench-within       how often timers that may be late wake a process, beside exact ones
  make pictures           draw doc/pictures again, from the figures in doc/data
  make docs-fresh         which tables and figures in doc/ are older than what they measure

Release
  make release            make the tree the version VERSION=X.Y.Z: CONTRIBUTING.md has the steps
endef

help:
	@: $(info $(HELP))
