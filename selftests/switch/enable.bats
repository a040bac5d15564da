#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# stats enable: the switch is on for as long as was asked for, and not longer, however it ends.
# shellcheck disable=SC2016,SC2034 # for other shells; used by switch.bash

load switch

# In the background, until it holds and has said so; $! is its process.
enable() { # ARG...
	# What an earlier one has said is not what this one says.
	rm -f "$T/err"
	${under-} "$BPFCOST" stats enable "$@" >"$T/out" 2>"$T/err" </dev/null 3>&- &
	await test -s "$T/err"
	await "$TOOL" on
}

ends() { # STATUS
	local rc=0

	wait $! || rc=$?
	((rc == $1)) || fail "exit status $rc, not $1: $(<"$T/out")$(<"$T/err")"
}

@test "for a time; on meanwhile, off afterwards" {
	bpfcost stats enable duration 0.05
	((status == 0)) && [[ ! -s $T/out ]] && is_off
	[[ $(<"$T/err") == "the kernel's statistics are on for 0.05 s" ]]
	bpfcost -j stats enable dur 0x1
	((status == 0)) && is_off
	json_is '.held == "fd" and .ended == "duration" and .seconds >= 1 and (has("status") | not)'
	[[ $(<"$T/err") == "the kernel's statistics are on for 1 s" ]]
	enable duration 1000
	shows 0 'on, held by 1 process' ".holders[0].pid == $! and .sysctl == 0"
	[[ $(<"$SYSCTL") == 0 ]]
	# Nothing is left of its privileges: to let go of an fd takes none.
	[[ $("$TOOL" caps $!) == 0000000000000000 ]]
	kill -TERM $!
	ends 0
	is_off
}

@test "until SIGINT, SIGTERM or SIGHUP; SIGKILL leaves nothing on" {
	local signal

	for signal in INT TERM HUP; do
		enable
		[[ $(<"$T/err") == "the kernel's statistics are on until interrupted" ]]
		kill "-$signal" $!
		ends 0
		is_off
	done
	enable
	kill -KILL $!
	ends 137
	is_off
	[[ $(<"$SYSCTL") == 0 ]]
	# nohup: the terminal goes, it stays.
	trap '' HUP
	enable duration 1000
	trap - HUP
	kill -HUP $!
	sleep 0.3
	is_on
	kill -TERM $!
	ends 0
	is_off
}

@test "SIGKILL at any moment leaves nothing on" {
	local i

	for ((i = 0; i < 20; i++)); do
		"$BPFCOST" stats enable -- sleep 0.01 >/dev/null 2>&1 3>&- &
		# From before it has done anything to after its end.
		sleep "0.$(printf %03d $((i * 2)))"
		kill -KILL $! 2>/dev/null || :
		wait $! 2>/dev/null || :
	done
	is_off
	[[ $(<"$SYSCTL") == 0 ]]
	shows 0 off '.holders == []'
}

@test "while a command runs, whose status is ours" {
	local n

	bpfcost stats enable -- "$TOOL" on
	((status == 0)) && [[ ! -s $T/out ]] && is_off
	[[ $(<"$T/err") == "the kernel's statistics are on while '$TOOL' runs" ]]
	for n in 1 3 126 255; do
		bpfcost stats enable -- sh -c 'exit "$0"' "$n"
		((status == n)) || fail "$n: $status"
	done
	bpfcost stats enable -- sh -c 'kill -KILL $$'
	((status == 137))
	bpfcost stats enable -- /nonexistent
	((status == 127)) && [[ $(<"$T/err") == *"cannot run '/nonexistent': No such file or directory (ENOENT)"* ]]
	bpfcost stats enable -- "$T"
	((status == 126))
	is_off
	# Options and words behind -- are the command's.
	bpfcost stats enable -- printf '%s,' -j -- duration
	[[ $(<"$T/out") == '-j,--,duration,' ]]
	# The runs of programs meanwhile are counted, for tools that only read.
	bpfcost stats enable duration 1000 -- "$BPFCOST" -j stats show
	((status == 0)) && json_is '.state == "held" and .holders[0].comm == "bpfcost"'
	[[ $(<"$T/err") == *"' runs, at most for 1000 s" ]]
}

@test "its status is ours also where our caller ignores what becomes of children" {
	local under="$TOOL ignoring 17"

	bpfcost stats enable -- sh -c 'exit 7'
	((status == 7)) || fail "status $status"
	# It is the command's to ignore as well.
	bpfcost stats enable -- grep SigIgn /proc/self/status
	[[ $(<"$T/out") == SigIgn:*1???? ]] || fail "$(<"$T/out")"
}

