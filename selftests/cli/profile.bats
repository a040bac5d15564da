#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# prog profile: what it measures, and how it shows it.
# shellcheck disable=SC2016 # for other shells

load cli

# An interrupt that falls into a run is counted in it, so that a value may be too large, rarely;
# one that is too small is wrong at once.
exact() { # PROGRAM N RUNS METRIC...
	local name=$1 n=$2 runs=$3 _

	shift 3
	for _ in 1 2 3 4; do
		profile "$name" "$@" -- "$TARGET" run "$P/$name" "$runs"
		json_is "$sound and all(.[]; .run_cnt == $runs and .measured == $runs)"
		json_is "all(.[]; .net >= $n * $runs)"
		jq -e "all(.[]; .net == $n * $runs)" "$T/out" >/dev/null && return
	done
	fail "$name: not exactly $n more a run: $(<"$T/out")"
}

@test "N instructions more cost N more, exactly" {
	is_exact || skip "counts are not exact here"
	local n

	for n in 0 1 10 100 1000; do
		exact "alu$n" "$n" 20 ns cycles instructions
		json_is 'map(.metric) == ["cycles", "instructions", "ns"]'
	done
	for n in ns instructions; do
		exact alu0 0 20 "$n"
		exact alu100 100 20 "$n"
	done
	# Sampled: as exact, but scaled, and marked so.
	exact_sample() {
		profile alu100 sample 4 ns -- "$TARGET" run "$P/alu100" 40
		json_is "$sound and (.[0] | .run_cnt == 40 and .measured == 10 and .skipped == 30
			and .estimate)"
		jq -e '.[0].net == 4000' "$T/out" >/dev/null
	}
	exact_sample || exact_sample || exact_sample
}

@test "JSON of a success: runs, fields, several metrics" {
	local n

	profile alu1000 ns -- "$TARGET" run "$P/alu1000" 50 3
	json_is "$sound and length == 1 and (.[0] | .metric == \"ns\" and .run_cnt == 150
		and .lost == 0 and .value > 0 and .floor > 0 and .enabled > 0
		and .enabled == .running
		and .name == \"alu1000\" and .func == \"alu1000\" and .type == \"socket_filter\"
		and .id == $("$TARGET" id "$P/alu1000")
		and .tag == \"$("$TARGET" tag "$P/alu1000")\"
		and .estimate == false)"
	# The order is that of bpftool's table; one metric twice is one.
	if has_event instructions; then
		profile alu0 ns instr ns cycles duration 0.05
		json_is "$sound and map(.metric) == [\"cycles\", \"instructions\", \"ns\"]"
		bpfcost -j prog profile pinned "$P/alu0" duration 0.05
		json_is 'map(.metric) == ["cycles", "instructions"]'
	elif has_event page-faults; then
		# What there is without a PMU; and without metrics, ns.
		profile alu0 ns page-faults context-switches duration 0.05
		json_is "$sound and map(.metric) == [\"page-faults\", \"context-switches\", \"ns\"]"
		bpfcost -j prog profile pinned "$P/alu0" duration 0.05
		((status == 0))
		json_is 'map(.metric) == ["ns"]'
		grep -Eq "^CPU has no '(cycles|instructions)' event \(ENOENT\)" "$T/err"
		[[ $(<"$T/err") == *$'\n''measuring ns' ]]
	fi
	# Indented, the same.
	bpfcost -p prog profile pinned "$P/alu0" ns duration 0.05
	json_is "$sound"
	(($(wc -l <"$T/out") > 10))
}

@test "no runs: JSON, and the plain output to the letter" {
	profile alu0 ns duration 0.05
	json_is "$sound and (.[0] | .run_cnt == 0 and .value == 0 and .net == 0 and .measured == 0)"
	bpfcost prog profile pinned "$P/alu0" ns duration 0.05
	((status == 0))
	[[ ! -s $T/err ]]
	printf '\n%18u %-20s\n%18u %-20s%-41s\n' 0 run_cnt 0 ns '' | cmp - <(head -n 3 "$T/out")
	grep -q 'it did not run' "$T/out"
}

