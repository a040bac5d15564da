#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# scripts/cost-table, with a lab that says what it is told to.

setup() {
	load ../lib/common
	need_srcdir
	need_command jq
	[[ -e $SRCDIR/scripts/cost-table ]] || skip "no scripts in the source tree"
	cd "$BATS_TEST_TMPDIR"
	cp -r "$SRCDIR/scripts" .
	mkdir Documentation
	cat >scripts/lab <<-'END'
		#!/bin/bash
		while (($#)); do
			case $1 in
			--kernel) kernel=$2 ;;
			--arch) arch=$2 ;;
			esac
			shift
		done
		cat "measured-$kernel-$arch"
		exit "$(cat "exit-$kernel-$arch" 2>/dev/null || echo 0)"
	END
}

# What a guest prints: of two families, the steps, and the second's calls; "-": skipped.
measured() { # KERNEL ARCH RELEASE STEP STEP CALLS
	jq -n --arg release "$3" --arg arch "$2" --argjson alu "$4" --arg helper "$5" \
		--argjson calls "$6" '{$release, $arch, exact: true, families: [
		{family: "alu", what: "a", n: 500, step: {run_time_ns: $alu},
			rule: {kind: "straight", step: 1}, image: {bytes: 4, calls: 0}},
		{family: "helper", what: "b"} + if $helper == "-" then {skip: "refused"} else
			{n: 50, step: {run_time_ns: ($helper | tonumber)},
			rule: {kind: "helper"}, image: {bytes: 8, calls: $calls}} end]}' \
		>"measured-$1-$2"
}

table() {
	run -0 scripts/cost-table --no-build "$@"
}

# A line of the document, blanks squeezed.
line() { # FAMILY
	grep "^$1 " Documentation/cost-table.rst | tr -s ' '
}

@test "cost-table: kernels in order, and what changed from one to the next is marked" {
	measured 5.10 arm64 5.10.1-x 1 - 0
	measured 6.1 arm64 6.1.2-y 1 14 1
	measured newest arm64 7.2.3 2.5 2 0
	table --arch arm64 --kernel newest --kernel 5.10 --kernel 6.1
	[[ $(line family) == "family rule 5.10 6.1 7.2" ]] || fail "$(line family)"
	[[ $(line alu) == "alu straight 1 1 **2.5** (+1.5)" ]] || fail "$(line alu)"
	[[ $(line helper) == "helper helper - 14 **2** (-12, inlined)" ]] || fail "$(line helper)"
	grep -q '^Measured on 5\.10\.1-x, 6\.1\.2-y, 7\.2\.3\.$' Documentation/cost-table.rst
	jq -e '[.kernels[] | .kernel] == ["5.10", "6.1", "7.2"]
		and .kernels[2].release == "7.2.3"' Documentation/cost-table.json
	# One is measured again: the others stay. Another architecture has a table of its own.
	measured 6.1 arm64 6.1.9 1 2 0
	measured 6.1 amd64 6.1.9 7 9 0
	table --kernel 6.1
	[[ $(line helper) == $'helper helper - 2 2\nhelper helper 9' ]] || fail "$(line helper)"
	jq -e '[.kernels[] | "\(.kernel) \(.arch) \(.release)"] == ["5.10 arm64 5.10.1-x",
		"6.1 arm64 6.1.9", "7.2 arm64 7.2.3", "6.1 amd64 6.1.9"]' Documentation/cost-table.json
}

@test "cost-table: nothing is written when a rule does not hold" {
	measured 6.1 arm64 6.1.2 1 14 1
	table --arch arm64 --kernel 6.1
	cp -r Documentation before
	measured 6.1 arm64 6.1.2 2 15 1
	echo 1 >exit-6.1-arm64
	run -1 scripts/cost-table --no-build --arch arm64 --kernel 6.1
	[[ $output == *"nothing was written"* ]] || fail "$output"
	diff -r before Documentation
	run -2 scripts/cost-table --nosuch
	run -2 scripts/cost-table --kernel
}

@test "cost-table: the document is what cost-table.json says" {
	[[ -e $SRCDIR/Documentation/cost-table.json ]] || skip "no Documentation/cost-table.json"
	cp "$SRCDIR/Documentation/cost-table.json" Documentation/
	table --no-measure
	diff "$SRCDIR/Documentation/cost-table.rst" Documentation/cost-table.rst
}
