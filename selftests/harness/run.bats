#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The runner and its list of known skips, on suites made up here.

setup() {
	load ../lib/common
	T=$BATS_TEST_TMPDIR/t
	mkdir -p "$T/lib"
	cp "$TESTDIR/run" "$T/"
	cp "$TESTDIR/lib/ktap-formatter" "$TESTDIR/lib/common.bash" "$T/lib/"
	unset STRICT
}

# Writes SUITE/NAME; "TEST" is what bats would otherwise find here already.
put() { # SUITE/NAME
	[[ $1 != */* ]] || mkdir -p "$T/${1%/*}"
	sed 's/^TEST /@test /' >"$T/$1"
	chmod +x "$T/$1"
}

# The runner with these arguments: its exit status, and its output without remarks.
runs() { # STATUS OUTPUT ARG...
	local status=0 expected=$2 want=$1 got all

	shift 2
	all=$("$T/run" "$@" 2>&1) || status=$?
	got=$(grep -v '^ *#' <<<"$all")
	[[ $got == "$expected" ]] || fail "got:"$'\n'"$all"$'\n'"expected:"$'\n'"$expected"
	((status == want)) || fail "exit status $status, expected $want"
}

# Remarks are looked for by name.
remarks() { # TEXT ARG...
	local text=$1 all

	shift
	all=$("$T/run" "$@" 2>&1) || :
	[[ $all == *"$text"* ]] || fail "got:"$'\n'"$all"$'\n'"expected in it:"$'\n'"$text"
}

@test "files are tests, their tests are subtests" {
	put one/a.bats <<<'TEST "x" { true; }'
	put one/b.bats <<<'TEST "y" { true; }'
	runs 0 'KTAP version 1
1..2
  KTAP version 1
  1..1
  ok 1 x
ok 1 one/a
  KTAP version 1
  1..1
  ok 1 y
ok 2 one/b'
	remarks '# Totals: pass:2 fail:0 xfail:0 xpass:0 skip:0 error:0
# 2 passed, 0 failed, 0 skipped'
}

@test "a failure is shown, and fails file and run" {
	put one/a.bats <<<'TEST "x" { echo the reason; false; }'
	runs 1 'KTAP version 1
1..1
  KTAP version 1
  1..1
  not ok 1 x
not ok 1 one/a'
	remarks '# the reason'
	remarks '# 0 passed, 1 failed, 0 skipped'
}

@test "no test is a failure: in a file, and in all" {
	runs 1 'KTAP version 1
1..1
not ok 1 there is no test'
	put one/a.bats </dev/null
	runs 1 'KTAP version 1
1..1
  KTAP version 1
  1..1
  not ok 1 there is no test
not ok 1 one/a'
}

@test "all skipped: exit status 4; with STRICT=1 a failure" {
	put one/a.bats <<<'TEST "x" { skip "no PMU"; }'
	runs 4 'KTAP version 1
1..1
  KTAP version 1
  1..1
  ok 1 x # SKIP no PMU
ok 1 one/a # SKIP all tests were skipped'
	export STRICT=1
	runs 1 'KTAP version 1
1..1
  KTAP version 1
  1..1
  not ok 1 x
not ok 1 one/a'
	remarks '# skipped, which is not on the list of known skips: no PMU'
}

@test "a listed skip is none of STRICT's business, where it is listed for" {
	put one/a.bats <<<'TEST "x needs more" { skip "no PMU"; }'
	put skips <<<'lab/*/amd64  one/a: x *  no P*'
	runs 4 'KTAP version 1
1..1
  KTAP version 1
  1..1
  ok 1 x needs more # SKIP no PMU
ok 1 one/a # SKIP all tests were skipped' --strict --where lab/6.12/amd64
	# Neither elsewhere, nor for another reason.
	runs 1 'KTAP version 1
1..1
  KTAP version 1
  1..1
  not ok 1 x needs more
not ok 1 one/a' --strict --where lab/6.12/arm64
	put one/a.bats <<<'TEST "x needs more" { skip "no veth"; }'
	runs 1 'KTAP version 1
1..1
  KTAP version 1
  1..1
  not ok 1 x needs more
not ok 1 one/a' --strict --where lab/6.12/amd64
}

@test "entries of the list that are of no use any more are reported" {
	put one/a.bats <<<'TEST "x" { true; }'
	put skips <<-'EOF'
	native  one/a: x     as it once was
	native  one/a: gone  nobody knows
	lab/*   one/a: y     elsewhere
	EOF
	remarks '# note: skips: not skipped any more: one/a: x  as it once was
# note: skips: no such test: one/a: gone
# Totals:'
}

@test "a malformed list is refused" {
	put one/a.bats <<<'TEST "x" { true; }'
	put skips <<<'native one/a: x'
	run -2 "$T/run"
	[[ $output == *"not 'WHERE  NAME  REASON'"* ]]
}

@test "a program's KTAP: results, plan, exit status" {
	put one/suite <<<'program good short lying dead'
	put one/good <<-'EOF'
	#!/bin/bash
	printf '%s\n' 'TAP version 13' 1..2 'ok 1 - x' 'ok 2 y # skip no PMU'
	EOF
	put one/short <<-'EOF'
	#!/bin/bash
	printf '%s\n' 'KTAP version 1' 1..2 'ok 1 x'
	EOF
	put one/lying <<-'EOF'
	#!/bin/bash
	printf '%s\n' 'KTAP version 1' 1..1 'not ok 1 x'
	EOF
	put one/dead <<-'EOF'
	#!/bin/bash
	printf '%s\n' 'KTAP version 1' 1..1 'ok 1 x'
	kill -9 $$
	EOF
	runs 1 'KTAP version 1
1..4
  KTAP version 1
  1..2
  ok 1 x
  ok 2 y # SKIP no PMU
ok 1 one/good
  KTAP version 1
  1..2
  ok 1 x
not ok 2 one/short
  KTAP version 1
  1..1
  not ok 1 x
not ok 3 one/lying
  KTAP version 1
  1..1
  ok 1 x
not ok 4 one/dead'
	remarks '# planned 2 tests, got 1'
	remarks '# exit status 137, and no test failed'
	remarks '# 3 passed, 3 failed, 1 skipped'
}

@test "a program without KTAP: its exit status" {
	put one/suite <<<'program good bad none no'
	put one/good <<<'#!/bin/true'
	put one/bad <<<'#!/bin/false'
	put one/none <<-'EOF'
	#!/bin/bash
	echo '1..0 # SKIP no PMU'
	EOF
	put one/no <<-'EOF'
	#!/bin/bash
	exit 4
	EOF
	runs 1 'KTAP version 1
1..4
ok 1 one/good
not ok 2 one/bad
ok 3 one/none # SKIP no PMU
ok 4 one/no # SKIP exit status 4'
	remarks '# 1 passed, 1 failed, 2 skipped'
}

@test "subtests of subtests: the innermost count" {
	put one/a.bats <<-'EOF'
	load ../lib/common
	TEST "x" { ktap_run printf '%s\n' 1..2 'ok 1 p' 'ok 2 q'; }
	TEST "y" { ktap_run printf '%s\n' 1..2 'ok 1 p' 'not ok 2 q'; }
	TEST "z" { ktap_run printf '%s\n' 1..2 'ok 1 p'; }
	EOF
	runs 1 'KTAP version 1
1..1
  KTAP version 1
  1..3
    1..2
    ok 1 p
    ok 2 q
  ok 1 x
    1..2
    ok 1 p
    not ok 2 q
  not ok 2 y
    1..2
    ok 1 p
  not ok 3 z
not ok 1 one/a'
	remarks '# 4 passed, 2 failed, 0 skipped'
}

@test "subtests of subtests: the status of a program that prints them counts, too" {
	put one/a.bats <<-'EOF'
	load ../lib/common
	program() { printf '%s\n' "${@:2}"; return "$1"; }
	TEST "lies" { ktap_run program 1 1..1 'ok 1 p'; }
	TEST "dies" { ktap_run program 137 1..1 'ok 1 p'; }
	TEST "skips" { ktap_run program 4 1..1 'ok 1 p # SKIP no PMU'; }
	TEST "cannot run" { ktap_run program 4 '1..0 # SKIP not root'; }
	EOF
	runs 1 'KTAP version 1
1..1
  KTAP version 1
  1..4
    1..1
    ok 1 p
  not ok 1 lies
    1..1
    ok 1 p
  not ok 2 dies
    1..1
    ok 1 p # SKIP no PMU
  ok 3 skips # SKIP all of it was skipped
  ok 4 cannot run # SKIP not root
not ok 1 one/a'
	remarks '# program: exit status 137'
	remarks '# 2 passed, 2 failed, 2 skipped'
}

@test "a file that hangs is ended; what a test leaves behind does not hold the run" {
	put one/suite <<<'program hang leave'
	put one/hang <<-'EOF'
	#!/bin/bash
	sleep 60
	EOF
	put one/leave <<-'EOF'
	#!/bin/bash
	sleep 6 &
	echo 'ok 1 x'
	EOF
	SECONDS=0
	runs 1 'KTAP version 1
1..2
not ok 1 one/hang
  ok 1 x
ok 2 one/leave' --timeout 1
	((SECONDS < 5)) || fail "it took $SECONDS s"
}

@test "the suites of a place, and suites by name" {
	put one/suite <<<'where native'
	put one/a.bats <<<'TEST "x" { true; }'
	put two/suite <<<'where lab'
	put two/a.bats <<<'TEST "x" { true; }'
	put three/a.bats <<<'TEST "x" { true; }'
	run -0 "$T/run" --list
	[[ $output == $'one/a: x\nthree/a: x' ]] || fail "$output"
	run -0 "$T/run" --list --where lab/6.12/arm64
	[[ $output == $'three/a: x\ntwo/a: x' ]] || fail "$output"
	run -0 "$T/run" --list two one/a
	[[ $output == $'one/a: x\ntwo/a: x' ]] || fail "$output"
	run -2 "$T/run" --list four
}

@test "filters by name and by tag leave no empty file" {
	put one/a.bats <<-'EOF'
	# bats test_tags=slow
	TEST "x" { true; }
	TEST "y" { false; }
	EOF
	put one/b.bats <<<'TEST "z" { false; }'
	local only_x='KTAP version 1
1..1
  KTAP version 1
  1..1
  ok 1 x
ok 1 one/a'

	runs 0 "$only_x" --filter '^x$'
	runs 0 "$only_x" --tag slow
	runs 1 'KTAP version 1
1..1
not ok 1 there is no test' --filter none
}

@test "tests see where they are" {
	put one/a.bats <<-'EOF'
	TEST "x" {
		[[ $WHERE == lab/6.1/amd64 && $ARCH && $TESTDIR == */t && ! ${STRICT-} ]]
		[[ $BPFCOST == */bpfcost && $PWD == "$TESTDIR/one" ]]
	}
	EOF
	unset BPFCOST
	runs 0 'KTAP version 1
1..1
  KTAP version 1
  1..1
  ok 1 x
ok 1 one/a' --where lab/6.1/amd64
}
