#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# stats show: is the switch on, and who holds it.
# shellcheck disable=SC2034 # used by switch.bash

load switch

@test "off; on by the sysctl only; off again" {
	shows 0 off '.state == "off" and .on == false and .observed and .sysctl == 0
		and .holders == [] and .fds == 0 and .complete and .unseen == 0
		and .hidden == false and .nested == false
		and .threads > 1 and .all_threads >= 1'
	[[ $plain == $'off\nsysctl: kernel.bpf_stats_enabled = 0' ]]
	echo 1 >"$SYSCTL"
	shows 0 'on, held by the sysctl only; nobody known is measuring; switch it off with: sysctl kernel.bpf_stats_enabled=0' \
		'.state == "sysctl only" and .on and .observed and .sysctl == 1 and .holders == []'
	[[ $plain == *$'\nsysctl: kernel.bpf_stats_enabled = 1' ]]
	# What it says is to be done helps.
	echo 0 >"$SYSCTL"
	shows 0 off '.state == "off" and .sysctl == 0'
	# It was read only.
	is_off
}

@test "a holder: name, pid, fds, start, cgroup" {
	local before now

	before=$(date +%s)
	start hold 3
	now=$(date +%s)
	shows 0 'on, held by 1 process' ".state == \"held\" and .on and .observed and .sysctl == 0
		and .fds == 3 and (.files == 3 or .files == null) and (.holders | length == 1)
		and (.holders[0] | .pid == $pid and .comm == \"tool\" and .fds == 3
			and .started > $before - 60 and .started < $now + 60
			and (.cgroup | type == \"string\" or . == null)
			and has(\"container\") and has(\"runtime\"))"
	[[ $plain == *"$pid tool "*' 3 20'[0-9][0-9]-* ]] || fail "$plain"
	[[ $plain == *$'\nstats fds: 3'* ]]
	# And with the sysctl.
	echo 1 >"$SYSCTL"
	shows 0 'on, held by 1 process and by the sysctl' '.state == "held" and .sysctl == 1'
	stop KILL
	shows 0 'on, held by the sysctl only;*' '.state == "sysctl only"'
	echo 0 >"$SYSCTL"
	shows 0 off '.state == "off"'
}

@test "several holders: two, one killed; shared; passed; in flight" {
	local first second

	start hold 1
	first=$holder
	start hold 1
	second=$holder
	shows 0 'on, held by 2 processes' ".fds == 2 and (.files == 2 or .files == null)
		and ([.holders[].pid] == ([$first, $second] | sort))"
	kill -KILL "$first"
	wait "$first" || :
	shows 0 'on, held by 1 process' "[.holders[].pid] == [$second]"
	stop
	start share 3
	shows 0 'on, held by 3 processes' '.fds == 3 and (.files == 1 or .files == null)'
	[[ $plain == *'stats fds: 3, of 1 open file'$'\n'* || $(jq .files "$T/out") == null ]]
	stop
	is_off
	start pass
	shows 0 'on, held by 1 process' "[.holders[].pid] == [$pid]"
	stop
	is_off
	start flight
	shows 0 'on, but no holder visible: *' '.state == "no holder visible" and .on and .observed
		and .holders == [] and .sysctl == 0'
	stop
	is_off
	shows 0 off .observed
}

@test "names that others chose do no harm" {
	local name=$'a) b\n\e[2J'

	start named "$name"
	shows 0 'on, held by 1 process' '.holders[0].comm == "a) b\n\u001b[2J"'
	[[ $plain == *"$pid"' a) b\n\x1b[2J '* && $plain != *$'\e'* ]] || fail "$plain"
	stop
	# What is no text is JSON all the same.
	start named $'caf\xe9\xff'
	shows 0 'on, held by 1 process' '.holders[0].comm == "caf\ufffd\ufffd"'
	[[ $plain == *' caf\xe9\xff '* ]] || fail "$plain"
	bpfcost -p stats show
	json_is '.holders | length == 1'
	(($(wc -l <"$T/out") > 10))
}

@test "looking holds nothing, and leaves nothing behind" {
	# Whoever opens a stats fd dies of it.
	under="$TOOL without KILL"
	shows 0 off '.state == "off"'
	echo 1 >"$SYSCTL"
	shows 0 'on, held by the sysctl only;*' .observed
	# Where neither that nor a program's run is allowed, the sysctl tells.
	[[ $(<"$SYSCTL") == 1 ]]
	echo 0 >"$SYSCTL"
	under=''
	# The program is gone.
	[[ ! $BPFTOOL || $("$BPFTOOL" prog show) != *bpfcost_observe* ]]
}

@test "an ordinary user: what can be said, and what not" {
	under="$TOOL nobody"
	if [[ $(</proc/sys/kernel/unprivileged_bpf_disabled) == 0 ]]; then
		skip "ordinary users may run programs here"
	fi
	shows 1 'not known: no holder is visible, and it cannot be observed from here' \
		'.state == "not known" and .on == null and .observed == false and .sysctl == 0
		and .complete == false and .unseen > 0
		and (.error | test("Operation not permitted \\(EPERM\\); it needs CAP_BPF"))'
	[[ $plain == *'not complete: the fds of '*' process'*' may not be looked at; it needs CAP_SYS_PTRACE, for example: sudo' ]]
	start hold 1
	shows 1 'not known: *' '.holders == []'
	stop
	echo 1 >"$SYSCTL"
	shows 0 'on, held by the sysctl only; *' \
		'.on and .observed == false and .sysctl == 1 and .complete == false'
	echo 0 >"$SYSCTL"
	# What belongs to the same user can be looked at.
	run -99 "$TOOL" nobody "$TOOL" hold 1
	[[ $output == *'Operation not permitted'* ]]
	start keep "$TOOL" nobody "$TOOL" hold 0
	shows 0 'on, held by 1 process' ".on and .observed == false and .holders[0].pid == $pid
		and .complete == false"
}

@test "hidepid: processes that /proc hides are not passed over" {
	start hold 1
	# Root sees all.
	under="$TOOL proc hidepid=2"
	shows 0 'on, held by 1 process' '.complete and .hidden == false'
	under="$TOOL proc hidepid=2 $TOOL nobody"
	shows 1 'not known: *' '.complete == false and .hidden and .holders == []
		and .all_threads > .threads and .threads >= 1'
	[[ $plain == *$'\nnot complete: /proc hides processes (hidepid)\nvisible are '+([0-9])' of about '+([0-9])' threads on this machine' ]] ||
		fail "$plain"
	# Processes that are there, but closed.
	under="$TOOL proc hidepid=1 $TOOL nobody"
	shows 1 'not known: *' '.complete == false and .unseen > 1 and .hidden == false'
}

@test "another pid namespace: a holder outside of it is not visible" {
	no_leak_check
	start hold 1
	under="$TOOL pidns"
	shows 0 'on, but no holder visible: *' '.state == "no holder visible" and .nested
		and .complete == false and .holders == [] and .all_threads > .threads'
	[[ $plain == *'processes outside of this pid namespace are not visible'* ]]
	stop
	is_off
	shows 0 off '.nested and .complete == false'
}

@test "a read-only sysctl, and no /proc at all" {
	under="$TOOL readonly"
	start hold 1
	shows 0 'on, held by 1 process' '.sysctl == 0'
	stop
	is_off
	! is_sanitized || return 0
	under="$TOOL noproc"
	shows 0 off '.state == "off" and .sysctl == null and .hidden'
	[[ $plain == *'kernel.bpf_stats_enabled cannot be read: No such file or directory (ENOENT)' ]]
	start hold 1
	shows 0 'on, but no holder visible: *' '.holders == [] and .complete == false'
}

@test "few fds; output that cannot be written" {
	start hold 20
	under="$TOOL files 16"
	shows 0 'on, held by 1 process' '.state == "held" and .fds == 20'
	for under in "$TOOL files 5" "$TOOL files 4"; do
		bpfcost -j stats show
		((status == 1)) && json_is '.error | test("Too many open files \\(EMFILE\\)")'
		[[ ! -s $T/err ]] || fail "$(<"$T/err")"
	done
	status=0
	"$BPFCOST" stats show >/dev/full 2>"$T/err" || status=$?
	((status == 1)) && [[ $(<"$T/err") == 'Error: cannot write the result: No space left'* ]]
	status=0
	"$BPFCOST" -j stats show >&- 2>"$T/err" || status=$?
	((status == 1)) && [[ $(<"$T/err") == 'Error: cannot write the result: '* ]]
	# Without the standard streams it opens what it needs elsewhere.
	status=0
	"$TOOL" closed 02 "$BPFCOST" -j stats show >"$T/out" || status=$?
	((status == 0)) && json_is '.state == "held"'
}
