#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# scripts/coverage-table, with results made up here.

setup() {
	load ../lib/common
	need_srcdir
	[[ -e $SRCDIR/scripts/coverage-table ]] || skip "no scripts in the source tree"
	cd "$BATS_TEST_TMPDIR"
	mkdir results
	# As a full run of scripts/check leaves them: other suites before and after, in any order.
	guest newest amd64 7.2.3-cloud-amd64 x86_64 "" " # SKIP needs exact time (the lab)"
	guest 6.12 amd64 6.12.9 x86_64 "" " # SKIP needs exact time (the lab)"
	guest 6.12 arm64 6.12.9 aarch64 \
		" # SKIP needs timers (callbacks, since 5.15); probed by asking: No such file"
	printf '%s\n' 'KTAP version 1' 1..1 'ok 1 build build/arm64' >results/build-build-arm64.ktap
}

guest() { # KERNEL ARCH RELEASE MACHINE TIMER SLOPE
	cat >"results/lab-$1-$2.ktap" <<-END
	KTAP version 1
	1..2
	# cli/many.bats
	  KTAP version 1
	  1..1
	  ok 1 timer # SKIP not one of ours
	ok 1 cli/many
	# stats/stats.bats
	  KTAP version 1
	  1..2
	    KTAP version 1
	    1..3
	    # counted on $3 $4; should this be killed, the switch is put back by: nothing
	    ok 1 xdp
	    ok 2 timer${5-}
	    # Totals: pass:2 fail:0 xfail:0 xpass:0 skip:0 error:0
	  ok 1 what is counted
	    KTAP version 1
	    1..2
	    # howlong on $3 $4; should this be killed, the switch is put back by: nothing
	    # slope: an empty program takes 95 ns
	    ok 1 slope${6-}
	    # slope took 1200 ms
	    ok 2 bounds
	    ok 3 grows
	    # Totals: pass:2 fail:0 xfail:0 xpass:0 skip:0 error:0
	  ok 2 how long runs take
	ok 2 stats/stats
	# Totals: pass:2 fail:0 xfail:0 xpass:0 skip:0 error:0
	END
}

table() {
	run -0 "$SRCDIR/scripts/coverage-table" --output coverage.rst results
}

line() { # CASE
	grep "^$1 " coverage.rst | tr -s ' ' | sed 's/ $//'
}

@test "coverage-table: kernels in order, what ran and what did not, and why" {
	table
	[[ $(grep -E '^ +6' coverage.rst | tr -s ' ' | sort -u) == " 6.12 7.2" ]] ||
		fail "$(cat coverage.rst)"
	[[ $(line case | head -n 1) == "case arm64 amd64 amd64" ]] || fail "$(line case)"
	[[ $(line counted/xdp) == "counted/xdp yes yes yes" ]] || fail "$(line counted/xdp)"
	[[ $(line counted/timer) == "counted/timer a yes yes" ]] || fail "$(line counted/timer)"
	[[ $(line howlong/slope) == "howlong/slope yes b b" ]] || fail "$(line howlong/slope)"
	# What the probe was told is no reason; what ran everywhere is only named.
	grep -qx '  needs timers (callbacks, since 5.15)' coverage.rst
	grep -qx '  needs exact time (the lab)' coverage.rst
	grep -qx '[*] ``howlong`` (2): bounds, grows' coverage.rst
	[[ ! $(line howlong/bounds) ]]
	tr '\n' ' ' <coverage.rst | grep -q ' on 6.12.9 (arm64), 6.12.9 (amd64), 7.2.3-cloud-amd64[.] '
	[[ ! $(type -P rst2html) ]] || rst2html --strict coverage.rst >/dev/null
}

@test "coverage-table: nothing is written of failures, or of results that are not all there" {
	local file=results/lab-6.12-arm64.ktap

	table
	cp coverage.rst before
	cp "$file" whole
	for edit in 's/ok 1 xdp/not &/' '/Totals/d' '/ok 3 grows/d' '/howlong on/,$d'; do
		sed "$edit" whole >"$file"
		run -1 "$SRCDIR/scripts/coverage-table" --output coverage.rst results
		[[ $output == *"$file: "* && $output == *"nothing was written"* ]] ||
			fail "$edit: $output"
		cmp before coverage.rst
	done
	rm results/lab-*
	run -1 "$SRCDIR/scripts/coverage-table" --output coverage.rst results
	[[ $output == *"no results"* ]] || fail "$output"
	run -2 "$SRCDIR/scripts/coverage-table" --nosuch
	run -2 "$SRCDIR/scripts/coverage-table" --output
	run -2 "$SRCDIR/scripts/coverage-table" results results
}
