#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The formatter on its own, and behind the bats that is installed.

setup() {
	load ../lib/common
	FORMATTER=$TESTDIR/lib/ktap-formatter
	cd "$BATS_TEST_TMPDIR"
}

# The formatter's output for the stream on stdin must be "$2", its exit status $1.
formats() {
	local status=0 got

	got=$("$FORMATTER") || status=$?
	[[ $got == "$2" ]] || fail "got:"$'\n'"$got"$'\n'"expected:"$'\n'"$2"
	((status == $1)) || fail "exit status $status, expected $1"
}

# Writes test.bats; "TEST" is what bats would otherwise find here already.
bats_file() {
	sed 's/^TEST /@test /' >test.bats
}

# formats, for a real bats on test.bats, whose complaints do not matter.
bats_formats() {
	local status=0 got

	got=$(bats --formatter "$FORMATTER" test.bats 2>/dev/null) || status=$?
	[[ $got == "$2" ]] || fail "got:"$'\n'"$got"$'\n'"expected:"$'\n'"$2"
	((status == $1)) || fail "exit status $status, expected $1"
}

@test "pass, fail and skip, with totals" {
	formats 1 "KTAP version 1
1..3
ok 1 one
# why
not ok 2 two
ok 3 three # SKIP no PMU
# Totals: pass:1 fail:1 xfail:0 xpass:0 skip:1 error:0" <<-'EOF'
	1..3
	suite /x/test.bats
	begin 1 one
	ok 1 one
	begin 2 two
	not ok 2 two
	# why
	begin 3 three
	ok 3 three # skip no PMU
	EOF
}

@test "only passes: exit status 0" {
	formats 0 "KTAP version 1
1..1
ok 1 one
# Totals: pass:1 fail:0 xfail:0 xpass:0 skip:0 error:0" <<-'EOF'
	1..1
	begin 1 one
	ok 1 one in 12ms
	EOF
}

@test "only skips: exit status 4, and a skip always has a reason" {
	formats 4 "KTAP version 1
1..2
ok 1 one # SKIP no reason given
ok 2 two # SKIP no PMU # here
# Totals: pass:0 fail:0 xfail:0 xpass:0 skip:2 error:0" <<-'EOF'
	1..2
	begin 1 one
	ok 1 one # skip
	begin 2 two
	ok 2 two in 3ms # skip no PMU # here
	EOF
}

@test "an empty suite is a failure" {
	local empty="KTAP version 1
1..1
not ok 1 there is no test
# Totals: pass:0 fail:1 xfail:0 xpass:0 skip:0 error:0"

	formats 1 "$empty" <<<"1..0"
	formats 1 "$empty" </dev/null
}

@test "what is no TAP at all is a failure, and is shown" {
	formats 1 "KTAP version 1
1..1
# Error: bad option
# usage
not ok 1 there is no test
# Totals: pass:0 fail:1 xfail:0 xpass:0 skip:0 error:0" <<-'EOF'
	Error: bad option
	usage
	EOF
}

@test "a test that began and never ended is a failure" {
	formats 1 "KTAP version 1
1..2
# the test died: it began and never ended
not ok 1 one
ok 2 two
# Totals: pass:1 fail:1 xfail:0 xpass:0 skip:0 error:0" <<-'EOF'
	1..2
	begin 1 one
	begin 2 two
	ok 2 two
	EOF
}

@test "tests that bats did not come to are failures" {
	formats 1 "KTAP version 1
1..3
# the test died: it began and never ended
not ok 1 one
not ok 2 test 2 did not run
not ok 3 test 3 did not run
# Totals: pass:0 fail:3 xfail:0 xpass:0 skip:0 error:0" <<-'EOF'
	1..3
	begin 1 one
	EOF
}

@test "a retry is not a death" {
	formats 0 "KTAP version 1
1..1
ok 1 one
# Totals: pass:1 fail:0 xfail:0 xpass:0 skip:0 error:0" <<-'EOF'
	1..1
	begin 1 one
	begin 1 one
	ok 1 one
	EOF
}

@test "a failing setup_file takes the place of a test" {
	formats 1 "KTAP version 1
1..2
not ok 1 setup_file failed
not ok 2 test 2 did not run
# Totals: pass:0 fail:2 xfail:0 xpass:0 skip:0 error:0" <<-'EOF'
	1..2
	suite /x/test.bats
	not ok 1 setup_file failed
	EOF
}

