#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# How kselftest runs a .bats file: results as KTAP; exit status 0 passed, 1 failed, 4 skipped.

set -u
here=$(cd -- "$(dirname -- "$0")" && pwd -P) || exit 1

skip() {
	printf 'KTAP version 1\n1..0 # SKIP %s\n' "$*"
	exit 4
}

[[ $(type -P bats) ]] || skip "needs bats (package bats)"
# Beside us in a build and in a source tree; installed by kselftest, a directory of its own.
for formatter in "$here"/{../lib,lib}/ktap-formatter; do
	[[ ! -x $formatter ]] || break
done
[[ -x $formatter ]] || skip "needs ktap-formatter, which is not installed"

passed=0 failed=0
while IFS= read -r line; do
	printf '%s\n' "$line"
	case $line in
	'ok '*'# SKIP'*) ;;
	'ok '*) passed=1 ;;
	'not ok '* | 'Bail out!'*) failed=1 ;;
	esac
done < <(bats --formatter "$formatter" "$@" 2>&1)
((failed == 0)) || exit 1
((passed)) || exit 4
