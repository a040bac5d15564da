#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# prog compare, on files that are made here: no program is loaded. How good its statistics are is
# checked by compare/statistics.

load usage

setup() {
	need_command jq
	cd "$T" || return
}

# A file of prog bench. FILTERs change it.
file() { # NAME VALUES [FILTER]
	jq -n "[$2] as \$values | {
		format: \"bpfcost-bench-1\", version: \"0.1.0\",
		machine: {kernel: \"6.1.0\", arch: \"x86_64\", cpu: \"a CPU\", online_cpus: \"0-3\",
			bpf_jit_enable: 1},
		statistics: false, count: (\$values | length), on_cpu: 1, object: \"fw.bpf.o\",
		programs: [{name: \"fw\", type: \"xdp\", id: 7, tag: \"0123456789abcdef\", repeat: 100,
			retval: 2, ratio: 2.01, reliable: true,
			metrics: [{metric: \"instructions\", unit: \"instructions\", gross: 0, net: 0,
				floor: 500, floor_p10: 500, floor_p90: 500, estimate: false,
				shared: false, measurements: (\$values | map(
					{runs: 100, value: ., mean: (. + 0.5)}))}]}]
		} | ${3-.}" >"$1"
}

# Does the comparison of old and new say so?
compares() { # STATUS FILTER ARG...
	local want=$1 filter=$2

	shift 2
	bpfcost -j prog compare old new "$@"
	((status == want)) || fail "$*: exit status $status: $(<out)$(<err)"
	[[ ! -s err ]] || fail "$*: wrote to stderr: $(<err)"
	[[ $(jq -n "[inputs] | length == 1 and (.[0] | ($filter))" out) == true ]] ||
		fail "not: $filter"$'\n'"$(<out)"
	# People get the same status.
	bpfcost prog compare old new "$@"
	((status == want)) || fail "$*: exit status $status without -j"
	[[ ! -s err ]] || fail "$*: wrote to stderr: $(<err)"
}

ten='range(10) | 600'

@test "equal files are equal: 0.00 %, and none is slower" {
	file old "$ten"
	file new "$ten"
	compares 0 '.slower == [] and .threshold == 0 and .differences == [] and
		(.programs[0] | .name == "fw" and .object == "fw.bpf.o" and .reliable and
		(.metrics[0] | .difference == 0 and .p == 1 and .exact and (.significant | not)
		and .enough and .old.net == 100 and .new.net == 100 and .old.gross == 600
		and .old.low == 100 and .old.high == 100 and .old.measurements == 10))' threshold 0
	grep -Eq '^  instructions +100\.00 +100\.00 +0\.00 % ~ +1\.0000' out
	grep -q '^Nothing got slower by more than 0 %' out
	[[ $(<out) != *slower:* ]]
}

@test "one instruction more is found, and is one percent of net" {
	file old "$ten"
	file new 'range(10) | 601'
	# R has no exact p where there are ties. Of C(20, 10) divisions two are as far out.
	compares 1 '(.slower | length) == 1 and (.slower[0] | .name == "fw" and
		.object == "fw.bpf.o" and .metric == "instructions" and .difference == 1) and
		(.programs[0].metrics[0] | .difference == 1 and .significant and .slower and
		(.p - 2 / 184756 | fabs) < 1e-9)' threshold 0
	grep -q '^Slower: fw, instructions by 1.00 %$' out
	# More than P: one is not more than one.
	compares 1 '.slower | length == 1' threshold 0.99
	compares 0 '.slower == []' threshold 1
	compares 0 '(has("slower") or has("threshold") | not) and
		(.programs[0].metrics[0] | .significant and (.slower | not))'
	# The other way round it got faster.
	mv old tmp && mv new old && mv tmp new
	compares 0 '.slower == [] and (.programs[0].metrics[0] | .significant and
		.difference < 0)' threshold 0
}

