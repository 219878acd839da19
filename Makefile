# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# The ways in; the work is done by Kbuild and scripts/.

PREFIX	?= /usr
LIBDIR	?= $(PREFIX)/lib
SYSCONFDIR ?= /etc
export PREFIX LIBDIR

kbuild	= kdir=$$(scripts/kdir.sh) && $(MAKE) -C "$$kdir" M="$(CURDIR)"

.PHONY: modules clean modules_install install uninstall user_install headers_install
.PHONY: tools demo check
.PHONY: check-fast lint fuzz prove walk coverage mutate bench-wheel bench-kernel
.PHONY: udev_install bench-user bench-lib docs-fresh help

modules:
	@$(kbuild) modules

clean:
	@$(kbuild) clean
	@rm -rf build

# Into a DESTDIR files are only put. Without one they are made known to the machine.
staged	= [ -n "$(DESTDIR)" ] ||
put	= install -D -m 644

install: modules_install udev_install user_install

# Kbuild's own depmod wants a System.map.
modules_install: modules
	@$(staged) scripts/deps.sh install
	@$(kbuild) INSTALL_MOD_PATH="$(DESTDIR)" modules_install
	@$(staged) depmod "$$(bash -c '. scripts/lib.sh && kernel_release')"

headers_install:
	$(put) include/uapi/linux/twheel.h $(DESTDIR)$(PREFIX)/include/linux/twheel.h

udev_install:
	$(put) udev/60-twheel.rules $(DESTDIR)$(PREFIX)/lib/udev/rules.d/60-twheel.rules
	$(put) udev/twheel.conf $(DESTDIR)$(PREFIX)/lib/sysusers.d/twheel.conf
	@for dir in modprobe modules-load; do \
		file="$(DESTDIR)$(SYSCONFDIR)/$$dir.d/twheel.conf"; \
		[ -e "$$file" ] || $(put) udev/$$dir.conf "$$file"; done
	@$(staged) udev/activate

user_install: lib command man
	@$(MAKE) --no-print-directory -C lib install
	install -D build/tools/twheel $(DESTDIR)$(PREFIX)/bin/twheel
	$(put) tools/twheel/completion.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/twheel
	@scripts/man.sh install "$(DESTDIR)$(PREFIX)/share/man"
	@$(staged) ldconfig

# What install puts there, whatever that is.
uninstall:
	@$(staged) scripts/deps.sh install
	@scripts/uninstall.sh

tools:
	@$(MAKE) --no-print-directory -C tools

.PHONY: lib command examples man htmldocs try

lib:
	@scripts/deps.sh lib
	@$(MAKE) --no-print-directory -C lib

command:
	@scripts/deps.sh command
	@$(MAKE) --no-print-directory -C tools/twheel

examples:
	@scripts/deps.sh examples
	@$(MAKE) --no-print-directory -C examples

man:
	@scripts/deps.sh man
	@scripts/man.sh build

htmldocs:
	@scripts/deps.sh htmldocs
	@scripts/htmldocs.sh

try:
	@scripts/deps.sh lib
	@$(MAKE) -s --no-print-directory -C lib try

.PHONY: deb deb-check

deb:
	@scripts/deps.sh deb
	@scripts/deb.sh

deb-check:
	@scripts/deb-check.sh
	@scripts/bare-check.sh

demo:
	@scripts/demo.sh

check:
	@scripts/check.sh

check-fast:
	@scripts/check.sh fast

lint:
	@scripts/deps.sh build lint
	@scripts/lint.sh

# A minute of it is a habit; an hour is what finds the rest.
fuzz:
	@scripts/deps.sh fuzz
	@scripts/fuzz.sh $(FUZZ_SECONDS)

prove:
	@scripts/deps.sh prove
	@scripts/prove.sh

# Each minute of two centuries, in each zone.
walk:
	@scripts/deps.sh calendar
	@$(MAKE) -s --no-print-directory -C selftest/calendar walk

coverage:
	@scripts/deps.sh native uml coverage
	@scripts/coverage.sh

mutate:
	@scripts/deps.sh build native calendar fuzz rig uml
	@scripts/mutate.sh "$(MUTATION)"

.PHONY: matrix debug soak

matrix:
	@scripts/matrix.sh

debug:
	@scripts/debug.sh

soak:
	@scripts/soak.sh

bench-wheel:
	@bench/wheel/run.sh

bench-kernel:
	@bench/kernel/run.sh

bench-user:
	@bench/user/run.sh

bench-lib:
	@bench/lib/run.sh

docs-fresh:
	@scripts/docs-fresh.sh

help:
	@echo 'make                  build twheel.ko and twheel_chardev.ko (KDIR=kernel build directory)'
	@echo 'make install          install it all (DESTDIR=, PREFIX=, LIBDIR=, SYSCONFDIR=); parts of it are'
	@echo '                      modules_install, udev_install and user_install'
	@echo 'make uninstall        remove what install put there'
	@echo 'make headers_install  install <linux/twheel.h> alone'
	@echo 'make man              the manual pages, in build/man'
	@echo 'make htmldocs         the comments of the code as HTML, in build/htmldocs'
	@echo 'make deb              Debian packages, in build/deb'
	@echo 'make deb-check        install them into a Debian 12, boot that, and use them; and the tests in a'
	@echo '                      bare Debian 12; needs root'
	@echo 'make demo             a million timers in a virtual machine (WORKLOAD=file, ARGS=options)'
	@echo 'make lib              libtwheel, in build/lib (make -C lib install)'
	@echo 'make command          twheel(1), in build/tools'
	@echo 'make examples         libtwheel in loops of others, in build/examples'
	@echo 'make try              a tour of libtwheel, in this process and without a module'
	@echo 'make check            every test; needs root or sudo if a package is missing'
	@echo 'make check-fast       those without a virtual machine'
	@echo 'make lint             the static gates'
	@echo 'make fuzz             the wheel under libFuzzer (FUZZ_SECONDS=60)'
	@echo 'make prove            the placement by z3, the state machines by spin'
	@echo 'make walk             cron beside the C library, each minute of 1900 to 2100 in each zone: an hour'
	@echo 'make coverage         the lines and branches that the tests reach'
	@echo 'make mutate           would a test notice? (MUTATION=pattern, of selftest/mutations)'
	@echo 'make matrix           the tests on other kernels (ONLY="6.1-rt 6.12-rt")'
	@echo 'make debug            the tests in debugging kernels (ONLY="bugs debug kcsan")'
	@echo 'make soak             an hour of torture and more, counted timer by timer (SOAK_MINUTES=60)'
	@echo 'make bench-wheel      the wheel in user space beside heap, tree and others (NMAX=10000000)'
	@echo 'make bench-kernel     the modules beside timer_list and hrtimer (NMAX=10000000)'
	@echo 'make bench-user       /dev/twheel beside timerfd, POSIX timers, io_uring and libevent'
	@echo 'make bench-lib        libtwheel beside libevent and libuv, and the worst that a call of its scheduler takes'
	@echo 'make docs-fresh       which tables of doc/ are older than what they measure'
	@echo 'make tools            the user-space programs, in build/tools'
	@echo 'make clean'
