#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# prog stats with interval, on a terminal: drawn in place, and the terminal is given back.
# shellcheck disable=SC2154 # variables of counts.bash

load counts

setup() {
	set_ids
	export TERM=xterm
	unset NO_COLOR
}

# The words of pty.c on stdin.
on_terminal() { # ROWS COLUMNS ARG...
	local rows=$1 columns=$2

	shift 2
	"$TESTDIR/counts/pty" "$rows" "$columns" "$BPFCOST" prog stats "$@" || fail "$*"
}

@test "it is drawn in place, keys sort, and q ends it" {
	local pid

	# Two programs that run all the time, each of which is first by another key.
	while :; do
		"$TARGET" run "$P/alu0" 2 >/dev/null
		"$TARGET" run "$P/alu1000" 1 >/dev/null
		sleep 0.05
	done 3>&- &
	pid=$!
	on_terminal 12 140 id "$alu0" id "$alu1000" interval 0.3 <<-EOF
		taken
		expect q quit, sort by: 1 %CPU 2 runs 3 ns/run 4 net 5 missed 6 id
		expect What was asked for takes
		expect  alu1000
		height 8
		colours
		send 6
		quiet 0
		send 2
		expect  alu0
		send q
		end 0
		restored
		expect What was asked for takes
	EOF
	kill "$pid"
	on_terminal 5 40 interval 0.2 <<-EOF
		expect BPF takes
		height 5
		send x
		send Q
		end 0
		restored
	EOF
}

@test "signals: the terminal is given back, also when it is stopped" {
	local signal

	for signal in 2 15 1 3; do
		on_terminal 24 80 interval 0.2 <<-EOF
			taken
			expect BPF takes
			signal $signal
			end 0
			restored
		EOF
	done
	# From the keyboard.
	on_terminal 24 80 interval 0.2 <<-EOF
		taken
		send $(printf '\003')
		end 0
		restored
	EOF
	# In the background it keeps its hands off the terminal.
	on_terminal 24 80 interval 0.2 <<-EOF
		taken
		expect BPF takes
		send $(printf '\032')
		stopped
		restored
		background
		quiet 800
		restored
		foreground
		taken
		expect BPF takes
		signal 19
		stopped
		foreground
		taken
		signal 20
		stopped
		restored
		foreground
		taken
		send q
		end 0
		restored
	EOF
}

@test "the terminal gets another size" {
	on_terminal 24 80 interval 0.2 <<-EOF
		taken
		expect BPF takes
		resize 4 30
		absent online
		expect BPF takes
		expect %CPU 2 runs
		resize 24 120
		expect online
		send q
		end 0
		restored
	EOF
}

@test "where it is narrow, what says least makes room for the name" {
	local pid

	while :; do
		"$TARGET" run "$P/alu1000" 1 >/dev/null
		sleep 0.05
	done 3>&- &
	pid=$!
	# On 80 columns the full table would end before %CPU. What it is sorted by is there.
	on_terminal 24 80 id "$alu1000" interval 0.3 <<-EOF
		expect   %CPU  name
		expect  alu1000
		absent socket_filter
		send 5
		expect   %CPU   missed  name
		expect  alu1000
		send 4
		expect net ns/run     %CPU  name
		resize 24 140
		expect net ns/run     %CPU %machine   missed  name
		expect socket_filter
		resize 24 60
		expect  alu1000
		send q
		end 0
		restored
	EOF
	# What is printed at the end, for the whole of the time here, has all columns.
	on_terminal 24 60 id "$alu1000" interval 600 duration 3 <<-EOF
		expect the first 600 s are being measured
		end 0
		restored
		expect socket_filter
	EOF
	kill "$pid"
}

@test "NO_COLOR, a dumb terminal, JSON, and a command: not drawn, or without colours" {
	export NO_COLOR=1
	"$TESTDIR/counts/pty" 24 120 bash -c '
		"$0" prog stats id "$1" duration 0.1 && "$0" -j prog stats id "$1" interval 0.2 duration 0.5 &&
		TERM=dumb "$0" prog stats id "$1" interval 0.2 duration 0.5 &&
		"$0" prog stats id "$1" interval 0.2 -- sleep 0.5' "$BPFCOST" "$alu0" <<-EOF
		end 0
		expect What was asked for takes
		plain
		restored
	EOF
	# Where NO_COLOR is empty, it is as if it were not there.
	NO_COLOR='' "$TESTDIR/counts/pty" 24 120 "$BPFCOST" prog stats id "$alu0" duration 0.1 <<-EOF
		end 0
		colours
	EOF
}
