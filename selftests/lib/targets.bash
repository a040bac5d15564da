# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs to measure, and the command, as the tests of several suites use them; see cli/target.c.
# shellcheck disable=SC2034 # variables for the tests

load ../lib/common

TARGET=$TESTDIR/cli/target
T=$BATS_TEST_TMPDIR

# Programs to measure, pinned in $P, in a bpf file system of the test file's own. Their ids and names
# are in a file, for set_ids.
load_targets() {
	mount_bpffs
	export P=$BPFFS/t
	"$TARGET" load "$TESTDIR/cli/targets.bpf.o" "$P" >"$BATS_FILE_TMPDIR/ids"
}

mount_bpffs() {
	need_root
	need_command jq
	export BPFFS=$BATS_FILE_TMPDIR/bpf
	mkdir -p "$BPFFS"
	mount -t bpf bpf "$BPFFS" || skip "cannot mount a bpf file system"
}

umount_bpffs() {
	[[ ! ${BPFFS-} ]] || umount "$BPFFS" 2>/dev/null || :
}

# Their ids, as variables.
set_ids() {
	local id name

	while read -r id name; do
		declare -g "$name=$id"
	done <"$BATS_FILE_TMPDIR/ids"
}

run_target() { # PROGRAM REPEAT [N [CPU]]
	local name=$1

	shift
	"$TARGET" run "$P/$name" "$@"
}

# The command, with what it wrote in $T/out and $T/err.
bpfcost() { # ARG...
	status=0
	"$BPFCOST" "$@" >"$T/out" 2>"$T/err" </dev/null || status=$?
}

# What a test has left in the background would keep bats waiting.
end_jobs() {
	local pid

	for pid in $(jobs -p); do
		kill -KILL "$pid" 2>/dev/null || :
	done
}
