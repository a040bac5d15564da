#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# prog stats: every run is counted, once, and in its window.
# shellcheck disable=SC2016,SC2154 # for other shells; variables of counts.bash

load counts

@test "exact counts, from zero, and every field of the JSON" {
	local n fields missed='"recursion_misses",'

	# Lifetime totals that are not zero.
	"$BPFCOST" stats enable -- "$TARGET" run "$P/alu10" 30 2>/dev/null
	stats -- bash -c '"$0" run "$1/alu10" 50 && "$0" run "$1/alu1000" 20 3' "$TARGET" "$P"
	json_is "runs($alu10) == 50 and runs($alu1000) == 60 and runs($alu0) == 0
		and (prog($alu10) | .name == \"alu10\" and .type == \"socket_filter\"
			and .marks == [] and .tag == \"$("$TARGET" tag "$P/alu10")\"
			and .first.run_cnt >= 30)
		and .switch == \"fd\" and .switch_was_off == false and .cpus_changed == false"
	# In full, where the kernel has the same 15 characters for two.
	json_is "[.programs[].name | select(startswith(\"a_name_longer\"))] | sort | unique ==
		[\"a_name_longer_than_bpftool_takes\", \"a_name_longer_than_the_kernel_keeps\"]"
	jq -e '.programs[0].last | has("recursion_misses")' "$T/out" >/dev/null || missed=''
	json_is 'keys_unsorted == ["window_ns", "online_cpus", "cpus_changed", "switch",
		"switch_was_off", "floor", "floor_p10", "floor_p90", "run_time_ns", "run_cnt",
		"cpu_percent", "machine_percent", "unseen", "blind_known", "programs"]
		and .blind_known'
	fields='["id", "type", "name", "tag", "run_time_ns", "run_cnt", '$missed' "window_ns",
		"runs_per_s", "ns_per_run", "net_per_run", "net_is_noise", "cpu_percent",
		"machine_percent", "first", "last", "marks"]'
	json_is "(prog($alu10) | keys_unsorted == $fields
		and all(.first, .last; keys_unsorted ==
			[\"run_time_ns\", \"run_cnt\", $missed 1][:-1]))
		and (prog($alu0) | keys_unsorted == $fields - [\"ns_per_run\", \"net_per_run\",
			\"net_is_noise\"])"
	# Kernels before 5.12 do not count them: then there is no zero either.
	if [[ $missed ]]; then
		json_is 'all(.programs[]; .recursion_misses >= 0)'
	else
		json_is 'all(.programs[] | ., .first; has("recursion_misses") | not)'
	fi
	# The command's own, and its exit status.
	bpfcost -j prog stats -- bash -c 'echo to stdout; exit 7'
	((status == 7))
	json_is true
	[[ $(<"$T/err") == 'to stdout' ]]
	# A CPU that goes meanwhile.
	if in_lab && [[ -w /sys/devices/system/cpu/cpu1/online ]]; then
		n=$(nproc)
		json_is ".online_cpus == $n"
		stats id "$alu10" -- bash -c 'echo 0 >/sys/devices/system/cpu/cpu1/online
			"$0" run "$1" 10' "$TARGET" "$P/alu10"
		echo 1 >/sys/devices/system/cpu/cpu1/online
		json_is "runs($alu10) == 10 and .cpus_changed and .online_cpus == $((n - 1))"
	fi
	# Indented, the same.
	bpfcost -p prog stats id "$alu10" -- "$TARGET" run "$P/alu10" 5
	json_is "runs($alu10) == 5 and (.programs | length == 1) and (has(\"unseen\") | not)"
	(($(wc -l <"$T/out") > 20))
}

@test "net of the floor: an empty program's is none, 1000 instructions more are 1000 ns" {
	local _

	two() { # OPTION...
		bpfcost "$@" prog stats id "$alu0" id "$alu1000" -- \
			bash -c '"$0" run "$1/alu0" 50 && "$0" run "$1/alu1000" 20' "$TARGET" "$P"
		((status == 0)) || fail "$(<"$T/out") $(<"$T/err")"
	}
	net_exact() {
		two -j
		ask -e '.programs | length == 2
			and (.[0] | .name == "alu1000" and .net_per_run == 1000
				and (.net_is_noise | not))
			and (.[1] | .name == "alu0" and .net_per_run == 0 and .net_is_noise)' \
			"$T/out" >/dev/null
	}
	two -j
	json_is "runs($alu0) == 50 and runs($alu1000) == 20
		and all(.programs[]; .net_per_run != null)"
	two
	grep -Eq '^ *[0-9]+ socket_filter +50 +[0-9.]+ +[0-9.]+ +(~0|[0-9.]+) ' "$T/out" ||
		fail "$(<"$T/out")"
	is_exact || return 0
	net_exact || net_exact || net_exact || net_exact || fail "$(show)"
	# What is within the floor's spread is not shown as if it were exact.
	for _ in 1 2 3 4; do
		two
		! grep -Eq ' ~0 +[0-9.]+ +[0-9.]+ +[0-9-]+  alu0$' "$T/out" || return 0
	done
	fail "$(<"$T/out")"
}

@test "plain: a table with units, one line for those that did not run, a total" {
	bpfcost prog stats -- bash -c 'echo hello; "$0" run "$1/alu10" 50' "$TARGET" "$P"
	((status == 0)) || fail "$(<"$T/err")"
	[[ ! -s $T/err ]]
	[[ $(<"$T/out") == hello$'\n'* ]]
	# No colours, and no control characters, where it is no terminal.
	run -1 grep -q '[[:cntrl:]]' "$T/out"
	grep -Eq '^ +id type +runs +runs/s +ns/run net ns/run +%CPU +%machine +missed  name$' \
		"$T/out"
	grep -Eq "^ *$alu10 socket_filter +50 +[0-9.]+ .* ([0-9]+|-)  alu10$" "$T/out"
	grep -Eq '^[0-9]+ programs did not run$' "$T/out"
	grep -Eq '^floor [0-9.]+ ns a run, p10\.\.p90 [0-9.]+\.\.[0-9.]+; ~0 is within' "$T/out"
	# Two digits that say something, at least.
	local percent='(0\.0*[1-9][0-9]+|[1-9][0-9]*\.[0-9]+) %'
	grep -Eq "^BPF takes $percent of this machine \\($percent of one CPU; [0-9]+ online\\): " \
		"$T/out" || fail "$(<"$T/out")"
	# Those that did not run have no row.
	run -1 grep -q "^ *$alu1 " "$T/out"
	bpfcost prog stats id "$alu1" duration 0.02
	[[ $(<"$T/out") == *'1 program did not run'*'What was asked for takes 0.0 % of this'* ]]
}

@test "interval: one document a line, each of its own window, and the runs add up" {
	bpfcost -j prog stats interval 0.2 -- \
		bash -c '"$0" run "$1" 10; sleep 0.5; "$0" run "$1" 20; sleep 0.3' "$TARGET" \
		"$P/alu0"
	((status == 0)) || fail "$(show)$(<"$T/err")"
	(($(wc -l <"$T/out") >= 3))
	ask -es "all(.[]; sound and .time > 1000000000)
		and (map(runs($alu0)) | add == 30) and (map(.time) | . == sort)
		and (map(prog($alu0) | .first.run_cnt) | unique | length >= 2)" "$T/out" \
		>/dev/null || fail "$(show)"
	# The plain ones, and an end by a signal, which is no error.
	"$BPFCOST" prog stats id "$alu0" interval 0.2 >"$T/out" 2>"$T/err" 3>&- &
	while (($(grep -c '^What was asked for takes' "$T/out") < 2)); do
		sleep 0.1
	done
	kill -TERM $!
	wait $!
	[[ ! -s $T/err ]]
	run -1 grep -q '[[:cntrl:]]' "$T/out"
	# When each window ended.
	(($(grep -cE '^What was .* s, until [0-2][0-9]:[0-5][0-9]:[0-6][0-9]$' "$T/out") ==
		$(grep -c '^What was' "$T/out")))
}

@test "programs that come and go" {
	local n seen

	# The last document; the last line may be half written.
	last() {
		local line found=''

		while IFS= read -r line; do
			found=$line
		done <"$T/out"
		printf '%s\n' "$found"
	}

	# Loaded, run, and unloaded by its owner in the window: all of it is there.
	bpfcost -j prog stats -- bash -c '"$0" load "$1" "$2" && id=$("$0" id "$2/alu1") &&
			until grep -qs "prog_id:.$id\$" "/proc/$PPID/fdinfo/"*; do sleep 0.05; done &&
			"$0" run "$2/alu1" 23 && rm -r "$2"' \
		"$TARGET" "$TESTDIR/cli/targets.bpf.o" "$BPFFS/later"
	((status == 0)) || fail "$(show)$(<"$T/err")"
	n=$(sed -n 's/ alu1$//p' "$T/err")
	json_is "prog($n) | .run_cnt == 23 and .marks == [\"new\"]"
	# With an interval it is let go after a while.
	: >"$T/out"
	"$BPFCOST" -j prog stats interval 0.2 >"$T/out" 2>"$T/err" 3>&- &
	while [[ ! -s $T/out ]]; do
		sleep 0.1
	done
	"$TARGET" load "$TESTDIR/cli/targets.bpf.o" "$BPFFS/later" >"$T/ids"
	n=$(sed -n 's/ alu1$//p' "$T/ids")
	until last | grep -q "\"id\":$n,"; do
		sleep 0.1
	done
	"$TARGET" run "$BPFFS/later/alu1" 20
	rm -r "$BPFFS/later"
	while last | grep -q "\"id\":$n,"; do
		sleep 0.2
	done
	kill -INT $!
	wait $!
	ask -se "all(.[]; sound) and (map(runs($n)) | add == 20)
		and all(.[0], .[-1]; all(.programs[]; .id != $n))" "$T/out" >/dev/null ||
		fail "$n did not come and go: $(ask -c '[.programs[] | [.id, .run_cnt]]' "$T/out")"
	# More than can be seen: no error, no wrong number, and the rest is counted as not seen.
	bpfcost -j prog stats -- "$TARGET" churn 1
	((status == 0)) || fail "$(show)$(<"$T/err")"
	n=$(<"$T/err")
	seen=$(jq '[.programs[] | select(.name == "churn")] | length' "$T/out")
	json_is "all(.programs[] | select(.name == \"churn\"); .run_cnt <= 1
			and .marks - [\"gone\", \"torn\"] == [\"new\"])
		and .unseen + $seen >= $n"
	# The library loads some to find out what the kernel can do.
	! in_lab || json_is ".unseen + $seen <= $n + 20"
	bpfcost prog stats -- "$TARGET" churn 0.5
	((status == 0))
	grep -Eq '^[0-9]+ programs came and went between two looks, not counted$' "$T/out" ||
		fail "$(<"$T/out")"
}

@test "more programs than files may be open" {
	local n=300 id

	# Natively, they take no time.
	in_lab || n=5000
	few() { # ARG...
		"$TARGET" many "$n" bash -c 'ulimit -n 64; exec "$@"' x "$@" >"$T/out" 2>"$T/err" ||
			fail "$(show) $(<"$T/err")"
	}
	few "$BPFCOST" -j prog stats -- \
		bash -c '"$0" run "$1/alu10" 50; [[ $(ulimit -n) == 64 ]]' "$TARGET" "$P"
	json_is "runs($alu10) == 50
		and ([.programs[].name | select(startswith(\"many_\"))] | length >= $n)"
	# One that is not held is gone when its owner lets it go, which is said.
	few "$BPFCOST" -j prog stats interval 0.5 -- bash -c '"$0" load "$1" "$2"
		id=$("$0" id "$2/alu1")
		until grep -q "\"id\":$id,.*\"new\"" "$3"; do sleep 0.1; done
		rm -r "$2"
		until grep -q "\"id\":$id,[^]]*\"gone\"" "$3"; do sleep 0.1; done' \
		"$TARGET" "$TESTDIR/cli/targets.bpf.o" "$BPFFS/later" "$T/out"
	id=$(sed -n 's/ alu1$//p' "$T/err")
	[[ $(ask -sc "all(.[]; sound) and (map(prog($id) | .marks) | .[0] == [\"new\"]
		and .[-1] == [\"gone\"])" "$T/out") == true ]] ||
		fail "$(ask -sc "map([prog($id) | .marks])" "$T/out")"
	few "$BPFCOST" prog stats name many_7 id "$alu10" -- "$TARGET" run "$P/alu10" 50
	grep -q ' 50 .*  alu10$' "$T/out"
	few "$BPFCOST" -d prog stats duration 0.1
	grep -Eq '^sample 2: [0-9.]+ ms of CPU in [0-9.]+ ms; programs read by fds that are kept' \
		"$T/err" || fail "$(grep sample "$T/err")"
	grep -Eq ' opened each time, as the limit of open files is too low: [0-9]+$' "$T/err" ||
		fail "$(grep sample "$T/err")"
	# The soft limit is raised, and the command has the caller's.
	"$TARGET" many 100 bash -c 'ulimit -Sn 64; exec "$@"' x "$BPFCOST" -d prog stats -- \
		bash -c 'ulimit -Sn' >"$T/out" 2>"$T/err"
	[[ $(head -n 1 "$T/out") == 64 ]]
	grep -q '; programs read by fds that are kept (BPF_OBJ_GET_INFO_BY_FD): [0-9]*$' \
		"$T/err" || fail "$(grep sample "$T/err")"
}

@test "what cannot be written is an error" {
	run -1 bash -c '"$BPFCOST" prog stats duration 0.01 >/dev/full'
	[[ $output == 'Error: cannot write the result: No space left on device'* ]]
	run -1 bash -c '"$BPFCOST" -j prog stats duration 0.01 >/dev/full'
	# Nor does it go on for nobody, whose programs would be slowed down meanwhile.
	run -1 timeout 60 bash -c '"$BPFCOST" prog stats interval 0.05 >/dev/full'
	[[ $output == 'Error: cannot write the result: No space left on device'* ]]
	run -1 timeout 60 bash -c '"$BPFCOST" -j prog stats interval 0.05 >/dev/full'
	trap '' PIPE
	run -0 bash -c '{ timeout 60 "$BPFCOST" -j prog stats interval 0.05; echo $? >&2; } | head -n 1 >/dev/null'
	trap - PIPE
	[[ $output == $'Error: cannot write the result: Broken pipe\n1' ]] || fail "$output"
	# A reader that has seen enough ends it, like any other program.
	run -0 bash -c 'timeout 20 "$BPFCOST" -j prog stats interval 0.05 | head -n 2 | jq -s length'
	[[ $output == 2 ]]
	# Without standard streams nothing lands in a file that is not theirs.
	run -1 bash -c '"$BPFCOST" prog stats duration 0.01 >&- 2>&- <&-'
}
