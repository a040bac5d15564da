# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the files of this suite share: load usage
# shellcheck disable=SC2154 # variables of lib/targets.bash

load ../lib/targets

# Bad input: status 2, TEXT in the message and nothing else; the same as JSON; nothing left behind.
refuses() { # TEXT ARG...
	fails 2 "$@"
}

fails() { # STATUS TEXT ARG...
	local want=$1 text=$2 error

	shift 2
	bpfcost "$@"
	((status == want)) || fail "bpfcost $*: exit status $status: $(<"$T/err")"
	[[ ! -s $T/out ]] || fail "bpfcost $*: wrote to stdout: $(<"$T/out")"
	[[ $(<"$T/err") == Error:\ *"$text"* && $(wc -l <"$T/err") == 1 ]] ||
		fail "bpfcost $*: expected '$text', got: $(<"$T/err")"
	error=$(<"$T/err")

	bpfcost -j "$@"
	((status == want)) || fail "bpfcost -j $*: exit status $status"
	[[ ! -s $T/err ]] || fail "bpfcost -j $*: wrote to stderr: $(<"$T/err")"
	[[ $(jq -r 'keys | join(",")' "$T/out") == error ]] || fail "bpfcost -j $*: $(<"$T/out")"
	[[ "Error: $(jq -r .error "$T/out")" == "$error" ]] ||
		fail "bpfcost -j $*: another message: $(<"$T/out")"
}
