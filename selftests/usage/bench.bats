#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# prog bench: its arguments, and bad input. What it measures is checked in cli/bench.

load usage

setup_file() {
	mount_bpffs
	"$TARGET" load "$TESTDIR/cli/targets.bpf.o" "$BPFFS/t" >/dev/null
}

teardown_file() {
	umount_bpffs
}

setup() {
	targets=$TESTDIR/cli/targets.bpf.o
	bench=$TESTDIR/cli/bench.bpf.o
	# Statistics may be refused, or in use by others; nothing here is about them.
	quick=(repeat 10 count 1)
}

teardown() {
	end_jobs
}

# One document on stdout, which says what FILTER asks for.
json_is() { # FILTER
	[[ $(jq -n "[inputs] | length == 1 and (.[0] | ($1))" "$T/out") == true ]] ||
		fail "not: $1"$'\n'"$(<"$T/out")$(<"$T/err")"
}

until_true() { # COMMAND
	local _

	for _ in {1..100}; do
		# shellcheck disable=SC2086 # words
		if $1 >/dev/null; then
			return
		fi
	done
	fail "$1: not once in 100 tries"
}

@test "a program is missing, or is none" {
	refuses "a program is missing: { id ID | tag TAG | name NAME | pinned FILE } or all, or an" \
		prog bench
	# bpftool has no command that begins so.
	refuses "a program is missing" prog b
	refuses "a program is missing" p ben
	refuses "OLD NEW, or: history DIR" prog c
	refuses "cannot read '/nonexistent.o': No such file or directory (ENOENT)" \
		prog bench /nonexistent.o
	refuses "cannot read '': No such file or directory" prog bench ''
	refuses "there is no program with id 4294967295" prog bench id 4294967295
	refuses "'id' needs a value" prog bench id
	refuses "no loaded program has the name 'nope'" prog bench name nope
	refuses "programs match this handle" prog bench name a_name_longer_t
}

@test "files that are no objects with programs" {
	echo text >"$T/text.o"
	refuses "'$T/text.o' is no object file with BPF programs" prog bench "$T/text.o"
	: >"$T/empty.o"
	refuses "'$T/empty.o' is no object file with BPF programs" prog bench "$T/empty.o"
	head -c 1000 "$targets" >"$T/cut.o"
	refuses "'$T/cut.o' is no object file with BPF programs" prog bench "$T/cut.o"
	refuses "' is no object file with BPF programs" prog bench "$BPFCOST"
	refuses "'$T' is no object file with BPF programs" prog bench "$T"
}

@test "an object that does not load: the verifier's last lines, not a page" {
	fails 1 "the verifier refuses the program 'refused': Permission denied (EACCES): " \
		prog bench "$TESTDIR/cli/refused.bpf.o"
	[[ $(jq -r .error "$T/out") == *"invalid mem access 'map_value_or_null'"* ]]
	# The whole log has some hundred lines.
	(($(jq -r .error "$T/out" | tr -d '\n' | wc -c) < 1000))
	[[ $(jq -r .error "$T/out") != *processed* ]]
}

@test "numbers and words" {
	local n

	for n in '' x 0 +1 1.5 100000001 ns; do
		refuses "repeat: '$n' is not a number from 1 to 100000000" \
			prog bench "$targets" repeat "$n"
	done
	for n in '' x 0 1.5 10001; do
		refuses "count: '$n' is not a number from 1 to 10000" \
			prog bench "$targets" count "$n"
	done
	refuses "unknown metric 'cylces'; did you mean 'cycles'?" prog bench "$targets" cylces
	refuses "unknown metric 'id'" prog bench "$targets" ns id 1
	refuses "unknown option '-x'" prog bench "$targets" -x
	refuses "'--' needs a command behind it" prog bench "$targets" --
	bpfcost -j prog bench "$targets" format go
	((status == 2)) && json_is '.error == "'"'format go' is no JSON: leave -j out"'"'
}

