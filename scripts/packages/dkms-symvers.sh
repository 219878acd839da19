#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# dkms-symvers.sh DIR: after a build by DKMS, keep what is needed to build other modules against
# these. It is in the directory of the build for this kernel, and is removed with that.
exec cp Module.symvers "$1"
