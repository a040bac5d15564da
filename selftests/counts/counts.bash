# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the files of this suite share: load counts
# shellcheck disable=SC2034 # variables for the tests

load ../lib/common

TARGET=$TESTDIR/cli/target
T=$BATS_TEST_TMPDIR
SWITCH=/proc/sys/kernel/bpf_stats_enabled

# Programs to count, pinned in $P, in a bpf file system of the test file's own.
load_targets() {
	need_root
	need_command jq
	export BPFFS=$BATS_FILE_TMPDIR/bpf
	export P=$BPFFS/t
	mkdir -p "$BPFFS"
	mount -t bpf bpf "$BPFFS" || skip "cannot mount a bpf file system"
	"$TARGET" load "$TESTDIR/cli/targets.bpf.o" "$P" >"$BATS_FILE_TMPDIR/ids"
}

unload_targets() {
	umount "$BPFFS" 2>/dev/null || :
}

is_exact() {
	[[ ${WHERE-} == lab/*/arm64 ]]
}

# Ids of some of them, as variables.
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

# bpfcost -j prog stats, which must succeed and write one sound document and nothing else.
stats() { # ARG...
	bpfcost -j prog stats "$@"
	((status == 0)) || fail "$*: exit status $status: $(show)$(<"$T/err")"
	[[ ! -s $T/err ]] || fail "$*: wrote to stderr: $(<"$T/err")"
	json_is true
}

# The documents that are in $T/out, in short.
show() {
	ask -c brief "$T/out" 2>&1 | tail -c 4000
}

ask() { # jq's arguments, with the words of sound.jq
	local arg filter='' args=()

	for arg; do
		if [[ ! $filter && $arg != -* ]]; then
			filter=$arg arg="include \"sound\"; $arg"
		fi
		args+=("$arg")
	done
	jq -L "$TESTDIR/counts" "${args[@]}"
}

# Is it true for the one JSON document of the last command, which is sound?
json_is() { # FILTER
	[[ $(ask -n "[inputs] | length == 1 and (.[0] | sound and ($1))" "$T/out") == true ]] ||
		fail "not: $1"$'\n'"$(show)"
}

# Nobody holds the switch. Natively, others may use it.
is_off() {
	in_lab || return 0
	"$BPFCOST" stats show | grep -qx off || fail "$("$BPFCOST" stats show)"
}

# What a test has left in the background would keep bats waiting.
end_jobs() {
	local pid

	for pid in $(jobs -p); do
		kill -KILL "$pid" 2>/dev/null || :
	done
}
