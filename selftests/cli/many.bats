#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# prog profile: many programs, parts of them, and what is kept besides sums.
# shellcheck disable=SC2154 # variables of cli.bash

load cli

@test "many programs: a row each, by the first metric; one that cannot is listed with the reason" {
	local nobtf

	bpfcost -j prog profile pinned "$P/alu10" pinned "$P/alu100" ns -- \
		bash -c "'$TARGET' run '$P/alu10' 20 && '$TARGET' run '$P/alu100' 20"
	((status == 0)) || fail "exit status $status: $(<"$T/err")"
	# By what they took: an interrupt can make alu10 the dearer one.
	json_is 'length == 2 and (map(.name) | sort) == ["alu10", "alu100"]
		and (map(.metrics[0].value) | . == (sort | reverse))
		and all(.[]; keys_unsorted == ["id", "tag", "name", "type", "func", "metrics"])
		and all(.[]; .metrics[0] | .run_cnt == 20 and .measured == 20 and (has("id") | not))'
	# The same program named twice is one row.
	bpfcost -j prog profile pinned "$P/alu10" id "$("$TARGET" id "$P/alu10")" ns duration 0.05
	json_is 'length == 1'
	# Among all there is one without BTF, which does not stop the others.
	nobtf=$("$TARGET" plain "$BPFFS/nobtf") || skip "cannot load a program without BTF"
	bpfcost -j prog profile all ns -- "$TARGET" run "$P/alu10" 20
	((status == 0)) || fail "exit status $status: $(<"$T/out") $(<"$T/err")"
	json_is "any(.[]; .id == $nobtf and (.error | contains(\"BTF\")))
		and any(.[]; .name == \"alu10\" and .metrics[0].run_cnt == 20)
		and all(.[]; .name | startswith(\"bpfcost_\") | not)"
	bpfcost prog profile all ns -- "$TARGET" run "$P/alu10" 20
	[[ $(<"$T/out") == *"not profiled: "*BTF* ]] || fail "$(<"$T/out")"
	rm "$BPFFS/nobtf"
}

@test "interval: programs that are loaded and unloaded come and go" {
	local id

	(
		sleep 1.5
		"$TARGET" load "$TESTDIR/cli/targets.bpf.o" "$BPFFS/later" >"$T/ids"
		"$TARGET" run "$BPFFS/later/alu1" 20
		sleep 2
		rm -r "$BPFFS/later"
		sleep 8
	) &
	bpfcost -j prog profile all ns interval 0.5 duration 8
	((status == 0)) || fail "exit status $status: $(<"$T/out") $(<"$T/err")"
	id=$(sed -n 's/ alu1$//p' "$T/ids")
	jq -s -e --argjson id "$id" '(.[0] | all(.[]; .id != $id))
		and any(.[]; any(.[]; .id == $id)) and (.[-1] | all(.[]; .id != $id))
		and all(.[]; all(.[]; has("time")))' "$T/out" >/dev/null ||
		fail "program $id did not come and go: $(jq -c 'map(.id)' "$T/out")"
}

@test "func: a subprogram, each of them, or none of that name" {
	local p=$P/with_subprograms

	profile with_subprograms func sub_global ns -- "$TARGET" run "$p" 20
	json_is "$sound and (.[0] | .func == \"sub_global\" and .run_cnt == 40)"
	profile with_subprograms func sub_static ns -- "$TARGET" run "$p" 20
	json_is "$sound and (.[0] | .func == \"sub_static\" and .run_cnt == 20)"
	fails 2 "has no function 'nonesuch'; it has: with_subprograms, sub_global, sub_static" \
		prog profile pinned "$p" func nonesuch ns
	fails 2 "'func all' needs every run" prog profile pinned "$p" func all sample 2 ns
	fails 2 "'func all' does not go with" prog profile pinned "$p" func all histogram ns
	fails 2 "'func all' does not go with" prog profile pinned "$p" func all by task ns
	bpfcost -j prog profile pinned "$p" func all ns -- "$TARGET" run "$p" 20
	json_is 'length == 3
		and (map({(.func): .metrics[0].run_cnt}) | add)
		    == {"with_subprograms": 20, "sub_global": 40, "sub_static": 20}
		and all(.[]; .metrics[0] | .with_self == .measured)'
	is_exact || return 0
	# Of which the functions themselves are 1 instruction each more than an empty one, and what
	# the main function has of its own is what is left without them.
	self_exact() {
		bpfcost -j prog profile pinned "$p" func all instructions -- "$TARGET" run "$p" 20
		jq -e '(map({(.func): .metrics[0]}) | add) | (.sub_global.net == 40)
			and (.sub_static.net == 20) and (.sub_static.self == 20)
			and (.with_subprograms | .net - .self == 60)' "$T/out" >/dev/null
	}
	self_exact || self_exact || self_exact || fail "$(<"$T/out")"
	# Inclusive, it is what is measured without looking at its parts, but for 2 instructions a
	# call: a trampoline is reached by a short branch or by a long one.
	inclusive() {
		local alone

		profile with_subprograms instructions -- "$TARGET" run "$p" 20
		alone=$(jq '.[0].net' "$T/out")
		bpfcost -j prog profile pinned "$p" func all instructions -- "$TARGET" run "$p" 20
		jq -e "map(select(.func == \"with_subprograms\")) | .[0].metrics[0].net - $alone
			| fabs <= 2 * 3 * 20" "$T/out" >/dev/null
	}
	inclusive || inclusive || inclusive || fail "$(<"$T/out")"
}

@test "histogram: the net of the first metric" {
	profile alu1000 histogram ns -- "$TARGET" run "$P/alu1000" 50
	json_is "$sound"
	json_is '.[0].histogram | ([.buckets[].runs] | add) == 50
		and .p50 <= .p90 and .p90 <= .p99 and .p99 <= .max
		and all(.buckets[]; .from <= .to and (.to - .from) * 8 <= .from + 8)'
	is_exact || return 0
	profile alu1000 histogram instructions ns -- "$TARGET" run "$P/alu1000" 20
	json_is '(.[0].histogram.buckets[0] | .from <= 1000 and 1000 <= .to)
		and (.[1] | has("histogram") | not)'
	profile alu10 histogram instructions -- "$TARGET" run "$P/alu10" 20
	json_is '.[0].histogram | .p50 == 10 and (.buckets[0] == {"from": 10, "to": 10, "runs": 20}
		or .max > 10)'
}

@test "by task: a row for each process, and one for those that did not fit" {
	profile alu10 by task ns -- "$TARGET" run "$P/alu10" 50
	json_is "$sound and (.[0].tasks | length == 1 and (.[0] | .comm == \"target\"
		and .measured == 50)) and .[0].tasks[0].value == .[0].value"
	bpfcost prog profile pinned "$P/alu10" by task ns -- "$TARGET" run "$P/alu10" 50
	[[ $(<"$T/out") == *tgid*comm*target*50* ]] || fail "$(<"$T/out")"
	fails 2 "expected 'by task', got: 'by cpu'" prog profile pinned "$P/alu10" by cpu ns
	profile alu10 by task ns -- "$TARGET" forks "$P/alu10" 1100
	json_is "$sound and (.[0] | .run_cnt == 1100 and ([.tasks[].measured] | add) == .measured
		and any(.tasks[]; .tgid == null and .comm == \"(others)\" and .measured > 0)
		and (.tasks | length) <= 1024)"
}