@test "JSON: one document, the command's output is on stderr" {
	bpfcost -j stats enable -- sh -c 'echo to stdout; echo to stderr >&2; exit 3'
	((status == 3))
	json_is '.held == "fd" and .ended == "command" and .status == 3 and .seconds >= 0'
	[[ $(<"$T/err") == *'to stdout'* && $(<"$T/err") == *'to stderr'* ]]
	bpfcost -p stats enable -- true
	json_is '.status == 0'
	(($(wc -l <"$T/out") == 6))
	"$BPFCOST" -j stats enable >"$T/out" 2>"$T/err" 3>&- &
	await "$TOOL" on
	kill -INT $!
	ends 0
	json_is '.ended == "signal"'
	is_off
}

@test "the command has the caller's privileges, and not the fd, unless it inherits it" {
	local own

	own=$("$TOOL" caps self)
	bpfcost stats enable -- sh -c '"$0" fds; "$0" caps self; "$0" caps $PPID' "$TOOL"
	# Nothing is kept but what handing on signals takes: CAP_KILL.
	[[ $(<"$T/out") == "$own"$'\n'0000000000000020 ]] || fail "$(<"$T/out")"
	bpfcost stats enable inherit -- "$TOOL" fds
	((status == 0)) && [[ $(<"$T/out") == +([0-9]) ]]
	[[ $(<"$T/err") == "the kernel's statistics are on while '$TOOL' runs; it inherits fd $(<"$T/out")" ]]
	# Standard streams that are closed do not become the fd.
	for fds in 0 1 2 012; do
		status=0
		"$TOOL" closed "$fds" "$BPFCOST" stats enable -- \
			sh -c '"$0" fds >"$1"; [ ! -e /proc/self/fd/"$2" ]' "$TOOL" "$T/fds" \
			"${fds:0:1}" >"$T/out" 2>"$T/err" || status=$?
		((status == 0)) && [[ ! -s $T/fds ]] || fail "$fds: $status $(<"$T/fds")"
	done
	is_off
}

@test "a command that has inherited the fd holds, also when we are gone" {
	enable inherit -- sh -c 'echo $$ >"$0"; exec sleep 1000' "$T/pid"
	await test -s "$T/pid"
	kill -KILL $!
	ends 137
	is_on
	shows 0 'on, held by 1 process' ".holders[0].pid == $(<"$T/pid") and .fds == 1"
	kill -KILL "$(<"$T/pid")"
	is_off
	# And one that has not does not.
	rm "$T/pid"
	enable -- sh -c 'echo $$ >"$0"; exec sleep 1000' "$T/pid"
	await test -s "$T/pid"
	kill -KILL $!
	ends 137
	is_off
	kill -KILL "$(<"$T/pid")"
}

@test "signals are handed on to the command, and the switch stays on until it ends" {
	local signal n=0

	cat >"$T/stubborn" <<-'EOF'
		#!/bin/bash
		n=0
		trap 'n=$((n + 1)); echo got "$n"' INT TERM HUP
		echo ready
		for ((i = 0; i < 3000 && n < 3; i++)); do
			sleep 0.02
		done
		"$TOOL" on || exit 99
		exit 42
	EOF
	chmod +x "$T/stubborn"
	export TOOL
	"$TOOL" default "$BPFCOST" stats enable -- "$T/stubborn" >"$T/out" 2>"$T/err" 3>&- &
	await grep -q ready "$T/out"
	for signal in TERM HUP INT; do
		kill "-$signal" $!
		n=$((n + 1))
		await grep -q "got $n" "$T/out"
		((n == 3)) || is_on
	done
	ends 42
	is_off
	# A command that it ends.
	enable -- sleep 1000
	kill -TERM $!
	ends 143
	is_off
}

@test "a key on the terminal reaches the command once" {
	cat >"$T/counts" <<-'EOF'
		#!/bin/bash
		n=0
		trap 'n=$((n + 1))' INT
		trap 'echo "counted $n"; exit 42' TERM
		echo ready
		for ((i = 0; i < 3000; i++)); do
			((n == 0)) || [[ $said ]] || { said=1 && echo interrupted; }
			sleep 0.02
		done
	EOF
	chmod +x "$T/counts"
	# ^C, then a signal that is sent to us only.
	"$TESTDIR/counts/pty" 24 120 "$BPFCOST" stats enable -- "$T/counts" <<-EOF
		expect ready
		send $(printf '\003')
		expect interrupted
		signal 15
		expect counted 1
		end 42
	EOF
	# A command that has left the job does not get what is for the job.
	"$TESTDIR/counts/pty" 24 120 "$BPFCOST" stats enable -- "$TOOL" session \
		sh -c 'echo ready; exec sleep 1000' <<-EOF
		expect ready
		send $(printf '\003')
		end 130
	EOF
	is_off
}