@test "plain output is bpftool's for its part, from the numbers of the JSON" {
	local cycles instructions ns json=() format expected ratio

	if ! is_exact; then
		bpfcost prog profile pinned "$P/alu100" ns -- "$TARGET" run "$P/alu100" 50
		((status == 0))
		expected=$'^\n {16}50 run_cnt {13}\n *[0-9]+ ns {59}\n\nprog '
		[[ $(<"$T/out") =~ $expected ]]
		grep -q '^50 runs in 0\.[0-9]* s: 50 measured, 0 switched out, 0 lost$' "$T/out" ||
			grep -q '^50 runs in .*, [0-9]* switched out, 0 lost$' "$T/out"
		grep -Eq '^ns +[0-9.]+ +[0-9.]+ +-?[0-9.]+ +[0-9.]+\.\.[0-9.]+ ns$' "$T/out"
		return
	fi
	expect() {
		profile alu100 cycles instructions ns -- "$TARGET" run "$P/alu100" 20
		read -ra json < <(jq -r 'map(.value) | join(" ")' "$T/out")
		cycles=${json[0]} instructions=${json[1]} ns=${json[2]}
		ratio=$(jq -r '(.[1].value / .[0].value * 100 | round) / 100' "$T/out")
		format='\n%18u %-20s\n%18u %-20s%-41s\n%18u %-20s# %8.2f %-30s\n%18u %-20s%-41s\n\n'
		# shellcheck disable=SC2059 # it is one
		printf -v expected "$format" 20 run_cnt "$cycles" cycles '' \
			"$instructions" instructions "$ratio" 'insns per cycle' \
			"$ns" ns ''
		bpfcost prog profile pinned "$P/alu100" cycles instructions ns -- \
			"$TARGET" run "$P/alu100" 20
		[[ $(<"$T/out") == "$expected"* ]]
	}
	expect || expect || expect || fail "$(<"$T/out")"
	# Ours, with units.
	[[ $(<"$T/out") == *'20 measured, 0 switched out, 0 lost'* ]]
	grep -Eq '^cycles +[0-9.]+ +[0-9.]+ +100\.00 +.* cycles$' "$T/out"
	grep -Eq '^instructions +[0-9.]+ +[0-9.]+ +100\.00 +.* instructions$' "$T/out"
	grep -Eq '^ns +[0-9.]+ +[0-9.]+ +100\.00 +.* ns$' "$T/out"
}

@test "SIGINT and SIGTERM print what there is, and are no error" {
	local signal args

	for signal in INT TERM HUP; do
		for args in -j ''; do
			# Of HUP it is enough to know that it is one of them.
			[[ $signal$args != HUP ]] || continue
			# shellcheck disable=SC2086 # none or one
			"$BPFCOST" $args prog profile pinned "$P/alu0" ns >"$T/out" 2>"$T/err" \
				3>&- &
			while ! grep -q '^SigBlk:.*[1-9a-f]' "/proc/$!/status"; do
				sleep 0.05
			done
			sleep 0.3
			run_target alu0 10
			kill "-$signal" $!
			status=0
			wait $! || status=$?
			((status == 0)) || fail "SIG$signal: exit status $status $(<"$T/err")"
			[[ ! -s $T/err ]]
			if [[ $args ]]; then
				json_is "$sound and length == 1 and .[0].metric == \"ns\""
			else
				grep -q 'run_cnt' "$T/out"
			fi
		done
	done
	# At once, whatever it was doing: nothing or one document, and never half of one. Not by
	# SIGINT, which is ignored in the background until the command looks for it.
	for args in 0 0.02 0.05; do
		"$BPFCOST" -j prog profile pinned "$P/alu0" ns >"$T/out" 2>"$T/err" 3>&- &
		sleep "$args"
		kill -TERM $!
		status=0
		wait $! || status=$?
		[[ ! -s $T/out ]] || json_is true
	done
}