@test "what is not significant is marked, and is not slower" {
	file old '600, 610, 620, 630, 640, 650, 660, 670, 680, 690'
	file new '605, 615, 625, 635, 645, 655, 665, 675, 685, 695'
	# R: wilcox.test(old, new)$p.value is 0.739364350819983
	compares 0 '.programs[0].metrics[0] | .difference > 3 and (.significant | not) and
		(.p - 0.739364350819983 | fabs) < 1e-6 and
		.old.low == 110 and .old.high == 180 and .old.confidence == 0.978516' threshold 0
	grep -Eq ' ~ +0\.7394 ' out
}

@test "times that round to 0.00 % do not differ" {
	file old 'range(10) | 100000' '.programs[0].metrics[0] |= (.metric = "wall_ns" | .unit = "ns"
		| del(.floor, .floor_p10, .floor_p90))'
	file new 'range(10) | 100001' '.programs[0].metrics[0] |= (.metric = "wall_ns" | .unit = "ns"
		| del(.floor, .floor_p10, .floor_p90))'
	compares 0 '.programs[0].metrics[0] | .p < 0.001 and (.significant | not)' threshold 0
	# A count that is so is one more.
	for f in old new; do
		jq '.programs[0].metrics[0] |= (.metric = "instructions" | .unit = "instructions")' \
			$f >tmp
		mv tmp $f
	done
	compares 1 '.programs[0].metrics[0] | .significant' threshold 0
}

@test "too few measurements to say anything: a warning" {
	file old '600, 600, 600'
	file new '900, 900, 900'
	compares 0 '.programs[0].metrics[0] | (.enough | not) and (.significant | not) and
		.p == 0.1' threshold 0
	grep -q 'too few: 3 and 3 measurements cannot show a difference' out
	file old '600, 600, 600, 600'
	file new '900, 900, 900, 900'
	compares 1 '.programs[0].metrics[0] | .enough and .significant' threshold 0
	run -1 grep 'too few' out
}

@test "programs are matched by name and object, not by id" {
	file old "$ten" '.programs += [.programs[0] | .name = "gone"] | .programs[0].id = 99'
	file new "$ten" '.programs = [(.programs[0] | .name = "came"), .programs[0],
		{name: "broken", type: "xdp", error: "it cannot"}]'
	compares 0 '(.programs | map(.name)) == ["fw"] and
		.only_old == [{name: "gone", object: "fw.bpf.o"}] and
		.only_new == [{name: "came", object: "fw.bpf.o"},
			{name: "broken", object: "fw.bpf.o", error: "it cannot"}]'
	grep -qx "OLD only ('old'): fw.bpf.o:gone" out
	grep -qx "NEW only ('new'): fw.bpf.o:came" out
	grep -qx "NEW only ('new'): fw.bpf.o:broken, not measured: it cannot" out
	# What is on both sides, and could be measured on none, is on neither side only.
	file old "$ten" '.programs += [{name: "broken", type: "xdp", error: "it cannot"}]'
	cp old new
	compares 0 '(.programs | map(.name)) == ["fw"] and (.only_old | map(.name)) == ["broken"]'
	grep -qx "OLD ('old'): fw.bpf.o:broken, not measured: it cannot" out
	grep -qx "NEW ('new'): fw.bpf.o:broken, not measured: it cannot" out
	# Two of one name, in their order.
	file old "$ten" '.programs += [.programs[0] | .metrics[0].measurements[].value = 700]'
	cp old new
	compares 0 '.programs | map(.metrics[0] | [.old.net, .new.net]) == [[100, 100], [200, 200]]'
	# Another object is another program.
	file old "$ten"
	file new "$ten" '.object = "other.bpf.o"'
	refuses "have no measured program in common (name and object file; with 'force', the" \
		prog compare old new
	compares 0 '.programs | length == 1' force
	file new "$ten" 'del(.object)'
	refuses "have no measured program in common" prog compare old new
}