@test "data_in and ctx_in" {
	head -c 14 /dev/zero >"$T/short"
	head -c 100 /dev/zero >"$T/packet"
	: >"$T/empty"
	refuses "data_in: cannot open '/nonexistent': No such file" \
		prog bench "$targets" data_in /nonexistent
	refuses "ctx_in: cannot open '/nonexistent'" prog bench "$targets" ctx_in /nonexistent
	refuses "data_in: '$T/empty' is empty" prog bench "$targets" data_in "$T/empty"
	refuses "data_in: '/dev/zero' has more than" prog bench "$targets" data_in /dev/zero
	refuses "data_in: cannot read '$T'" prog bench "$targets" data_in "$T"
	refuses "standard input cannot be both" prog bench "$targets" data_in - ctx_in -
	# A context of 100 bytes, or of the right size with a field set that may not be.
	head -c 192 /dev/zero | tr '\0' '\1' >"$T/context"
	refuses "the kernel refuses to run a program of type socket_filter with 64 bytes of data and 192 of context: " \
		prog bench pinned "$BPFFS/t/alu0" ctx_in "$T/context"
	head -c 5 /dev/zero >"$T/short"
	refuses "the kernel refuses 5 bytes of data: Invalid argument (EINVAL); programs of type socket_filter need more than the 14 bytes of an Ethernet header" \
		prog bench pinned "$BPFFS/t/alu0" data_in "$T/short"
	# Also where another program comes first that needs a command.
	bpfcost -j prog bench "$TESTDIR/cli/command.bpf.o" data_in "$T/short"
	((status == 2)) || fail "exit status $status: $(<"$T/out")"
	json_is '.error | contains("(nothing): the kernel refuses 5 bytes of data: Invalid argument")'
	# From standard input, as with bpftool. What the program returns tells the size.
	"$BPFCOST" -j prog bench pinned "$BPFFS/t/with_subprograms" "${quick[@]}" data_in - \
		<"$T/packet" >"$T/out"
	json_is '.programs[0].retval == 3 * (100 - 14) + 4'
	bpfcost -j prog bench pinned "$BPFFS/t/with_subprograms" "${quick[@]}" data_in "$T/packet"
	json_is '.programs[0].retval == 3 * (100 - 14) + 4'
	bpfcost -j prog bench pinned "$BPFFS/t/with_subprograms" "${quick[@]}"
	json_is '.programs[0].retval == 3 * (64 - 14) + 4'
}

# Numbers as bytes, the lowest first.
le() { # BYTES N...
	local i bytes=$1 n

	shift
	for n; do
		for ((i = 0; i < bytes; i++)); do
			# shellcheck disable=SC2059 # that is how a byte is printed
			printf "\\x$(printf %02x $((n >> 8 * i & 255)))"
		done
	done
}

@test "types, each with the context that it takes" {
	# struct __sk_buff: len, pkt_type, mark.
	le 4 0 0 77 >"$T/mark"
	"$BPFCOST" -j prog bench "$bench" "${quick[@]}" ctx_in "$T/mark" >"$T/out" 2>"$T/err"
	json_is '.programs[] | select(.name == "mark") | .retval == 77'
	# A program that this context is not for is a row that says so.
	json_is '[.programs[] | select(.name == "size") | has("error")] == [true]'
	# Arguments of a raw tracepoint; zeros without.
	le 8 1234 >"$T/arguments"
	bpfcost -j prog bench "$bench" "${quick[@]}" ctx_in "$T/arguments"
	json_is '.programs[] | select(.name == "first_argument") | .retval == 1234'
	bpfcost -j prog bench "$bench" "${quick[@]}"
	json_is '[.programs[] | select(has("error"))] == []'
	json_is '.programs[] | select(.name == "first_argument")
		| .retval == 0 and .type == "raw_tracepoint"'
	json_is '.programs[] | select(.name == "size") | .retval == 64 and .type == "xdp"'
}

@test "a program that the kernel cannot run by itself needs a command" {
	local object=$TESTDIR/cli/command.bpf.o

	bpfcost -j prog bench "$object" "${quick[@]}"
	((status == 0))
	json_is '.programs | map(.name) | sort == ["nothing", "on_exec"]'
	json_is '.programs[] | select(.name == "on_exec")
		| (.error | contains("of type tracepoint by itself")) and (has("id") | not)'
	json_is '.programs[] | select(.name == "nothing") | has("error") | not'
	refuses "'-- COMMAND' is for programs that the kernel cannot run by itself" \
		prog bench pinned "$BPFFS/t/alu0" -- touch "$T/ran"
	[[ ! -e $T/ran ]]
}

@test "nothing is left behind, and nothing is pinned" {
	local before

	before=$("$TARGET" ids | sort)
	bpfcost -j prog bench "$bench" "${quick[@]}"
	((status == 0))
	# What others load meanwhile is not ours.
	run -1 grep -F -e first_argument -e tell_ <(comm -13 <(echo "$before") <("$TARGET" ids | sort))
	[[ ! -e /sys/fs/bpf/bpfcost_trace ]]
}