@test "too many metrics, too few files, nonsense: each is said" {
	local metrics

	mapfile -t metrics < <(printf 'r%x\n' {1..200})
	fails 2 "at most 16 metrics" prog profile pinned "$P/alu10" "${metrics[@]}"
	fails 2 "sample: '0'" prog profile pinned "$P/alu10" sample 0 ns
	fails 2 "interval: '0'" prog profile pinned "$P/alu10" interval 0 ns
	fails 2 "did you mean 'cycles'" prog profile pinned "$P/alu10" cylces
	has_event instructions || return 0
	# Ten events for each CPU need more than 20 files, and the hard limit cannot be raised.
	(
		ulimit -S -n 20
		ulimit -H -n 20
		"$TARGET" caps cap_sys_admin,cap_bpf,cap_perfmon,cap_dac_override "$BPFCOST" -j \
			prog profile pinned "$P/alu10" cycles instructions cycles:k instructions:k \
			r8 r11 r8:k r11:k r8:u r11:u ns duration 0.05 >"$T/out" || :
	)
	json_is '.error | test("RLIMIT_NOFILE|open files")'
	# With CAP_SYS_RESOURCE it is raised.
	(
		ulimit -S -n 20
		bpfcost -j prog profile pinned "$P/alu10" cycles instructions cycles:k \
			instructions:k r8 r11 r8:k r11:k r8:u r11:u ns duration 0.05
		((status == 0)) || fail "$(<"$T/out")"
	)
}

@test "a program that is unloaded while it is measured" {
	"$TARGET" load "$TESTDIR/cli/targets.bpf.o" "$BPFFS/gone" >/dev/null
	bpfcost -j prog profile pinned "$BPFFS/gone/alu10" ns -- \
		bash -c "'$TARGET' run '$BPFFS/gone/alu10' 20 && rm -r '$BPFFS/gone'"
	((status == 0)) || fail "exit status $status: $(<"$T/out")"
	json_is "$sound and (.[0] | .run_cnt == 20 and .measured == 20)"
}
