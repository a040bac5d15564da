# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the files of this suite share: load counts
# shellcheck disable=SC2034,SC2154 # variables for the tests; of lib/targets.bash

load ../lib/targets

SWITCH=/proc/sys/kernel/bpf_stats_enabled

setup_file() {
	load_targets
}

teardown_file() {
	umount_bpffs
}

setup() {
	set_ids
}

teardown() {
	end_jobs
	is_off
}

is_exact() {
	[[ ${WHERE-} == lab/*/arm64 ]]
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

