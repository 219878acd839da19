#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# dkms-symvers.sh DIR: after a build by DKMS keep what other modules need to be built against
# these, in the directory of this kernel's build, which goes with it.
exec cp Module.symvers "$1"
