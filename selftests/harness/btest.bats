#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the runner of selftests/stats' cases does with what cases do, and with a machine that is not
# as it should be. The cases are those of sample.c.

setup() {
	load ../lib/common
	need_root
	SAMPLE=$TESTDIR/harness/sample
	SYSCTL=/proc/sys/kernel/bpf_stats_enabled
	HINT='sysctl -w kernel.bpf_stats_enabled=0'
	local why

	# Where the switch is not ours, or the kernel has none.
	why=$("$SAMPLE" passes) || skip "${why#*SKIP }"
}

teardown() {
	[[ ! ${PIDS-} ]] || kill -KILL $PIDS 2>/dev/null || :
	[[ ! ${CHANGED-} ]] || echo 0 >"$SYSCTL"
}

# Runs cases: the exit status, and what is printed but the first note and the totals.
sample() { # STATUS ARG...
	local want=$1

	shift
	run "$SAMPLE" "$@"
	((status == want)) || fail "exit status $status, expected $want:"$'\n'"$output"
}

has() { # TEXT...
	local text

	for text; do
		[[ $output == *"$text"* ]] || fail "got:"$'\n'"$output"$'\n'"expected: $text"
	done
}

# The switch is off, and nobody is in the way: a case runs.
all_is_well() {
	[[ $(<"$SYSCTL") == 0 ]] || fail "the sysctl is $(<"$SYSCTL")"
	sample 0 passes
	has 'ok 1 passes'
}

# Waits until COMMAND succeeds.
soon() { # COMMAND...
	local i

	for ((i = 0; i < 300; i++)); do
		"$@" && return
		sleep 0.1
	done
	fail "30 s, and not yet: $*"
}

@test "a failure stands alone: rule, what was expected, what was seen, the kernel" {
	local kernel

	kernel="# kernel: $(uname -rm)"
	sample 1 fails fails-errno fails-switch
	has "# fails
# rule: the sample does what it says
# expected: the answer: 42
# seen: 41
$kernel
not ok 1 fails" \
		"# fails-errno
# rule: the sample does what it says
# expected: the call: EPERM (Operation not permitted)
# seen: EINVAL (Invalid argument)
$kernel
not ok 2 fails-errno" \
		"# fails-switch
# rule: the sample does what it says
# expected: the switch is off while I hold an fd
# seen: it is on (a run of a program was counted); the sysctl reads 0
$kernel
not ok 3 fails-switch" \
		'# Totals: pass:0 fail:3 xfail:0 xpass:0 skip:0 error:0'
	all_is_well
}

@test "a case that crashes, and one that hangs, are failures that say so" {
	sample 1 crashes hangs
	has 'expected: exit status 0
# seen: wait status 0xb' 'not ok 1 crashes' 'expected: an end within 1 s
# seen: none' 'not ok 2 hangs'
	all_is_well
}

@test "what a case leaves behind ends with it: processes, the sysctl" {
	sample 0 leaves-process leaves-sysctl passes
	has 'ok 1 passes' 'ok 2 leaves-process' 'ok 3 leaves-sysctl'
	[[ ! $(pgrep -f "$SAMPLE") ]] || fail "$(pgrep -af "$SAMPLE")"
	all_is_well
}

@test "skips: a reason, and exit status 4 if there is nothing else" {
	sample 4 skips
	has 'ok 1 skips # SKIP needs the moon, which is _1'
	sample 0 skips passes
	has 'pass:1 fail:0 xfail:0 xpass:0 skip:1'
}

