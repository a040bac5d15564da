#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# prog bench and prog compare, measuring: in the lab to the instruction, elsewhere within bounds
# that no noise can break. Where the kernel refuses entry and exit programs, there are the
# statistics and the clock. How results look is checked by usage/bench.

load cli

setup_file() {
	load_targets
	export COMMANDS=$TESTDIR/cli/command.bpf.o
}

setup() {
	targets=$TESTDIR/cli/targets.bpf.o
	bench=$TESTDIR/cli/bench.bpf.o
}

# As JSON, which must be one document; notes are allowed.
bench() { # ARG...
	bpfcost -j prog bench "$@"
	((status == 0)) || fail "$*: exit status $status: $(<"$T/out")$(<"$T/err")"
	json_is '.format == "bpfcost-bench-1"'
}

compare() { # OLD NEW ARG...
	bpfcost -j prog compare "$@"
	((status < 2)) || fail "$*: exit status $status: $(<"$T/out")$(<"$T/err")"
	[[ ! -s $T/err ]] || fail "wrote to stderr: $(<"$T/err")"
	json_is 'has("programs")'
}

# Fields that hold for every result of SIZE measurements.
sound() { # SIZE
	json_is ".count == $1 and .machine.kernel == \"$(uname -r)\" and
		.machine.arch == \"$(uname -m)\" and (.machine.cpu | type == \"string\") and
		.machine.online_cpus == \"$(</sys/devices/system/cpu/online)\" and
		(.version | startswith(\"0.\")) and (.on_cpu >= 0) and
		all(.programs[]; has(\"error\") or
			((.metrics | map(.metric) | .[:2] == [\"wall_ns\", \"run_time_ns\"]) and
			(.ratio > 0) and (.reliable | type == \"boolean\") and
			all(.metrics[]; (.measurements | length == $1) and .gross > 0 and
				all(.measurements[]; .runs > 0 and .value > 0 and .mean > 0) and
				(.metric == \"wall_ns\" or
				((.net - (.gross - .floor) | fabs) < 0.001 * .gross)))))"
	if [[ -r /proc/sys/net/core/bpf_jit_enable ]]; then
		json_is ".machine.bpf_jit_enable == $(</proc/sys/net/core/bpf_jit_enable)"
	fi
}

@test "one instruction more, and your CI knows" {
	is_exact || skip "counts are not exact here"
	local metrics

	# Two identical builds: 0.00 %, though the machine chose how many runs. A tick that falls on
	# half of the measurements of a burst is possible, rarely.
	identical() {
		bench "$targets"
		sound 10
		cp "$T/out" "$T/old"
		bench "$targets"
		cp "$T/out" "$T/again"
		compare "$T/old" "$T/again" threshold 0
		jq -e '[.programs[].metrics[] | select(.metric != "wall_ns") | .difference == 0
			and (.significant | not) and .p == 1] | all and length >= 8' "$T/out"
		((status == 0)) && jq -e '.slower == []' "$T/out"
	}
	identical || identical || identical
	# With net values that are known to the instruction.
	jq -e '[.programs[] | select(.name | test("^alu")) | .name as $name | .metrics[]
		| select(.metric != "wall_ns") | .net == ($name | ltrimstr("alu") | tonumber)]
		| all and length >= 5' "$T/again"
	# By each way: the statistics and, where there are, entry and exit programs.
	metrics=$(jq -c '.programs[0].metrics | map(.metric) - ["wall_ns"]' "$T/again")
	if "$TARGET" traceable "$P/alu0" >/dev/null; then
		[[ $metrics == '["run_time_ns","cycles","instructions"]' ]]
	fi
	mkdir "$T/new"
	cp "$TESTDIR/cli/slower.bpf.o" "$T/new/targets.bpf.o"
	more() {
		bench "$T/new/targets.bpf.o"
		cp "$T/out" "$T/new.json"
		compare "$T/old" "$T/new.json" threshold 0.5
		((status == 1))
		jq -e '.slower | map(select(.metric != "wall_ns") | [.name, .metric, .difference])
			== ($metrics | map(["alu100", ., 1]))' --argjson metrics "$metrics" "$T/out"
		bpfcost prog compare "$T/old" "$T/new.json" threshold 0.5
		((status == 1))
		grep -qx 'Slower: alu100, run_time_ns by 1.00 %' "$T/out"
	}
	more || more || more
}

@test "an object file: each program, each measurement, and the machine" {
	bench "$targets" count 3
	sound 3
	json_is '.object == "targets.bpf.o" and (.programs | length == 8) and
		all(.programs[]; .type == "socket_filter" and .repeat >= 1 and (has("error") | not))'
	json_is '.programs | map(.name) | index("a_name_longer_than_the_kernel_keeps") != null'
	# What is a thousand instructions longer takes longer. On a busy machine a run takes longer
	# as well, but not the shortest of three.
	json_is '[.programs[] | select(.name == "alu0" or .name == "alu1000") | .metrics[1]
		| .measurements | map(.value) | min] | .[0] < .[1]'
}

@test "loaded programs: by pinned file, id and tag, several, with metrics" {
	local id tag

	id=$("$TARGET" id "$P/alu10")
	tag=$("$TARGET" tag "$P/alu10")
	bench pinned "$P/alu10" count 2 repeat 20
	sound 2
	json_is "(has(\"object\") | not) and (.programs | length == 1) and (.programs[0]
		| .id == $id and .tag == \"$tag\" and .name == \"alu10\" and .repeat == 20)"
	bench id "$id" pinned "$P/alu0" count 2 repeat 20
	json_is '.programs | map(.name) == ["alu10", "alu0"]'
	bench pinned "$P/alu10" count 1 repeat 20
	# All of the runs of a burst, or those of bursts that nobody disturbed.
	json_is 'all(.programs[].metrics[].measurements[]; .runs <= 20)'
	if ! "$TARGET" traceable "$P/alu0" >/dev/null; then
		# What is asked for must be had; what is not, is left out, and said so.
		grep -q '^without entry and exit programs: ' "$T/err"
		json_is '.programs[0].metrics | map(.metric) == ["wall_ns", "run_time_ns"]'
		fails 1 "refuses entry and exit programs" prog bench pinned "$P/alu0" ns \
			count 1 repeat 20 2>/dev/null || [[ $(<"$T/out") == *'"error"'* ]]
		return
	fi
	bench pinned "$P/alu10" ns count 2 repeat 20
	sound 2
	json_is '.programs[0].metrics | map(.metric) == ["wall_ns", "run_time_ns", "ns"]'
	[[ ! -s $T/err ]]
}

@test "ten measurements of about 10 ms, if nothing else is said" {
	bench pinned "$P/alu1000"
	sound 10
	json_is '.count == 10'
	if is_exact; then
		# A run by the clock, and so often as was chosen.
		json_is '.programs[0] | .repeat * .metrics[0].gross | . > 9e6 and . < 11e6'
	fi
}

@test "more metrics than counters: estimates, and they are marked" {
	need_profiling
	is_exact || skip "counts are not exact here"
	# 10 events for 7 counters.
	local many=(cycles instructions r8 r11 r0 r23 r24 r3c cycles:kh instructions:kh)

	bench pinned "$P/alu1000" count 4 "${many[@]}"
	json_is '.programs[0].metrics | length == 12 and all(.[]; .estimate ==
		(.metric != "wall_ns" and .metric != "run_time_ns"))'
	# Near what it is, as all events that count had their turn.
	json_is '.programs[0].metrics[] | select(.metric == "instructions")
		| .gross / (.floor + 1000) | . > 0.9 and . < 1.1'
	cp "$T/out" "$T/many"
	bpfcost prog bench pinned "$P/alu1000" count 4 "${many[@]}"
	((status == 0))
	(($(grep -c '(estimate)$' "$T/out") == 10)) || fail "$(<"$T/out")"
	run -1 grep -E '(wall|run_time)_ns .*estimate' "$T/out"
	# Events of which the emulator counts none have medians of 0, and may.
	bpfcost prog compare "$T/many" "$T/many"
	((status == 0)) || fail "$(<"$T/err")"
	(($(grep -c '(estimate)' "$T/out") == 10)) || fail "$(<"$T/out")"
	# So few runs are over before all had a counter. That is no 0.
	fails 1 "had no counter in a measurement: there are more metrics than counters" \
		prog bench pinned "$P/alu1000" count 1 repeat 5 "${many[@]}"
	# What fits is none.
	bench pinned "$P/alu1000" count 1 repeat 50 cycles instructions
	json_is 'all(.programs[0].metrics[]; .estimate | not)'
}

@test "warm-up, in turn, on one CPU" {
	local runs turns

	bench "$bench" count 10 repeat 40
	sound 10
	retval() { # NAME
		jq ".programs[] | select(.name == \"$1\") | .retval" "$T/out"
	}
	# Every measurement of one program is followed by one of the other: two turns in each of
	# ten rounds, by the clock and by the statistics at least.
	turns=$(retval tell_turns)
	((turns >= 40)) || fail "$turns turns"
	# The kernel ran more than what is in the results: 40 a program and way, to warm up.
	runs=$(jq '[.programs[] | select(.name == "first" or .name == "second")
		| .metrics[:2][].measurements[].runs] | add' "$T/out")
	(($(retval tell_runs) >= runs + 4 * 40)) || fail "$(retval tell_runs) runs, $runs of them shown"
	# One bit.
	jq -e '.programs[] | select(.name == "tell_cpus") | .retval as $bits
		| [range(32) | select(($bits / pow(2; .) | floor) % 2 == 1)] | length == 1' "$T/out"
	[[ ! -e /sys/fs/bpf/bpfcost_trace ]]
}

@test "2N runs that do not take twice as long are unreliable" {
	# One run a call: what is measured is the call.
	unreliable() {
		bench pinned "$P/alu0" repeat 1 count 1
		jq -e '.programs[0] | (.reliable | not) and (.ratio - 2 | fabs) > 0.1' "$T/out"
	}
	unreliable || unreliable || unreliable
	bpfcost prog bench pinned "$P/alu0" repeat 1 count 1
	((status == 0))
	grep -Eq '^  unreliable: twice as many runs took [0-9.]+ times as long, not 2$' "$T/out" ||
		fail "$(<"$T/out")"
	if is_exact; then
		bench pinned "$P/alu1000" count 2
		json_is '.programs[0] | .reliable and (.ratio - 2 | fabs) < 0.1'
	fi
}

@test "a program that the kernel cannot run by itself, while a command runs" {
	bpfcost -j prog bench "$COMMANDS" count 2 repeat 10 -- true
	((status == 0))
	if jq -e '.programs[] | select(.name == "on_exec") | .error // "" | contains("cannot attach")' \
		"$T/out"; then
		skip "tracepoints cannot be attached to here"
	fi
	# `true` is one process, and its start one run.
	json_is '.programs[] | select(.name == "on_exec") | (.metrics | length == 1) and
		(.metrics[0] | .metric == "run_time_ns" and (.measurements | length == 2) and
		all(.measurements[]; .runs >= 1 and .value > 0)) and (has("ratio") | not)'
	json_is '.programs[] | select(.name == "nothing") | .metrics | length >= 2'
	# Once to warm up, and once a measurement, with the CPUs that the caller has. With -j stdout
	# is the document's.
	"$BPFCOST" -j prog bench "$COMMANDS" count 3 repeat 10 -- \
		sh -c 'echo "cpus $(nproc)"; echo run' >"$T/out" 2>"$T/err"
	json_is 'has("programs")'
	(($(grep -cx run "$T/err") == 4))
	(($(grep -cx "cpus $(nproc)" "$T/err") == 4))
	# A command that fails is not measured, and the status is its own.
	status=0
	"$BPFCOST" -j prog bench "$COMMANDS" count 3 repeat 10 -- \
		sh -c 'exit 3' >"$T/out" 2>"$T/err" || status=$?
	((status == 3))
	json_is '.error == "'"'sh' ended with status 3: it was not measured"'"'
}

@test "a command that does not make the program run" {
	local pin=$BPFFS/loaded

	"$TARGET" load "$COMMANDS" "$pin" >/dev/null
	# It is loaded, but attached to nothing.
	fails 1 "(on_exec): it did not run while 'true' did" prog bench pinned "$pin/on_exec" count 2 \
		-- true
}

@test "a program of type syscall, which runs once a call" {
	need_kernel 5.14
	# Its context is a number of 8 bytes, which comes back as it returns.
	printf '\x2a\0\0\0\0\0\0\0' >"$T/context"
	bench "$TESTDIR/cli/syscall.bpf.o" ctx_in "$T/context" repeat 30 count 2
	json_is '.programs[0] | .retval == 42 and .type == "syscall" and .repeat == 30 and
		all(.metrics[].measurements[]; .runs <= 30 and .runs > 0)'
	# Without, or with less than it reads, the kernel refuses.
	bpfcost -j prog bench "$TESTDIR/cli/syscall.bpf.o" repeat 30 count 2
	((status == 1))
	json_is '.error | contains("give it one: ctx_in FILE")'
	printf '\x2a' >"$T/context"
	bpfcost -j prog bench "$TESTDIR/cli/syscall.bpf.o" ctx_in "$T/context" count 2
	((status == 2))
	json_is '.error | contains("with 0 bytes of data and 1 of context")'
}