@test "interval: one document a line" {
	bpfcost -j prog profile pinned "$P/alu0" ns interval 0.2 -- \
		bash -c '"$0" run "$1" 10; sleep 0.5; "$0" run "$1" 20; sleep 0.3' "$TARGET" \
		"$P/alu0"
	((status == 0))
	(($(wc -l <"$T/out") >= 3))
	# Each line by itself; the runs add up.
	while IFS= read -r line; do
		jq -e "$sound and .[0].time > 1000000000" <<<"$line" >/dev/null || fail "$line"
	done <"$T/out"
	[[ $(jq -s 'map(.[0].run_cnt) | add' "$T/out") == 30 ]]
	[[ $(jq -s 'map(.[0].time) | . == sort' "$T/out") == true ]]
	# It does not go on for nobody, and whoever reads does not wait for a full buffer.
	run -1 timeout 60 bash -c '"$BPFCOST" -j prog profile pinned "$P/alu0" ns interval 0.1 \
		>/dev/full'
	run -0 timeout 60 bash -c '"$BPFCOST" prog profile pinned "$P/alu0" ns interval 0.2 |
		grep -m 1 -c run_cnt'
	[[ $output == 1 ]]
}

@test "all ways to name a program, and the beginnings of words" {
	local id long=a_name_longer_than_the_kernel_keeps word

	id=$("$TARGET" id "$P/alu10")
	named() { # JSON-FILTER ARG...
		local filter=$1

		shift
		bpfcost "$@"
		((status == 0)) || fail "$*: $(<"$T/out")$(<"$T/err")"
		json_is "$filter"
	}
	for word in "id $id" "i $id" "tag $("$TARGET" tag "$P/alu10")" \
		"ta $("$TARGET" tag "$P/alu10")" \
		"name alu10" "n alu10" "pinned $P/alu10" "pi $P/alu10"; do
		# shellcheck disable=SC2086 # words
		named ".[0].id == $id" -j prog profile $word ns duration 0.02
	done
	named ".[0].id == $id" p prof id "$id" -j n dur 0.02 ns
	named ".[0].id == $id" -j -d prog pr id "$id" --pretty duration 0.02 ns
	# Names in full, where the kernel's own are the same.
	named ".[0].name == \"$long\" and .[0].func == \"$long\"" -j prog profile name "$long" ns \
		duration 0.02
	fails 2 'several programs match' prog profile name a_name_longer_t ns duration 0.02
	# A subprogram is a target like any other function.
	profile with_subprograms func sub_global ns -- "$TARGET" run "$P/with_subprograms" 10
	json_is "$sound and (.[0] | .func == \"sub_global\" and .name == \"with_subprograms\"
		and .run_cnt == 20)"
	fails 2 "has no function 'nope'; it has: with_subprograms" prog profile name \
		with_subprograms func nope ns
	# Several: a row each.
	named "map(.name) == [\"alu1\", \"alu10\"] or map(.name) == [\"alu10\", \"alu1\"]" \
		-j prog profile id "$id" name alu1 ns duration 0.02
}

@test "exit status and output of the command" {
	local code

	for code in 0 3 127 255; do
		bpfcost -j prog profile pinned "$P/alu0" ns -- bash -c "exit $code"
		((status == code)) || fail "$code: $status"
		json_is "$sound"
	done
	bpfcost -j prog profile pinned "$P/alu0" ns -- bash -c 'kill -KILL $$'
	((status == 137))
	json_is "$sound"
	bpfcost prog profile pinned "$P/alu0" ns -- /nonexistent
	((status == 127))
	grep -q "cannot run '/nonexistent': No such file or directory (ENOENT)" "$T/err"
	bpfcost prog profile pinned "$P/alu0" ns -- "$BPFFS"
	((status == 126))
	# Its output does not mix with JSON; its arguments are its own.
	bpfcost -j prog profile pinned "$P/alu0" ns -- bash -c 'echo "$1"; cat >&2' x -p --version
	json_is "$sound"
	[[ $(<"$T/err") == -p ]]
	bpfcost prog profile pinned "$P/alu0" ns -- echo hello
	[[ $(<"$T/out") == hello$'\n'* ]]
	# An end by a signal reaches the command as well.
	"$BPFCOST" -j prog profile pinned "$P/alu0" ns -- bash -c \
		'trap "exit 7" TERM; : >"$0"; while :; do sleep 0.1; done' \
		"$T/started" >"$T/out" 3>&- &
	while [[ ! -e $T/started ]]; do
		sleep 0.05
	done
	kill -TERM $!
	status=0
	wait $! || status=$?
	((status == 7))
	json_is "$sound"
	# A duration that is over ends the measurement, not the command.
	bpfcost -j prog profile pinned "$P/alu0" ns duration 0.1 -- bash -c \
		'sleep 0.4; echo end >&2; exit 9'
	((status == 9))
	[[ $(<"$T/err") == end ]]
}

