#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# prog stats: programs whose zero is none, and who they belong to.
# shellcheck disable=SC2016,SC2154 # for other shells; variables of counts.bash

load counts

teardown() {
	rm -rf "$BPFFS/more"
	end_jobs
	is_off
}

# Runs bpfcost prog stats while an object's programs are loaded, and a pinned program of it runs.
with() { # OPTION OBJECT PROGRAM REPEAT
	local name id

	"$TARGET" with "$TESTDIR/counts/$2.bpf.o" "$BPFFS/more" bash -c \
		'"$BPFCOST" $1 prog stats -- "$2" run "$3" "$4" >"$5"' x "$1" "$TARGET" \
		"$BPFFS/more/$3" "$4" "$T/out" >"$T/ids" 2>"$T/err" || return
	while read -r id name; do
		declare -g "$name=$id"
	done <"$T/ids"
	rm -r "$BPFFS/more"
}

@test "only reached by tail call" {
	with -j blind caller 10 || fail "$(<"$T/err")"
	json_is "(prog($callee) | .run_cnt == 0 and (.blind | length == 1) and (.blind[0]
			| .kind == \"tail_call\"
			and (.reason | test(\"reached by tail call .*prog array [0-9]+.*caller\"))))
		and (prog($caller) | .run_cnt == 10 and (has(\"blind\") | not))
		and (prog($neither) | has(\"blind\") | not)"
	with '' blind caller 10
	grep -Eq "^ *$callee sched_cls +callee: reached by tail call \(it is in the prog array " \
		"$T/out" || fail "$(<"$T/out")"
	# It is not one of those of which nothing else is to be said.
	run -1 grep -E "^ *($neither|$caller) .*:" "$T/out"
	# One that is called directly as well is marked behind its name.
	with '' blind callee 10
	grep -Eq "^ *$callee sched_cls +10 .*  callee \[tail_call\]$" "$T/out" || fail "$(<"$T/out")"
}

@test "works in a callback of a timer" {
	with -j timer arms_timer 1 || skip "the kernel has no bpf_timer (5.15)"
	json_is "(prog($arms_timer) | .run_cnt == 1 and (.blind | length == 1) and (.blind[0]
			| .kind == \"callback\" and (.reason | test(\"map [0-9]+ has a bpf_timer\"))))
		and (prog($no_timer) | has(\"blind\") | not)"
	# It does nothing but that, and is not counted as one that did not run.
	with '' timer no_timer 3
	grep -Eq "^ *$arms_timer sched_cls +arms_timer: its map [0-9]+ has a bpf_timer: what" \
		"$T/out" || fail "$(<"$T/out")"
	run -1 grep -E "^ *$no_timer .*:" "$T/out"
}

@test "replaced by freplace" {
	local ext

	"$TARGET" replace "$P/alu0" "$TESTDIR/cli/replace.bpf.o" true >/dev/null 2>&1 ||
		skip "the kernel refuses to attach a replacement"
	"$TARGET" replace "$P/alu0" "$TESTDIR/cli/replace.bpf.o" \
		"$BPFCOST" -j prog stats -- "$TARGET" run "$P/alu0" 10 >"$T/out"
	ext=$(jq '[.programs[] | select(.type == "ext") | .id] | max' "$T/out")
	# It is counted as the one that it replaces. Which one that is links tell since 5.13.
	json_is "(prog($ext) | .run_cnt == 0 and (.blind | map(.kind) == [\"extension\"]))
		and runs($alu0) == 10"
	if [[ $(uname -r) != 5.10.* ]]; then
		json_is "(prog($ext) | .blind[0].reason | contains(\" program $alu0 \"))
			and (prog($alu0) | .blind | map(.kind) == [\"replaced\"]
				and (.[0].reason | startswith(\"program $ext replaces\")))"
	fi
	"$TARGET" replace "$P/alu0" "$TESTDIR/cli/replace.bpf.o" \
		"$BPFCOST" prog stats -- "$TARGET" run "$P/alu0" 10 >"$T/out"
	grep -Eq '^ *[0-9]+ ext +replacement: replaces a function of .*: its runs are in that' \
		"$T/out" || fail "$(<"$T/out")"
	# Afterwards there is nothing to be said any more.
	stats id "$alu0" duration 0.05
	json_is "prog($alu0) | has(\"blind\") | not"
}

@test "by owner: who has it open" {
	"$TARGET" many 2 bash -c '"$BPFCOST" -j prog stats by owner -- true >"$1"; echo $PPID' x \
		"$T/out" >"$T/pid"
	json_is "([.programs[] | select(.name == \"many_0\") | .owners[]
			| select(.pid == $(<"$T/pid")) | [.comm, .prog_fds, .link_fds]]
			== [[\"target\", 1, 0]])
		and (prog($alu0) | .owners | all(.[]; .comm != \"target\"))
		and all(.programs[].owners[]; (.pid | type == \"number\") and .cgroup != \"\")"
	# However deep it is.
	local name cgroup=$T/cgroup
	printf -v name 'n%.0s' {1..200}
	mkdir "$cgroup"
	if mount -t cgroup2 cgroup "$cgroup" && mkdir -p "$cgroup/$name/$name/$name"; then
		"$TARGET" many 1 bash -c 'echo $PPID >"$2/cgroup.procs" || exit
			"$BPFCOST" -j prog stats by owner -- true >"$1"
			"$BPFCOST" prog stats id "$(jq ".programs | map(.id) | max" "$1")" by owner -- \
				true >"$1.plain"' x "$T/out" "$cgroup/$name/$name/$name"
		rmdir "$cgroup/$name/$name/$name" "$cgroup/$name/$name" "$cgroup/$name"
		umount "$cgroup"
		json_is "any(.programs[].owners[];
			.comm == \"target\" and .cgroup == \"/$name/$name/$name\")"
	fi
	# Pinned, it belongs to no process; we are none.
	bpfcost prog stats id "$alu0" by owner -- "$TARGET" run "$P/alu0" 3
	((status == 0)) || fail "$(<"$T/err")"
	in_lab || return 0
	grep -q '^ *no process that can be seen has it or a link to it open$' "$T/out" ||
		fail "$(<"$T/out")"
}
