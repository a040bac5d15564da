# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the files of this suite share: load cli
# shellcheck disable=SC2034,SC2154 # variables for the tests; of lib/targets.bash

load ../lib/targets

setup_file() {
	load_targets
}

teardown_file() {
	umount_bpffs
}

setup() {
	need_profiling
}

teardown() {
	end_jobs
}

need_profiling() {
	local why

	why=$("$TARGET" traceable "$P/alu0") ||
		skip "entry and exit programs on BPF programs are refused ($why)"
}

has_event() { # NAME
	[[ ${events=$("$BPFCOST" -j metric list | jq -r '.[] | select(.available) | .metric')} ]]
	[[ $'\n'$events$'\n' == *$'\n'$1$'\n'* ]]
}

need_pmu() {
	has_event instructions || skip "no PMU, or one without the event 'instructions'"
}

# Where an instruction takes a nanosecond, and counts have no noise.
is_exact() {
	[[ ${WHERE-} == lab/*/arm64 ]] && has_event instructions
}

# bpfcost prog profile of a pinned program, as JSON, which must be one document.
profile() { # PROGRAM ARG...
	local name=$1

	shift
	bpfcost -j prog profile pinned "$P/$name" "$@"
	((status == 0)) || fail "$name $*: exit status $status: $(<"$T/out")$(<"$T/err")"
	[[ ! -s $T/err ]] || fail "$name $*: wrote to stderr: $(<"$T/err")"
	json_is 'type == "array"'
}

# Is it true for the one JSON document of the last command?
json_is() { # FILTER
	[[ $(jq -n "[inputs] | length == 1 and (.[0] | ($1))" "$T/out") == true ]] ||
		fail "not: $1"$'\n'"$(<"$T/out")"
}

# An error with STATUS and TEXT: as text on stderr, or with -j as the object.
fails() { # STATUS TEXT ARG...
	local want=$1 text=$2

	shift 2
	bpfcost -j "$@"
	((status == want)) || fail "$*: exit status $status: $(<"$T/out")$(<"$T/err")"
	[[ ! -s $T/err ]] || fail "$*: wrote to stderr: $(<"$T/err")"
	json_is 'keys == ["error"]'
	[[ $(jq -r .error "$T/out") == *"$text"* ]] || fail "expected '$text', got: $(<"$T/out")"
}

# Fields and sums that hold for every result of one program.
sound='all(.[]; (keys_unsorted[:5] == ["metric", "run_cnt", "value", "enabled", "running"])
	and (.measured + .switched + .lost + (.skipped // 0) == .run_cnt)
	and ([.net, .floor, .id, .measured] | all(.[]; type == "number"))
	and (.estimate or (.net - (.value - .floor * .measured) | fabs < 1)))'