@test "other machines, metrics and units are compared only when forced, which is said" {
	local filter text

	file old "$ten"
	while IFS=@ read -r filter text; do
		file new "$ten" "$filter"
		refuses "'old' and 'new' differ in more than what was measured: $text" \
			prog compare old new
		[[ $(jq -r .error out) == *'to compare them all the same: force' ]]
		compares 0 '.differences | length >= 1' force
		grep -q "^Forced, though they differ: $text" out || fail "$filter: $(<out)"
	done <<-'EOF'
		.machine.kernel = "6.2.0"@kernel: '6.1.0' in 'old', '6.2.0' in 'new'
		.machine.arch = "aarch64"@architecture: 'x86_64' in 'old', 'aarch64' in 'new'
		.machine.cpu = "b"@CPU: 'a CPU' in 'old', 'b' in 'new'
		.machine.online_cpus = "0"@online CPUs: '0-3' in 'old', '0' in 'new'
		.machine.bpf_jit_enable = 0@bpf_jit_enable: '1' in 'old', '0' in 'new'
		del(.machine.bpf_jit_enable)@bpf_jit_enable: '1' in 'old', 'unknown' in 'new'
		.version = "9.9"@version of bpfcost: '0.1.0' in 'old', '9.9' in 'new'
		.statistics = true@statistics on before: 'false' in 'old', 'true' in 'new'
		.programs[0].metrics += [.programs[0].metrics[0] | .metric = "x"]@'fw': the metric 'x' is in 'new' only
		.programs[0].metrics[0].unit = "x"@'fw': the metric 'instructions' is in 'instructions' in 'old', in 'x' in 'new'
	EOF
	# No metric in common is nothing to compare, but not an error when forced.
	file new "$ten" '.programs[0].metrics[0].metric = "x"'
	refuses "the metric 'instructions' is in 'old' only; 'fw': the metric 'x' is in 'new' only" \
		prog compare old new
}