@test "after the duration a command goes on without" {
	bpfcost -j stats enable duration 0.2 -- \
		sh -c 'while "$0" on; do sleep 0.05; done; exit 5' "$TOOL"
	((status == 5))
	json_is '.ended == "duration" and .status == 5'
	# And signals reach it all the same.
	"$BPFCOST" stats enable duration 0.05 -- sh -c 'touch "$0"; exec sleep 1000' "$T/started" \
		>"$T/out" 2>"$T/err" 3>&- &
	await test -e "$T/started"
	is_off
	kill -TERM $!
	ends 143
}

@test "beside others: nobody switches anybody off" {
	local first

	echo 1 >"$SYSCTL"
	bpfcost stats enable duration 0.05
	is_on
	[[ $(<"$SYSCTL") == 1 ]]
	enable
	first=$!
	echo 0 >"$SYSCTL"
	is_on
	enable
	shows 0 'on, held by 2 processes' '.fds == 2'
	kill -KILL "$first"
	wait "$first" || :
	is_on
	kill -TERM $!
	ends 0
	is_off
}

@test "who may not is told so" {
	local name

	under="$TOOL nobody"
	bpfcost stats enable duration 0.05
	((status == 1)) && [[ ! -s $T/out && $(<"$T/err") == "Error: cannot switch the kernel's statistics on: Operation not permitted (EPERM); it needs CAP_SYS_ADMIN, for example: sudo" ]]
	bpfcost -j stats enable -- touch "$T/ran"
	((status == 1)) && json_is '.error | test("CAP_SYS_ADMIN")'
	[[ ! -e $T/ran && ! -s $T/err ]]
	# What somebody else holds could end at any time.
	echo 1 >"$SYSCTL"
	bpfcost stats enable -- touch "$T/ran"
	((status == 1)) && [[ $(<"$T/err") == "Error: cannot hold the kernel's statistics on: it needs CAP_SYS_ADMIN, for example: sudo; at this moment they are on, held by somebody else" ]]
	echo 0 >"$SYSCTL"
	for name in EPERM EMFILE EBUSY; do
		under="$TOOL without $name"
		bpfcost stats enable -- touch "$T/ran"
		((status == 1)) && [[ $(<"$T/err") == *"($name)"* ]] || fail "$name: $(<"$T/err")"
	done
	under="$TOOL files 5"
	bpfcost stats enable -- touch "$T/ran"
	((status == 1)) && [[ $(<"$T/err") == *"(EMFILE)"* ]]
	[[ ! -e $T/ran ]]
	is_off
	under="$TOOL files 16"
	bpfcost stats enable -- "$TOOL" on
	((status == 0))
	# By an fd it needs neither the sysctl nor /proc.
	for under in "$TOOL readonly" "$TOOL noproc" "$TOOL pidns"; do
		! is_sanitized || [[ $under == *readonly ]] || continue
		bpfcost stats enable -- "$TOOL" on
		((status == 0)) || fail "$under: $(<"$T/err")"
	done
}

