# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What every bats file may use: load ../lib/common
#
# Kept small, because bats reads it again for each test, and a guest under emulation is slow.

bats_require_minimum_version 1.5.0

# Ends the test with a message.
fail() {
	printf '%s\n' "$*"
	return 1
}

# Each skips the test and says what is missing.
need_root() {
	((EUID == 0)) || skip "not root"
}

need_command() { # NAME...
	local name

	for name; do
		[[ $(type -P "$name") ]] || skip "no command '$name'"
	done
}

need_bpftool() {
	[[ ${BPFTOOL-} && -x $BPFTOOL ]] || skip "no bpftool"
}

need_kernel() { # MAJOR.MINOR
	local version

	version=$(uname -r)
	[[ $version =~ ^([0-9]+)\.([0-9]+) ]]
	((BASH_REMATCH[1] * 1000 + BASH_REMATCH[2] >= ${1%.*} * 1000 + ${1#*.})) ||
		skip "kernel $version is older than $1"
}

need_module() { # NAME: loads it if it is none of the kernel's own
	[[ -d /sys/module/$1 ]] || modprobe -q "$1" 2>/dev/null || skip "no kernel module '$1'"
}

need_srcdir() {
	[[ ${SRCDIR-} ]] || skip "no source tree here"
}

in_lab() {
	[[ ${WHERE-} == lab/* ]]
}

# Runs a program that prints KTAP as part of a test: its results become subtests, and the test fails
# or skips as the program does.
ktap_run() { # PROGRAM [ARG...]
	local line rc=0 why="all of it was skipped"

	while IFS= read -r line; do
		case $line in
		$'\001status '*) rc=${line#* } ;;
		'TAP version '*) printf '  KTAP version 1\n' >&3 ;;
		# That is all there is: no subtests, but the reason of a skip.
		'1..0 # SKIP '*) why=${line#*SKIP } ;;
		'KTAP version '* | 'ok '* | 'not ok '* | '#'* | ' '* | [0-9]*..[0-9]*)
			printf '  %s\n' "$line" >&3
			;;
		?*) printf '  # %s\n' "$line" >&3 ;;
		esac
	done < <(
		# bats ends a shell at the first command that fails.
		"$@" 2>&1 3>&- || rc=$?
		printf '\n\001status %d\n' "$rc"
	)
	case $rc in
	0) ;;
	4) skip "$why" ;;
	*) fail "${1##*/}: exit status $rc" ;;
	esac
}