@test "files that are cut off, foreign, or hold what is no number" {
	local filter text

	file old "$ten"
	refuses "cannot open 'nope': No such file or directory (ENOENT)" prog compare old nope
	refuses "cannot open 'nope'" prog compare nope old
	refuses "there are no files *.json in '.'" prog compare old .
	refuses "'/dev/null' is no file of 'bpfcost -j prog bench'" prog compare old /dev/null
	refuses "two files of 'bpfcost -j prog bench' are missing: OLD NEW, or: history DIR" \
		prog compare old
	refuses "OLD NEW, or: history DIR" prog compare
	refuses "prog compare runs no command" prog compare old old -- true
	: >new
	refuses "'new' is cut off" prog compare old new
	for size in 1 100 "$(($(wc -c <old) - 2))"; do
		head -c "$size" old >new
		refuses "'new' is cut off: it ends within its JSON" prog compare old new
	done
	cat old old >new
	refuses "'new' has more than one JSON document" prog compare old new
	echo 'not JSON' >new
	refuses "'new' is no JSON, from its byte" prog compare old new
	head -c 1000 /dev/zero >new
	refuses "'new' is " prog compare old new
	while IFS='|' read -r filter text; do
		file new "$ten" "$filter"
		refuses "$text" prog compare old new
		refuses "$text" prog compare new old
		refuses "$text" prog compare new old force
	done <<-'EOF'
		[]|'new' was not written by 'bpfcost -j prog bench': it is no JSON object
		{}|it has no 'format'
		{a: 1}|it has no 'format'
		{error: "no program"}|'new' holds an error instead of measurements: no program
		.format = "bpfcost-bench-9"|'new' has the format 'bpfcost-bench-9', and this bpfcost reads
		del(.machine)|it has no 'machine'
		del(.programs)|it has no 'programs'
		.programs = {}|it has no 'programs'
		.programs = [1]|a program is no object
		del(.programs[0].name)|a program has no name
		del(.programs[0].metrics)|a program has no metrics
		.programs[0].metrics[0].measurements = []|a metric has no name, unit or measurements
		del(.programs[0].metrics[0].unit)|a metric has no name, unit or measurements
		del(.programs[0].metrics[0].floor_p10)|a floor has no spread
		.programs[0].metrics[0].measurements[3].value = "600"|measurement 4 of the metric 'instructions' of 'fw' is no number
		.programs[0].metrics[0].measurements[3].value = null|measurement 4 of the metric 'instructions' of 'fw' is no number
		del(.programs[0].metrics[0].measurements[0].value)|measurement 1 of the metric
		.programs[0].metrics[0].measurements[3].value = -1|measurement 4 of the metric 'instructions' of 'fw' is -1
		.programs[0].metrics[0].measurements[].value = 0|the median of the metric 'instructions' of 'fw' is 0: it was not counted
	EOF
	# Bytes that are no UTF-8 would not be in what -j prints, either.
	file new "$ten"
	sed -i 's/"fw"/"f\xcaw"/' new
	refuses "'new' is no JSON, from its byte" prog compare old new
	# Names go to a terminal; so do facts, and errors.
	file new "$ten" '.programs[0].name = "a\u001b[2J"'
	refuses "a program has no name" prog compare old new
	file new "$ten" '.programs[0].metrics[0].metric = "a\u001b[2J"'
	refuses "a metric has no name, unit or measurements" prog compare old new
	file new "$ten" '.object = "a\nb"'
	refuses "the object's name is none" prog compare old new
	file new "$ten" '.machine.cpu = "a\u001b[2J"
		| .programs += [{name: "x", error: "b\u001b[2J"}]'
	compares 0 true force
	run -1 grep -q $'\e' out
	# jq writes no NaN and no infinity; others do. No run takes as much as the largest numbers,
	# whose sum is infinite.
	for value in 1e308 2e18; do
		file new "$ten" ".programs[0].metrics[0].measurements[].value = $value"
		refuses "measurement 1 of the metric 'instructions' of 'fw' is " prog compare old new
	done
	for value in -1 1e308; do
		file new "$ten" ".programs[0].metrics[0].floor = $value"
		refuses "the floor of 'instructions' of 'fw' is no number" prog compare old new
	done
	file new "$ten" '.programs[0].metrics[0].measurements[0].value = "XXX"'
	sed -i 's/"XXX"/NaN/' new
	refuses "measurement 1 of the metric 'instructions' of 'fw' is nan" prog compare old new
	sed -i 's/NaN/Infinity/' new
	refuses "measurement 1 of the metric 'instructions' of 'fw' is inf" prog compare old new
	sed -i 's/Infinity/1e999/' new
	refuses "'new'" prog compare old new
	sed -i 's/1e999/600/; s/"floor": 500/"floor": NaN/' new
	refuses "the floor of 'instructions' of 'fw' is no number" prog compare old new
}

@test "events that may be 0 are compared from 0" {
	file old 'range(10) | 0' '.programs[0].metrics[0] |= (.metric = "llc_misses" | .unit = "events"
		| .floor = 0 | .floor_p10 = 0 | .floor_p90 = 0)'
	cp old new
	compares 0 '.programs[0].metrics[0] | .difference == 0' threshold 0
	jq '.programs[0].metrics[0].measurements[].value = 3' old >new
	compares 1 '.slower == [{name: "fw", object: "fw.bpf.o", metric: "llc_misses"}] and
		(.programs[0].metrics[0] | has("difference") | not)' threshold 5
	grep -qx 'Slower: fw, llc_misses from 0' out
}

