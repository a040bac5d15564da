#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# calibrate: what it says when it is disturbed. Its numbers are checked by profiler/cheap.

load usage

setup() {
	need_root
	need_command jq
}

@test "a signal ends it with one document and status 0" {
	local signal status

	for signal in INT TERM HUP; do
		status=0
		# In a process group of its own, where the shell does not ignore SIGINT.
		set -m
		"$BPFCOST" -j calibrate >"$T/out" 3>&- &
		set +m
		# It blocks what it waits for.
		until [[ $(</proc/$!/comm) == bpfcost ]] &&
			grep -q '^SigBlk:.*[1-9a-f]' "/proc/$!/status"; do
			sleep 0.01
		done
		kill "-$signal" $!
		wait $! || status=$?
		((status == 0)) || fail "SIG$signal: exit status $status"
		[[ $(jq -n '[inputs] | length == 1 and (.[0] | all(.[]; has("method")))' "$T/out") == \
			true ]] || fail "SIG$signal: $(<"$T/out")"
	done
}

@test "where nothing can be measured it is an error" {
	local status=0

	(ulimit -n 6 && exec "$BPFCOST" -j calibrate) >"$T/out" || status=$?
	((status == 1)) || fail "exit status $status: $(<"$T/out")"
	[[ $(jq -r .error "$T/out") == *EMFILE* ]] || fail "$(<"$T/out")"
}

@test "it takes no arguments" {
	local status=0

	"$BPFCOST" -j calibrate now >"$T/out" || status=$?
	((status == 2)) && [[ $(jq -r .error "$T/out") == *"no arguments"* ]] || fail "$(<"$T/out")"
}
