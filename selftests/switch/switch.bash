# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the files of this suite share: load switch
# shellcheck disable=SC2034 # variables for the tests

load ../lib/common

TOOL=$TESTDIR/switch/tool
SYSCTL=/proc/sys/kernel/bpf_stats_enabled
T=$BATS_TEST_TMPDIR

setup_file() {
	own_switch
}

teardown_file() {
	own_no_switch
}

setup() {
	need_switch
}

teardown() {
	clean
}

# Waits until a command succeeds; a minute is long, also on a slow machine.
await() { # COMMAND...
	local deadline=$((SECONDS + 60))

	until "$@"; do
		((SECONDS < deadline)) || {
			fail "still not: $*"
			return
		}
		sleep 0.02
	done
}

# The switch is ours until own_no_switch; the reason of a skip is kept for all tests of the file.
own_switch() {
	need_root
	need_command jq
	local file=$BATS_FILE_TMPDIR/lock

	"$TOOL" lock >"$file" 3>&- &
	echo $! >"$BATS_FILE_TMPDIR/lock-pid"
	disown
	await test -s "$file"
}

need_switch() {
	local answer

	answer=$(<"$BATS_FILE_TMPDIR/lock")
	[[ $answer == locked ]] || skip "$answer"
	locked=1
}

own_no_switch() {
	local file=$BATS_FILE_TMPDIR/lock-pid

	if [[ -e $file ]]; then
		kill -KILL "$(<"$file")" || :
	fi
}

# At the end of each test: what it started is gone, the switch is off, and so is the sysctl.
clean() {
	local pid

	for pid in $(jobs -p); do
		kill -KILL "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	[[ ! ${locked-} ]] || echo 0 >"$SYSCTL"
}

# Starts a holder in the background, which is held by $holder (of it, others of its processes may be
# there); $pid is what it printed.
start() { # TOOL-ARG...
	local file=$T/started

	# What an earlier one has said is not what this one says.
	rm -f "$file"
	"$TOOL" "$@" >"$file" 3>&- &
	holder=$!
	await test -s "$file"
	pid=$(<"$file")
}

stop() { # [SIGNAL]
	kill "-${1-TERM}" "$holder"
	wait "$holder" || :
}

# Fds that are in flight, or of processes that end, may be dropped a moment later.
is_off() {
	await "$TOOL" off
}

is_on() {
	"$TOOL" on || fail "the switch is off"
}

# The command, with what it wrote in $T/out and $T/err. $under is what runs it.
bpfcost() { # ARG...
	status=0
	${under-} "$BPFCOST" "$@" >"$T/out" 2>"$T/err" </dev/null || status=$?
}

# Is it true for the one JSON document of the last command?
json_is() { # FILTER
	[[ $(jq -n "[inputs] | length == 1 and (.[0] | ($1))" "$T/out") == true ]] ||
		fail "not: $1"$'\n'"$(<"$T/out")$(<"$T/err")"
}

# `stats show`: the exit status, the first line, and what holds for the JSON; nothing on stderr but
# where it is not known.
shows() { # STATUS VERDICT FILTER
	local first error=''

	bpfcost stats show
	((status == $1)) || fail "status $status: $(<"$T/out")$(<"$T/err")"
	first=$(head -n 1 "$T/out")
	# shellcheck disable=SC2053 # a pattern
	[[ $first == $2 ]] || fail "expected '$2', got: $(<"$T/out")"
	plain=$(<"$T/out")
	[[ ! -s $T/err ]] || error=$(<"$T/err")
	bpfcost -j stats show
	((status == $1)) || fail "-j: status $status: $(<"$T/out")$(<"$T/err")"
	[[ ! -s $T/err ]] || fail "-j: wrote to stderr: $(<"$T/err")"
	json_is "(.verdict | type == \"string\") and ($3)"
	if (($1)); then
		[[ "Error: $(jq -r .error "$T/out")" == "$error" ]] || fail "error '$error'"
	else
		[[ ! $error ]] || fail "wrote to stderr: $error"
		json_is 'has("error") | not'
	fi
}

# A build with the address sanitizer looks for leaks by /proc of its own process, which it cannot
# where that is not to be seen; and without /proc it does not even find its options there.
no_leak_check() {
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
}

is_sanitized() {
	[[ $BPFCOST == */asan/* || -n ${ASAN_OPTIONS-} ]]
}