@test "whole runs only: begun and ended while the program runs all the time" {
	local _ pid seconds=0.02

	# With CPUs that take turns (--exact), 6.1 takes minutes to load any program while another
	# CPU is never idle, and 6.12 can stand still: there the program pauses now and then.
	if is_exact; then
		seconds=0.3
		while :; do
			"$TARGET" run "$P/alu0" 20 3000
			sleep 0.02
		done 3>&- &
	else
		"$TARGET" run "$P/alu0" 20 100000000 3>&- &
	fi
	pid=$!
	for _ in 1 2; do
		profile alu0 ns duration "$seconds"
		json_is "$sound and (.[0] | .run_cnt > 0 and .lost == 0
			and .value >= .measured * .floor_p10 * 0.5)"
	done
	kill -KILL "$pid"
	wait "$pid" || :
}

@test "a CPU that goes and comes" {
	local cpu=/sys/devices/system/cpu/cpu1/online metrics=ns paranoid old

	in_lab || skip "only the lab's CPUs are switched off"
	[[ -w $cpu ]] || skip "no second CPU that can be switched off"
	! has_event instructions || metrics='cycles instructions ns'
	# Debian's kernels have a third level, which takes CAP_SYS_ADMIN.
	paranoid=/proc/sys/kernel/perf_event_paranoid
	old=$(<$paranoid)
	echo 2 >$paranoid
	cat >"$T/script" <<'EOF'
set -e
"$TARGET" run "$P/alu10" 10 1 1
echo 0 >$cpu
"$TARGET" run "$P/alu10" 10
echo 1 >$cpu
sleep 1
"$TARGET" run "$P/alu10" 10 1 1
EOF
	# shellcheck disable=SC2086 # words
	TARGET=$TARGET cpu=$cpu profile alu10 $metrics -- bash "$T/script"
	((status == 0))
	json_is "$sound and all(.[]; .run_cnt == 30 and .measured == 30 and .lost == 0)"
	# It starts with the CPU absent.
	echo 0 >"$cpu"
	printf 'set -e\necho 1 >%s\nsleep 1\n"%s" run "%s" 10 1 1\n' "$cpu" "$TARGET" "$P/alu10" \
		>"$T/script"
	# shellcheck disable=SC2086 # words
	profile alu10 $metrics -- bash "$T/script"
	json_is "$sound and all(.[]; .run_cnt == 10 and .measured == 10)"

	# Where the events may not be opened any more, runs there are lost, and the CPU is named.
	echo 3 >$paranoid
	echo 0 >"$cpu"
	bpfcost -j prog profile pinned "$P/alu10" ns page-faults -- bash "$T/script"
	echo 1 >"$cpu"
	echo "$old" >$paranoid
	((status == 0))
	json_is "$sound and all(.[]; .run_cnt == 10)"
	if [[ -s $T/err ]]; then
		grep -q '^CPU 1 came online and its events cannot be opened: .*EACCES' "$T/err"
		json_is 'all(.[]; .lost == 10 and .lost_read == 10)'
	else
		json_is 'all(.[]; .measured == 10)'
	fi
}