@test "cases by name, by pattern, by tag; a list, and what is missing for which" {
	sample 0 'p*'
	has '1..1' 'ok 1 passes'
	sample 0 --tag good
	has '1..4' 'ok 1 passes' 'ok 2 skips' 'ok 3 leaves-process'
	sample 0 --tag quick
	has '1..1' 'ok 1 passes'
	sample 2 --tag goo
	has 'no case has such a name or tag'
	sample 2 pass
	sample 2 --nonsense
	sample 0 --list
	has 'passes                   the sample does what it says'
	sample 0 --needs 'f*' passes
	[[ $output == "passes                   can run
fails                    can run
fails-errno              can run
fails-switch             can run" ]] || fail "$output"
}

@test "known failures: XFAIL with the reason; a pass then is a failure" {
	local known=$BATS_TEST_TMPDIR/known

	cat >"$known" <<-EOF
	# comment
	sample fails $(uname -r)?$(uname -m) since the flood
	sample fails-* 1.0.0?vax not here
	other fails-errno * another program
	sample passes * once upon a time
	EOF
	sample 0 --known-failures "$known" fails
	has 'ok 1 fails # XFAIL known failure: since the flood' '# expected: the answer: 42' \
		'pass:0 fail:0 xfail:1 xpass:0 skip:0'
	sample 1 --known-failures "$known" fails-errno
	has 'not ok 1 fails-errno'
	STATS_KNOWN_FAILURES=$known sample 1 passes
	has '# passes: passes, but is listed as a known failure: once upon a time' \
		'not ok 1 passes' 'xfail:0 xpass:1'
}

@test "strangers that hold the switch are named, and left alone" {
	local in out line

	coproc "$SAMPLE" hold 2
	PIDS=$COPROC_PID in=${COPROC[1]} out=${COPROC[0]}
	read -r line <&"$out"
	[[ $line == holding ]]
	sample 4 passes
	[[ $output == "KTAP version 1
1..0 # SKIP the switch is held by pid $PIDS (sample) with 2 fds; end that first, or its runs would \
be disturbed" ]] || fail "$output"
	# It still holds.
	kill -0 "$PIDS"
	exec {in}>&-
	wait "$PIDS"
	PIDS=''
	all_is_well
}

@test "a sysctl that is 1 is left alone, with a note how to change that" {
	CHANGED=1
	echo 1 >"$SYSCTL"
	sample 4 passes
	[[ $output == "KTAP version 1
1..0 # SKIP kernel.bpf_stats_enabled is 1, so somebody may be measuring; to run the tests: $HINT" \
		]] || fail "$output"
	[[ $(<"$SYSCTL") == 1 ]]
	echo 0 >"$SYSCTL"
	all_is_well
}

@test "without privileges: a skip that says so" {
	need_command setpriv
	cp "$SAMPLE" "$BATS_TEST_TMPDIR/"
	chmod -R a+rX "$BATS_RUN_TMPDIR"
	run setpriv --reuid 65534 --clear-groups "$BATS_TEST_TMPDIR/sample" passes
	((status == 4)) || fail "exit status $status:"$'\n'"$output"
	has '1..0 # SKIP no BPF program can be loaded: ' 'needs root (CAP_BPF)'
}

# Starts the case that waits, with both the sysctl and an fd on.
start_waiting() {
	CHANGED=1
	rm -f "$BATS_TEST_TMPDIR/out"
	"$SAMPLE" waits >"$BATS_TEST_TMPDIR/out" 3>&- &
	PIDS=$!
	soon grep -qs 'waits: ready' "$BATS_TEST_TMPDIR/out"
	[[ $(<"$SYSCTL") == 1 ]]
}

@test "SIGKILL in the middle: nothing stays on, and a note said how to restore it" {
	start_waiting
	kill -KILL "$PIDS"
	soon grep -q 0 "$SYSCTL"
	grep -qF "should this be killed, the switch is put back by: $HINT" "$BATS_TEST_TMPDIR/out"
	all_is_well
}

@test "SIGKILL of all of it at once: nothing stays on but what the sysctl says" {
	local all

	start_waiting
	mapfile -t all < <(pgrep -f "^$SAMPLE waits")
	((${#all[@]} == 3)) || fail "runner, guardian and case: ${all[*]}"
	# Stopped first, so that none can do anything about the end of another.
	kill -STOP "${all[@]}"
	kill -KILL "${all[@]}"
	[[ $(<"$SYSCTL") == 1 ]]
	sample 4 passes
	has "$HINT"
	# As the note says.
	echo 0 >"$SYSCTL"
	all_is_well
}

@test "SIGINT and SIGTERM: the case fails, the sysctl is restored, the status tells" {
	local signal rc

	for signal in INT TERM; do
		start_waiting
		# bash starts background jobs with SIGINT ignored; the runner changes that.
		kill -"$signal" "$PIDS"
		rc=0
		wait "$PIDS" || rc=$?
		((rc == 128 + $(kill -l "$signal"))) || fail "SIG$signal: exit status $rc"
		grep -q 'seen: an interrupt' "$BATS_TEST_TMPDIR/out"
		all_is_well
	done
}

@test "two runs at once wait for one another" {
	local rc=0

	"$SAMPLE" passes leaves-sysctl >"$BATS_TEST_TMPDIR/one" 3>&- &
	PIDS=$!
	sample 0 passes leaves-sysctl
	wait "$PIDS" || rc=$?
	((rc == 0)) || fail "$(<"$BATS_TEST_TMPDIR/one")"
}

@test "the storm: a seed, a length, a sequence to be played again" {
	local storm=$TESTDIR/stats/storm

	STORM_SEED=7 STORM_OPS=300 STORM_TOOLS=3 run -0 "$storm"
	[[ $output =~ 'storm: seed 7: '([0-9]+)' operations of 3 tools' ]] || fail "$output"
	((BASH_REMATCH[1] >= 300 && BASH_REMATCH[1] < 2000)) || fail "$output"
	has 'ok 1 storm'
	STORM_REPLAY='0:open.0 1:sysctl1.0 2:run.0 pause 0:die.0 1:sysctl0.0 pause' run -0 "$storm"
	has 'ok 1 storm'
	STORM_REPLAY='0:fly.0' run -1 "$storm"
	has '# seen: 0:fly.0: Invalid argument' 'not ok 1 storm'
}