@test "the noise of floors is no difference, and none to have percents of" {
	# One floor for both: their mean, 505.
	file old "$ten"
	file new "$ten" '.programs[0].metrics[0] |= (.floor = 510 | .floor_p10 = 510
		| .floor_p90 = 511)'
	compares 0 '.programs[0].metrics[0] | .difference == 0 and .old.net == 95 and .new.net == 95
		and (.of_gross | not)'
	# Another kernel may have another floor.
	jq '.machine.kernel = "6.2.0"' new >tmp && mv tmp new
	compares 0 '.programs[0].metrics[0] | .old.net == 100 and .new.net == 90' force
	# Net is 1, and the floor moves by 20.
	file old 'range(10) | 501' '.programs[0].metrics[0].floor_p90 = 520'
	file new 'range(10) | 506' '.programs[0].metrics[0].floor_p90 = 520'
	compares 0 '.programs[0].metrics[0] | .of_gross and (.difference - 500 / 501 | fabs) < 1e-5'
	grep -q '(percent of gross)' out
}

@test "unreliable measurements are marked" {
	file old "$ten" '.programs[0].reliable = false'
	file new "$ten"
	compares 0 '.programs[0].reliable | not'
	grep -q 'unreliable: twice as many runs did not take twice as long in OLD' out
	file new "$ten" '.programs[0].metrics[0] |= (.estimate = true | .shared = true)'
	compares 0 true
	grep -q '(estimate)   (others ran it)$' out
}

@test "a directory is all of its files" {
	mkdir old new
	for i in 1 2; do
		file "old/$i.json" '600, 600, 600, 600' \
			".programs[0].metrics[0] |= (.floor = 498 + $i | .floor_p10 = .floor | .floor_p90 = .floor)"
		file "new/$i.json" "600 + $i, 600 + $i, 600 + $i, 600 + $i"
	done
	# The mean of the floors, 499.5, and then that of the two sides.
	compares 1 '.programs[0].metrics[0] | .old.measurements == 8 and .new.measurements == 8 and
		.old.net == 100.25 and .new.net == 101.75 and .new.low == 101.25 and
		.new.high == 102.25' threshold 1
	mv new/2.json new.json
	compares 1 '.programs[0].metrics[0] | .new.measurements == 4' threshold 0
	for filter in '.machine.kernel = "6.2.0"@kernel is .6.2.0., not .6.1.0.' \
		'.programs += [.programs[0]]@other programs or metrics' \
		'.programs = []@other programs or metrics' \
		'.programs[0].metrics[0].unit = "x"@the metric .instructions. of .fw.'; do
		jq "${filter%@*}" new.json >new/2.json
		bpfcost prog compare old new force
		((status == 2)) && grep -q "^Error: 'new/2.json' does not go with the files before it: ${filter#*@}" err ||
			fail "$filter: $(<err)"
	done
	echo '{' >new/2.json
	refuses "'new/2.json' is cut off" prog compare old new
}

@test "the threshold" {
	local p

	file old "$ten"
	file new "$ten"
	for p in '' x 1% -1 1e2 nan . 1.2.3; do
		[[ $p == -1 ]] || refuses "threshold: '$p' is not a number of percent (2, or 0.5)" \
			prog compare old new threshold "$p"
	done
	compares 0 '.threshold == 2.5' force threshold 2.5
}

# A directory with a file for each VALUE.
history() { # VALUE...
	local i=0 value

	rm -rf dir
	mkdir dir
	for value; do
		i=$((i + 1))
		file "dir/$i-abc.json" "$value, $value + 1, $value - 1"
	done
}

historical() { # FILTER ARG...
	bpfcost -j prog compare history dir "${@:2}"
	((status == 0)) || fail "exit status $status: $(<out)$(<err)"
	[[ $(jq -n "[inputs] | length == 1 and (.[0] | ($1))" out) == true ]] ||
		fail "not: $1"$'\n'"$(<out)"
	bpfcost prog compare history dir "${@:2}"
	((status == 0)) && [[ ! -s err ]]
}