@test "nothing is left behind by kill -9, either" {
	local pid before

	before=$("$TARGET" ids | sort)
	"$BPFCOST" -j prog bench "$bench" count 10000 >"$T/out" 2>"$T/err" &
	pid=$!
	until_true "measures $pid"
	"$TARGET" ids | sort >"$T/meanwhile"
	[[ $(comm -13 <(echo "$before") "$T/meanwhile") == *tell_runs* ]] || fail "$(<"$T/meanwhile")"
	kill -KILL "$pid"
	wait "$pid" || :
	[[ ! -s $T/out ]]
	gone() {
		! comm -13 <(echo "$before") <("$TARGET" ids | sort) |
			grep -F -e first_argument -e tell_ -e bpfcost_empty
	}
	until_true gone
	[[ ! -e /sys/fs/bpf/bpfcost_trace ]]
}

measures() { # PID
	sleep 0.1
	grep -Eqx $'Cpus_allowed_list:\t[0-9]+' "/proc/$1/status"
}

@test "a signal ends it with one document, and what was measured is no result" {
	local signal pid status caps

	for signal in INT TERM; do
		"$BPFCOST" -j prog bench "$targets" count 10000 >"$T/out" 2>"$T/err" &
		pid=$!
		# Until it measures: on one CPU, with CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN.
		until_true "measures $pid"
		caps=$((16#$(sed -n 's/^CapEff:\t*//p' "/proc/$pid/status")))
		(((caps & ~(1 << 39 | 1 << 38 | 1 << 21)) == 0)) || fail "$(<"/proc/$pid/status")"
		kill -s "$signal" "$pid"
		status=0
		wait "$pid" || status=$?
		((status == 1)) || fail "SIG$signal: exit status $status"
		json_is '.error | startswith("interrupted by a signal ('"$signal"')")'
	done
}

@test "plain output" {
	bpfcost prog bench "$targets" count 6 repeat 20
	((status == 0))
	[[ $(head -n 1 "$T/out") == "6 measurements of each program, on CPU "[0-9]*"; $(uname -r) $(uname -m)"* ]]
	grep -Eq '^prog [0-9]+ socket_filter alu100, 20 runs a measurement, returned 0$' "$T/out"
	grep -Eq '^  wall_ns +[0-9.]+ +- +-   [0-9.]+\.\.[0-9.]+ ns$' "$T/out"
	grep -Eq '^  run_time_ns +[0-9.]+ +[0-9.]+ +-?[0-9.]+   [0-9.]+\.\.[0-9.]+ ns$' "$T/out"
	bpfcost prog bench "$targets" count 2 repeat 20
	grep -q '(50 %: too few)$' "$T/out"
}

@test "format go: lines that benchstat reads" {
	local cpus

	cpus=$(getconf _NPROCESSORS_ONLN)
	((cpus > 1)) && cpus=-$cpus || cpus=
	bpfcost prog bench "$targets" count 3 repeat 50 format go
	((status == 0))
	grep -qx 'goos: linux' "$T/out"
	grep -Eqx 'goarch: (amd64|arm64)' "$T/out"
	grep -qx 'pkg: targets.bpf.o' "$T/out"
	(($(grep -Ec "^BenchmarkBPF/alu1000$cpus +[1-9][0-9]* +[0-9.-]+ ns/op( +[0-9.-]+ [^ ]+/op)+$" \
		"$T/out") == 3)) || fail "$(<"$T/out")"
	(($(grep -c ^Benchmark "$T/out") == 24))
	# Nothing else but keys and values, and lines of benchmarks.
	run -1 grep -Ev '^(Benchmark[^ ]+ |[a-z]+: )' "$T/out"
}

# The grammar of https://go.dev/design/14313-benchmark-format, which benchstat reads: lines "key: value"
# and lines "BenchmarkName iterations value unit [value unit]...", where iterations are a whole number,
# a name goes on with no lower case letter, and keys begin with one and have no upper case.
@test "format go: every line is of the format's grammar, whatever names there are" {
	local cpus suffix number='-?[0-9]+(\.[0-9]+)?' object="$T/a b"$'\n'"BenchmarkX 1 2 ns.o"

	cpus=$(getconf _NPROCESSORS_ONLN)
	suffix=-$cpus
	((cpus > 1)) || suffix=
	cp "$bench" "$object"
	bpfcost prog bench "$object" "${quick[@]}" format go
	((status == 0)) || fail "$(<"$T/err")"
	grep -qx 'pkg: a b_BenchmarkX 1 2 ns.o' "$T/out"
	run -1 grep -Evx "[a-z][^A-Z ]*: [^ ].*|Benchmark[A-Z][^ ]*$suffix +[1-9][0-9]*( +$number +[^ ]+)+" "$T/out"
	# No unit twice in a line.
	run -1 grep -E '( [^ ]+/op) .*\1( |$)' "$T/out"
	# Two of a name are two benchmarks; benchstat would take them for samples of one.
	"$TARGET" load "$TESTDIR/cli/targets.bpf.o" "$BPFFS/again" >/dev/null
	bpfcost prog bench pinned "$BPFFS/t/alu0" pinned "$BPFFS/again/alu0" pinned "$BPFFS/t/alu1" \
		repeat 10 count 2 format go
	((status == 0)) || fail "$(<"$T/err")"
	[[ $(sed -n 's/^BenchmarkBPF.\([^ ]*\) .*/\1/p' "$T/out" | tr '\n' ' ') == \
		"alu0$suffix alu0#01$suffix alu1$suffix alu0$suffix alu0#01$suffix alu1$suffix " ]] ||
		fail "$(<"$T/out")"
}

@test "a file, and the same file again, compare" {
	bpfcost -j prog bench "$targets" count 5 repeat 100
	((status == 0))
	cp "$T/out" "$T/old"
	bpfcost -j prog compare "$T/old" "$T/old" threshold 0
	((status == 0))
	json_is '(.programs | length == 8) and .slower == [] and
		all(.programs[].metrics[]; .difference == 0 and (.significant | not) and .enough)'
	# A program that is a thousand instructions longer is slower.
	jq '.programs |= (map(select(.name == "alu1000")) | map(.name = "alu0"))' "$T/old" >"$T/new"
	bpfcost -j prog compare "$T/old" "$T/new" threshold 1
	((status == 1))
	json_is '.slower | map(.metric) | index("run_time_ns") != null'
}

@test "runs of others are left out, or said to be in it" {
	local pid

	(($(nproc) > 1)) || skip "there is one CPU only"
	need_command taskset
	"$TARGET" run "$BPFFS/t/alu0" 1000000 100000 1 >/dev/null &
	pid=$!
	# Where they run all the time, no burst is without them; then their runs are counted, too.
	# Unless the other CPU has better to do.
	shared() {
		taskset -c 0 "$BPFCOST" -j prog bench pinned "$BPFFS/t/alu0" repeat 1000 count 2 \
			>"$T/out" 2>"$T/err"
		json_is 'all(.programs[0].metrics[] | select(.metric != "wall_ns");
			.shared == any(.measurements[]; .runs > 1000))'
		jq -e 'any(.programs[0].metrics[]; .shared)' "$T/out"
	}
	shown() {
		taskset -c 0 "$BPFCOST" prog bench pinned "$BPFFS/t/alu0" repeat 1000 count 2 \
			>"$T/out" 2>"$T/err"
		grep -q 'others ran it all the time: their runs are in this$' "$T/out"
	}
	until_true shared
	until_true shown
	kill "$pid"
	# None is left out where nobody else is there.
	wait "$pid" || :
	bpfcost -j prog bench pinned "$BPFFS/t/alu0" repeat 1000 count 2
	json_is 'all(.programs[0].metrics[]; .shared | not)'
}

@test "what is missing without privileges is said" {
	status=0
	"$TARGET" caps cap_net_raw "$BPFCOST" -j prog bench "$targets" >"$T/out" 2>"$T/err" ||
		status=$?
	((status == 1))
	json_is '.error | contains("Operation not permitted (EPERM); it needs CAP_BPF")'
	# Loading and running does not take CAP_SYS_ADMIN; the statistics do, unless they are on.
	status=0
	"$TARGET" caps cap_bpf,cap_perfmon "$BPFCOST" -j prog bench "$targets" "${quick[@]}" \
		>"$T/out" 2>"$T/err" || status=$?
	((status == 0)) || fail "exit status $status: $(<"$T/out")"
	json_is 'all(.programs[].metrics; .[0].metric == "wall_ns")'
	grep -q '^without run_time_ns: .*it needs CAP_SYS_ADMIN' "$T/err" ||
		json_is 'all(.programs[].metrics; .[1].metric == "run_time_ns")'
}

@test "a host that forbids a program, though nothing is missing, is told as such" {
	local command text

	for command in '' "-- true"; do
		status=0
		# BPF_PROG_LOAD, EPERM
		# shellcheck disable=SC2086 # words
		"$TARGET" forbid 5 1 "$BPFCOST" -j prog bench "$TESTDIR/cli/command.bpf.o" $command \
			>"$T/out" 2>"$T/err" || status=$?
		((status == 1))
		text="no capability is missing, so that this host or container forbids one of its programs"
		[[ -z $command ]] || text+="; without -- COMMAND only those are loaded that"
		json_is ".error | contains(\"$text\") and (contains(\"sudo\") | not)"
	done
}
