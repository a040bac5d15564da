#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Runs the suite for tmt: builds it if nobody has, and leaves results.yaml where tmt looks for it.

set -u
here=$(cd -- "$(dirname -- "$0")" && pwd -P) || exit 1
out=${TMT_TEST_DATA:?is set by tmt}

cd "$here" || exit 1
[[ -x ./refcount ]] || make || exit 1
./ksft_runner.sh stats.bats | tee "$out/results.ktap"
../lib/ktap-convert tmt results.ktap <"$out/results.ktap" >"$out/results.yaml"
