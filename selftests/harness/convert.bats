#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Results as others read them: JUnit's XML, and results.yaml for tmt.

setup() {
	load ../lib/common
	CONVERT=$TESTDIR/lib/ktap-convert
	cd "$BATS_TEST_TMPDIR"
	cat >in <<-'EOF'
	KTAP version 1
	1..4
	# a/x.bats
	  KTAP version 1
	  1..5
	  ok 1 passes
	  ok 2 skips # SKIP no "PMU" & no <clock>
	  # rule: 1 < 2
	  # expected: "yes"
	  not ok 3 fails
	  # known
	  ok 4 known # XFAIL known failure: since the flood
	    KTAP version 1
	    1..2
	    ok 1 p
	    # why
	    not ok 2 q
	  not ok 5 with subtests
	  # Totals: pass:2 fail:2 xfail:1 xpass:0 skip:1 error:0
	not ok 1 a/x
	ok 2 a/y # SKIP none of it
	  1..2
	  ok 1 p
	# planned 2 tests, got 1
	not ok 3 a/short
	# exit status 1, and no result
	not ok 4 a/dead
	# Totals: pass:0 fail:3 xfail:0 xpass:0 skip:1 error:0
	# 4 passed, 4 failed, 2 skipped
	EOF
}

same() { # EXPECTED
	[[ $output == "$1" ]] || fail "got:"$'\n'"$output"$'\n'"expected:"$'\n'"$1"
}

@test "JUnit" {
	run -0 "$CONVERT" junit 'lab/6.12/arm64' <in
	same '<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="10" failures="4" skipped="2" errors="0">
<testsuite name="lab/6.12/arm64" tests="10" failures="4" skipped="2" errors="0">
<testcase classname="a/x" name="passes"/>
<testcase classname="a/x" name="skips"><skipped message="no &quot;PMU&quot; &amp; no &lt;clock&gt;"/></testcase>
<testcase classname="a/x" name="fails"><failure message="rule: 1 &lt; 2">rule: 1 &lt; 2
expected: &quot;yes&quot;
</failure></testcase>
<testcase classname="a/x" name="known"/>
<testcase classname="a/x/with subtests" name="p"/>
<testcase classname="a/x/with subtests" name="q"><failure message="why">why
</failure></testcase>
<testcase classname="a" name="y"><skipped message="none of it"/></testcase>
<testcase classname="a/short" name="p"/>
<testcase classname="a" name="short"><failure message="planned 2 tests, got 1">planned 2 tests, got 1
</failure></testcase>
<testcase classname="a" name="dead"><failure message="exit status 1, and no result">exit status 1, and no result
</failure></testcase>
</testsuite>
</testsuites>'
}

@test "tmt" {
	run -0 "$CONVERT" tmt results.ktap <in
	same '- name: "/a/x/passes"
  result: pass
  log:
    - results.ktap
- name: "/a/x/skips"
  result: skip
  note:
    - "no \"PMU\" & no <clock>"
  log:
    - results.ktap
- name: "/a/x/fails"
  result: fail
  note:
    - "rule: 1 < 2"
    - "expected: \"yes\""
  log:
    - results.ktap
- name: "/a/x/known"
  result: pass
  note:
    - "known failure: since the flood"
  log:
    - results.ktap
- name: "/a/x/with subtests/p"
  result: pass
  log:
    - results.ktap
- name: "/a/x/with subtests/q"
  result: fail
  note:
    - "why"
  log:
    - results.ktap
- name: "/a/y"
  result: skip
  note:
    - "none of it"
  log:
    - results.ktap
- name: "/a/short/p"
  result: pass
  log:
    - results.ktap
- name: "/a/short"
  result: fail
  note:
    - "planned 2 tests, got 1"
  log:
    - results.ktap
- name: "/a/dead"
  result: fail
  note:
    - "exit status 1, and no result"
  log:
    - results.ktap'
}

@test "results that end too early are a failure, and so are none" {
	run -0 "$CONVERT" tmt < <(head -n 7 in)
	same '- name: "/the results end too early"
  result: fail
  note:
    - "planned 4, got 0"
    - "a/x.bats"'
	run -0 "$CONVERT" junit </dev/null
	[[ $output == *'tests="1" failures="1" '*'planned 0, got 0'* ]] || fail "$output"
}

@test "a test program that cannot run is one skip" {
	run -0 "$CONVERT" tmt < <(printf '%s\n' 'KTAP version 1' '1..0 # SKIP not root')
	same '- name: "/all"
  result: skip
  note:
    - "not root"'
}

@test "the numbers are those of the runner" {
	local counts

	. "${SRCDIR:?}/scripts/lib.sh"
	counts=$(ktap_count in)
	[[ $counts == "4 4 2" ]] || fail "$counts"
}

@test "wrong usage" {
	run -2 "$CONVERT"
	run -2 "$CONVERT" html <in
}

# Those who run selftests/stats from outside, with a suite made up here.
outside() { # DIRECTORY
	mkdir -p "$1/stats" "$1/lib" data
	cp "$TESTDIR/lib/"{ktap-formatter,ktap-convert,common.bash} "$1/lib/"
	cp "$TESTDIR/stats/"{ksft_runner.sh,tmt.sh} "$1/stats/"
	sed 's/^TEST /@test /' >"$1/stats/stats.bats"
	# What tells that it has been built.
	printf '#!/bin/sh\n' >"$1/stats/refcount"
	chmod +x "$1/stats/refcount"
}

