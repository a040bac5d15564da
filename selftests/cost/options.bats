#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What selftests/cost/cost does besides testing: its table, JSON, and steps beside another kernel's.

setup() {
	load ../lib/common
	need_root
	T=$BATS_TEST_TMPDIR
	cost=$TESTDIR/cost/cost
}

run_cost() { # ARG...: status, $T/out, $T/err
	status=0
	"$cost" "$@" >"$T/out" 2>"$T/err" || status=$?
}

# A file of kernels "VERSION ARCH ALU LOOP" with the steps of these two families.
kernels() {
	jq -Rn '{kernels: [inputs | split(" ") | {kernel: .[0], release: .[0], arch: .[1], exact: true,
		families: [{family: "alu", step: {run_time_ns: (.[2] | tonumber)}},
			if .[3] == "-" then {family: "loop", skip: "refused"}
			elif .[3] then {family: "loop", step: {run_time_ns: (.[3] | tonumber)}}
			else empty end]}]}'
}

@test "families are listed, and wrong words are refused" {
	run_cost --list
	((status == 0))
	[[ $(<"$T/out") == "alu "*"hash_lookup "* && ! -s $T/err ]] || fail "$(<"$T/out")"
	run_cost --list loop
	[[ $(<"$T/out") == loop\ * && $(wc -l <"$T/out") == 1 ]] || fail "$(<"$T/out")"
	run_cost alu nosuch
	((status == 2)) || fail "exit status $status"
	[[ $(<"$T/err") == *nosuch*--list* && ! -s $T/out ]] || fail "$(<"$T/err")"
	run_cost --nosuch
	((status == 2)) || fail "exit status $status"
	[[ $(<"$T/err") == *usage:* && ! -s $T/out ]] || fail "$(<"$T/err")"
	run_cost --help
	[[ $status == 0 && $(<"$T/out") == usage:* ]]
}

@test "the table and JSON have what was asked for, and nothing else is on stdout" {
	need_command jq
	run_cost --json loop alu
	jq -e --arg arch "$ARCH" --arg release "$(uname -r)" '.arch == $arch and .release == $release
		and [.families[].family] == ["alu", "loop"]
		and all(.families[]; .n > 0 and .what and .step.run_time_ns and .step.test_run_ns
			and .rule.step > 0)' "$T/out" || fail "$(<"$T/out") $(<"$T/err")"
	[[ $(wc -l <"$T/out") == 1 ]]
	run_cost --table loop alu
	[[ $(<"$T/out") == "FAMILY "*run_time_ns*$'\n'"alu "*$'\n'"loop "* &&
		$(wc -l <"$T/out") == 3 ]] || fail "$(<"$T/out")"
}

@test "beside: what cannot be compared is refused" {
	need_command jq
	echo "1.0 $ARCH 1 3" | kernels >"$T/table"
	if ! "$cost" --json alu 2>"$T/err" | jq -e .exact >/dev/null; then
		run_cost --beside="$T/table" alu
		[[ $status == 2 && $(<"$T/err") == *--exact* && ! -s $T/out ]] || fail "$(<"$T/err")"
		return
	fi
	run_cost --beside="$T/nosuch" alu
	[[ $status == 2 && $(<"$T/err") == *nosuch* && ! -s $T/out ]] || fail "$status $(<"$T/err")"
	head -c 40 "$T/table" >"$T/cut"
	run_cost --beside="$T/cut" alu
	[[ $status == 2 && $(<"$T/err") == */cut* && ! -s $T/out ]] || fail "$status $(<"$T/err")"
	echo '[{"metric":"ns"}]' >"$T/foreign"
	run_cost --beside="$T/foreign" alu
	[[ $status == 2 && $(<"$T/err") == *cost-table* && ! -s $T/out ]] || fail "$(<"$T/err")"
	echo "1.0 mips 1 3" | kernels >"$T/arch"
	run_cost --beside="$T/arch" alu
	[[ $status == 2 && $(<"$T/err") == *"$ARCH"* && ! -s $T/out ]] || fail "$(<"$T/err")"
}

@test "beside: each step that changed is marked, and dearer ones are a failure" {
	local mine

	need_command jq
	"$cost" --json alu 2>/dev/null | jq -e .exact >/dev/null ||
		skip "an instruction does not take a nanosecond here (lab --exact)"
	mine=$(uname -r | grep -o '^[0-9]*\.[0-9]*')

	# The nearest: the newest that is not newer, of this architecture.
	printf '%s\n' "99.0 $ARCH 9 9" "1.0 $ARCH 9 9" "$mine $ARCH 1 3" "$mine other 9 9" \
		"2.0 $ARCH 9 9" | kernels >"$T/table"
	run_cost --beside="$T/table" alu loop
	((status == 0)) || fail "$status $(<"$T/out") $(<"$T/err")"
	[[ $(<"$T/out") != *\ \*\ * && $(<"$T/out") == *"FAMILY"*" $mine "* &&
		$(<"$T/out") == *"0 of 2 steps became dearer"* ]] || fail "$(<"$T/out")"

	printf '%s\n' "99.0 $ARCH 9 9" "1.0 $ARCH 9 9" "2.0 $ARCH 0.5 4" | kernels >"$T/table"
	run_cost --beside="$T/table" alu loop
	((status == 1)) || fail "$status $(<"$T/out") $(<"$T/err")"
	grep -q '^alu .* 0\.5 .* 1 .*\* +0\.5, dearer$' "$T/out" || fail "$(<"$T/out")"
	grep -q '^loop .* 4 .* 3 .*\* -1, cheaper$' "$T/out" || fail "$(<"$T/out")"

	# All are newer: the oldest. Cheaper and new is no failure.
	printf '%s\n' "99.0 $ARCH 9 9" "98.0 $ARCH 2 -" | kernels >"$T/table"
	run_cost --beside="$T/table" alu loop
	((status == 0)) || fail "$status $(<"$T/out") $(<"$T/err")"
	grep -q '^alu .* 2 .* 1 .*\* -1, cheaper$' "$T/out" || fail "$(<"$T/out")"
	grep -q '^loop .* - .* 3 .*\* new$' "$T/out" || fail "$(<"$T/out")"
}