@test "history: where a series changed" {
	# The tenth file comes after the ninth.
	history 600 600 600 600 600 600 600 600 600 601 601 601
	echo other >dir/README
	historical '(.files | length) == 12 and .files[9] == "dir/10-abc.json" and
		(.series | length) == 1 and (.series[0] | .name == "fw" and .object == "fw.bpf.o" and
		.metric == "instructions" and .net[0] == 100 and .net[11] == 101 and
		(.changes | length) == 1 and (.changes[0] | .file == "dir/10-abc.json" and
		.previous == "dir/9-abc.json" and .before == 100 and .after == 101 and
		.difference == 1 and .p == 0))'
	grep -Eq '^  10-abc\.json +100\.00 -> 101\.00 instructions \(\+1\.00 %\), p +<0\.0001; the one before: 9-abc\.json$' out
	grep -qx '12 files, 1 series (a program and a metric each), 1 change' out
	# Up, and down again.
	history 600 600 600 650 650 650 600 600 600
	historical '.series[0].changes | map(.file) == ["dir/4-abc.json", "dir/7-abc.json"]'
	history 600 603 598 601 599 602 600 597 601 600 599 602
	historical '.series[0].changes == []'
	grep -qx '12 files, 1 series (a program and a metric each), 0 changes' out
	# The last one alone is no change yet, but what a CI wants to know of the last commit.
	history 600 600 600 600 601
	historical '.series[0] | .changes == [] and (.newest | .file == "dir/5-abc.json" and
		.previous == "dir/4-abc.json" and .before == 100 and .after == 101 and
		.difference == 1 and .p == 0)'
	grep -Eq '^  5-abc\.json +100\.00 -> 101\.00 instructions \(\+1\.00 %\), p +<0\.0001; the one before: 4-abc\.json; the newest file alone: measure it again$' out
	grep -qx '5 files, 1 series (a program and a metric each), 0 changes, 1 in the newest file alone' out
	# It is looked at beside those since the last change, of which there must be some.
	history 600 600 600 600 650 650 650 650 651
	historical '.series[0] | (.changes | map(.file)) == ["dir/5-abc.json"] and
		.newest.file == "dir/9-abc.json" and .newest.before == 150'
	history 600 600 600 600 650 650 650 651
	historical '.series[0] | has("newest") | not'
	history 600 603 598 601 599 602 600 597 601 600 599 603
	historical '.series[0] | .changes == [] and (has("newest") | not)'
	# What was not in the newest file has no newest.
	history 600 600 600 600 601 600
	jq '.programs[0].name = "other"' dir/6-abc.json >tmp && mv tmp dir/6-abc.json
	historical '[.series[] | has("newest")] == [false, false]'
	history 600 600 601
	historical '.series[0].changes == []'
	grep -q '^Too few: ' out
}

@test "history: programs come and go, machines change, files are bad" {
	history 600 600 600 600 600 600
	for i in 4 5 6; do
		jq '.programs += [.programs[0] | .name = "young"]' "dir/$i-abc.json" >tmp
		mv tmp "dir/$i-abc.json"
	done
	historical '.series | map([.name, (.net | length)]) == [["fw", 6], ["young", 3]]'
	jq '.machine.kernel = "6.2.0"' dir/6-abc.json >tmp && mv tmp dir/6-abc.json
	refuses "the files differ in more than what was measured: kernel: '6.1.0' in 'dir/5-abc.json', '6.2.0' in 'dir/6-abc.json'" \
		prog compare history dir
	historical '.differences | length == 1' force
	grep -q "^Forced, though they differ: kernel: '6.1.0'" out
	echo '{' >dir/3-abc.json
	refuses "'dir/3-abc.json' is cut off" prog compare history dir
	mkdir empty
	refuses "there are no files *.json in 'empty'" prog compare history empty
	refuses "cannot read the directory 'nope': No such file or directory" prog compare history nope
	refuses "'history' needs a directory" prog compare history
	# A file of that name.
	file history "$ten"
	bpfcost prog compare ./history history
	((status == 0))
}