@test "kselftest: exit statuses 0 passed, 1 failed, 4 skipped" {
	outside t <<<'TEST "p" { true; }'
	cd t/stats
	# As the kernel's runner calls it for a file that cannot be executed.
	run -0 ./ksft_runner.sh ./stats.bats
	[[ $output == *'ok 1 p'* ]] || fail "$output"
	sed 's/^TEST /@test /' >stats.bats <<-'EOF'
	load ../lib/common
	TEST "p" { true; }
	TEST "f" { ktap_run bash -c "printf '%s\n' 1..2 'ok 1 x' 'not ok 2 y'; exit 1"; }
	EOF
	run -1 ./ksft_runner.sh ./stats.bats
	sed 's/^TEST /@test /' >stats.bats <<-'EOF'
	load ../lib/common
	TEST "s" { ktap_run bash -c "echo '1..0 # SKIP not root'; exit 4"; }
	TEST "all" { ktap_run bash -c "printf '%s\n' 1..1 'ok 1 x # SKIP no veth'; exit 4"; }
	EOF
	run -4 ./ksft_runner.sh ./stats.bats
	[[ $output == *'ok 1 s # SKIP not root'* ]] || fail "$output"
	# Where there is no bats, and where it was not installed whole.
	run -4 env PATH="$BATS_TEST_TMPDIR" "$BASH" ./ksft_runner.sh ./stats.bats
	[[ $output == *'1..0 # SKIP needs bats'* ]] || fail "$output"
	rm ../lib/ktap-formatter
	run -4 ./ksft_runner.sh ./stats.bats
	[[ $output == *'1..0 # SKIP needs ktap-formatter'* ]] || fail "$output"
}

@test "tmt: the suite leaves results.yaml and the log where tmt looks" {
	outside t <<-'EOF'
	TEST "p" { true; }
	TEST "f" { echo the reason; false; }
	TEST "s" { skip "no PMU"; }
	EOF
	cd t/stats
	TMT_TEST_DATA=$BATS_TEST_TMPDIR/data run -0 ./tmt.sh
	cd ../../data
	output=$(grep -A1 name: results.yaml | grep -v '^--')
	same '- name: "/p"
  result: pass
- name: "/f"
  result: fail
- name: "/s"
  result: skip'
	grep -qx '    - results.ktap' results.yaml
	grep -qx 'not ok 2 f' results.ktap
	run -1 env -u TMT_TEST_DATA ../t/stats/tmt.sh
	# All that is needed is below what tmt takes for the root.
	[[ $(<"$TESTDIR/.fmf/version") == 1 ]]
}

# A suite made up here, with the runner beside it.
made_up() {
	mkdir -p t/lib t/one
	cp "$TESTDIR/run" t/
	cp "$TESTDIR/lib/ktap-formatter" "$TESTDIR/lib/ktap-convert" "$TESTDIR/lib/common.bash" t/lib/
	sed 's/^TEST /@test /' >t/one/a.bats
}

@test "the runner writes both, beside what it prints" {
	made_up <<-'EOF'
	TEST "p" { true; }
	TEST "s" { skip "no PMU"; }
	TEST "f" { echo the reason; false; }
	EOF
	run -1 t/run --junit j.xml --tmt results.yaml --where lab/6.1/amd64
	[[ $output == *'# 1 passed, 1 failed, 1 skipped' ]] || fail "$output"
	grep -q '^<testsuite name="lab/6.1/amd64" tests="3" failures="1" skipped="1" ' j.xml
	grep -q '^<testcase classname="one/a" name="f"><failure message=".*the reason' <(tr '\n' ' ' \
		<j.xml | sed 's/<testcase/\n&/g')
	grep -qx -- '- name: "/one/a/s"' results.yaml
	grep -qx -- '    - "no PMU"' results.yaml
	# The exit status is that of the tests, and nothing is left behind.
	made_up <<<'TEST "p" { true; }'
	run -0 env TMPDIR="$PWD/t/lib" t/run --junit j.xml
	[[ $(ls t/lib) == "$(printf '%s\n' common.bash ktap-convert ktap-formatter)" ]]
	run -2 t/run --junit /nonexistent/j.xml
	[[ $output == *'/nonexistent/j.xml: cannot be written'* ]] || fail "$output"
	run -2 t/run --junit
}

@test "the runner writes what there is when it is ended" {
	made_up <<-'EOF'
	TEST "p" { true; }
	EOF
	cp t/one/a.bats t/one/b.bats
	sed -i 's/{ true; }/{ : >"$BATS_RUN_TMPDIR\/..\/now"; sleep 60; }/' t/one/b.bats
	TMPDIR=$PWD t/run --junit j.xml >out 3>&- &
	for ((i = 0; i < 300; i++)); do
		[[ ! -e now ]] || break
		sleep 0.1
	done
	kill -TERM $!
	wait $! || rc=$?
	((rc == 143)) || fail "exit status $rc"
	grep -q 'classname="one/a" name="p"/>' j.xml
	grep -q 'the results end too early' j.xml
}