@test "kernels without stats fds: the sysctl is set, and set back" {
	under="$TOOL without EINVAL"
	bpfcost -j stats enable -- sh -c 'cat "$0"; "$1" on; exit $?' "$SYSCTL" "$TOOL"
	((status == 0)) && [[ $(<"$SYSCTL") == 0 ]]
	json_is '.held == "sysctl" and .status == 0'
	[[ $(head -n 1 "$T/err") == "the kernel's statistics are on while 'sh' runs: held by the sysctl, as this kernel has no stats fds (5.8); if bpfcost is killed it stays on, and is switched off with: sysctl kernel.bpf_stats_enabled=0" ]]
	[[ $(tail -n 2 "$T/err") == $'1\nthe sysctl kernel.bpf_stats_enabled is set back to 0' ]]
	is_off
	# It keeps what it takes to set it back, CAP_SYS_ADMIN, and what handing on signals takes.
	bpfcost stats enable -- sh -c '"$0" caps $PPID' "$TOOL"
	[[ $(<"$T/out") == 0000000000200020 ]]
	# By whatever it is ended, but for SIGKILL. A script's jobs ignore SIGINT and SIGQUIT.
	under="$TOOL without EINVAL $TOOL default"
	for signal in INT TERM HUP QUIT USR1 USR2 ALRM VTALRM PROF XCPU RTMIN; do
		enable
		[[ $(<"$SYSCTL") == 1 ]]
		shows 0 'on, held by the sysctl only, for a bpfcost that is running' .observed
		kill "-$signal" $!
		ends 0
		[[ $(<"$SYSCTL") == 0 ]]
	done
	# What is ignored ends nothing.
	under="$TOOL without EINVAL $TOOL ignoring 10"
	enable
	kill -USR1 $!
	sleep 0.3
	[[ $(<"$SYSCTL") == 1 ]]
	kill -TERM $!
	ends 0
	[[ $(<"$SYSCTL") == 0 ]]
	under="$TOOL without EINVAL"
	is_off
	# What was 1 stays 1; what somebody changes meanwhile stays so.
	echo 1 >"$SYSCTL"
	bpfcost stats enable duration 0.05
	((status == 0)) && [[ $(<"$SYSCTL") == 1 && $(wc -l <"$T/err") == 1 ]]
	[[ $(<"$T/err") == *'on already by the sysctl, which stays as it is; this kernel has no stats fds (5.8)' ]]
	echo 0 >"$SYSCTL"
	enable
	echo 0 >"$SYSCTL"
	kill -TERM $!
	ends 0
	[[ $(<"$SYSCTL") == 0 && $(<"$T/err") == *'was set to 0 by somebody else meanwhile' ]]
	# There is no fd to inherit.
	bpfcost stats enable inherit -- true
	((status == 1)) && [[ $(<"$T/err") == *'there is no stats fd to inherit'* ]]
	[[ $(<"$SYSCTL") == 0 ]]
}

@test "kernels without stats fds: two at once, killed, refused" {
	local first

	under="$TOOL without EINVAL"
	enable
	first=$!
	enable
	kill -TERM "$first"
	wait "$first"
	[[ $(<"$SYSCTL") == 1 ]]
	is_on
	kill -TERM $!
	ends 0
	[[ $(<"$SYSCTL") == 0 ]]
	# The first is killed: the second sets back what it has left.
	enable
	first=$!
	enable
	kill -KILL "$first"
	wait "$first" || :
	[[ $(<"$SYSCTL") == 1 ]]
	kill -TERM $!
	ends 0
	[[ $(<"$SYSCTL") == 0 ]]
	# The only one is killed: it is as it had said, and seen at a glance.
	enable
	kill -KILL $!
	ends 137
	shows 0 'on, held by the sysctl only; nobody known is measuring; switch it off with: sysctl kernel.bpf_stats_enabled=0' \
		'.state == "sysctl only"'
	echo 0 >"$SYSCTL"
	# A reader of its output that goes away ends neither it nor the switch.
	${under-} "$BPFCOST" stats enable duration 0.2 2> >(:)
	[[ $(<"$SYSCTL") == 0 ]]

	under="$TOOL readonly $TOOL without EINVAL"
	bpfcost stats enable -- touch "$T/ran"
	((status == 1)) && [[ $(<"$T/err") == "Error: cannot switch the kernel's statistics on: the kernel has no stats fds (5.8), and the sysctl kernel.bpf_stats_enabled cannot be set: Read-only file system (EROFS); where it may be written: sysctl kernel.bpf_stats_enabled=1" ]]
	under="$TOOL without EINVAL $TOOL nobody"
	bpfcost stats enable -- touch "$T/ran"
	((status == 1)) && [[ $(<"$T/err") == *'(EACCES); it needs CAP_SYS_ADMIN'* ]]
	under="$TOOL noproc $TOOL without EINVAL"
	bpfcost stats enable -- touch "$T/ran"
	((status == 1)) && [[ $(<"$T/err") == *'(ENOENT); it is in /proc, and kernels before 5.1'* ]]
	[[ ! -e $T/ran ]]
}

@test "output that cannot be written" {
	status=0
	"$BPFCOST" -j stats enable duration 0.05 >/dev/full 2>"$T/err" || status=$?
	((status == 1)) && [[ $(<"$T/err") == *'Error: cannot write the result: No space left'* ]]
	status=0
	"$BPFCOST" -j stats enable -- sh -c 'exit 7' >/dev/full 2>"$T/err" || status=$?
	((status == 7))
	# Nobody reads it any more: the command runs to its end, and its status is ours.
	"$BPFCOST" stats enable -- sh -c 'sleep 0.2; "$0" on && exit 7' "$TOOL" 2> >(:) || status=$?
	((status == 7))
	is_off
}