@test "a failing teardown_file fails the last test, within the plan" {
	formats 1 "KTAP version 1
1..1
# teardown_file failed
# why
not ok 1 one
# Totals: pass:0 fail:1 xfail:0 xpass:0 skip:0 error:0" <<-'EOF'
	1..1
	suite /x/test.bats
	begin 1 one
	ok 1 one
	not ok 2 teardown_file failed
	# why
	EOF
}

@test "a name that looks like a directive is only a name" {
	formats 1 "KTAP version 1
1..2
not ok 1 it's _3 _ skip this
ok 2 in 5ms _ skip # SKIP no PMU
# Totals: pass:0 fail:1 xfail:0 xpass:0 skip:1 error:0" <<-'EOF'
	1..2
	begin 1 it's #3 # skip this
	not ok 1 it's #3 # skip this
	begin 2 in 5ms # skip
	ok 2 in 5ms # skip # skip no PMU
	EOF
}

@test "a diagnostic that looks like a result is not one" {
	formats 0 "KTAP version 1
1..1
# got: not ok:1 x and ok:2 y
# ok:3 z
ok 1 one
# Totals: pass:1 fail:0 xfail:0 xpass:0 skip:0 error:0" <<-'EOF'
	1..1
	begin 1 one
	got: not ok 1 x and ok 2 y
	# ok 3 z
	ok 1 one
	EOF
}

@test "control characters do not reach the log" {
	formats 0 "KTAP version 1
1..1
# a?[31mb	c
ok 1 one
# Totals: pass:1 fail:0 xfail:0 xpass:0 skip:0 error:0" \
		< <(printf '%s\n' '1..1' 'begin 1 one' $'# a\033[31mb\tc' 'ok 1 one')
}

@test "subtests of a test stay subtests" {
	formats 0 "KTAP version 1
1..1
  KTAP version 1
  1..1
  ok 1 sub
ok 1 one
# Totals: pass:1 fail:0 xfail:0 xpass:0 skip:0 error:0" <<-'EOF'
	1..1
	begin 1 one
	  KTAP version 1
	  1..1
	  ok 1 sub
	ok 1 one
	EOF
}

@test "bats: pass, fail, skip, and a test killed" {
	bats_file <<-'EOF'
	TEST "one" { true; }
	TEST "two # x" { false; }
	TEST "three" { skip "no PMU"; }
	TEST "four" { kill -9 $$; }
	TEST "five" { true; }
	EOF
	bats_formats 1 "KTAP version 1
1..5
ok 1 one
# (in test file test.bats, line 2)
#   \`@test \"two # x\" { false; }' failed
not ok 2 two _ x
ok 3 three # SKIP no PMU
# the test died: it began and never ended
not ok 4 four
# bats warning: Executed 4 instead of expected 5 tests
ok 5 five
# Totals: pass:2 fail:2 xfail:0 xpass:0 skip:1 error:0"
}

@test "bats: an empty file, only skips, a syntax error" {
	: >test.bats
	bats_formats 1 "KTAP version 1
1..1
not ok 1 there is no test
# Totals: pass:0 fail:1 xfail:0 xpass:0 skip:0 error:0"

	bats_file <<<'TEST "one" { skip "no PMU"; }'
	bats_formats 4 "KTAP version 1
1..1
ok 1 one # SKIP no PMU
# Totals: pass:0 fail:0 xfail:0 xpass:0 skip:1 error:0"

	bats_file <<<$'TEST "one" {\nif ;\n}'
	run -1 bash -o pipefail -c 'bats --formatter "$0" test.bats 2>&1 | cat' "$FORMATTER"
	[[ $output == *$'\n'"not ok 1 "*"fail:1 "* ]] || fail "$output"
}

@test "bats: a test program's results are subtests" {
	bats_file <<-EOF
	load "$TESTDIR/lib/common"
	TEST "one" { ktap_run printf '%s\n' 'TAP version 13' '1..1' 'ok 1 sub' '# Totals'; }
	EOF
	bats_formats 0 "KTAP version 1
1..1
  KTAP version 1
  1..1
  ok 1 sub
  # Totals
ok 1 one
# Totals: pass:1 fail:0 xfail:0 xpass:0 skip:0 error:0"
}
