#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# prog stats beside others: nobody disturbs the other, every run is counted, and the switch is left
# as it was, or as the administrator had it set meanwhile. And with less than all rights.
# shellcheck disable=SC2016,SC2154 # for other shells; variables of counts.bash

load counts

setup_file() {
	load_targets
	cat "$SWITCH" >"$BATS_FILE_TMPDIR/switch"
	# Ordinary users have to reach it.
	ORDINARY=$(mktemp -d /tmp/bpfcost.XXXXXX)
	export ORDINARY
	chmod 755 "$ORDINARY"
	cp "$BPFCOST" "$ORDINARY/bpfcost"
	chmod 755 "$ORDINARY/bpfcost"
}

teardown_file() {
	umount_bpffs
	rm -rf "$ORDINARY"
	cat "$BATS_FILE_TMPDIR/switch" >"$SWITCH" 2>/dev/null || :
}

teardown() {
	end_jobs
	cat "$T"/started* 2>/dev/null | xargs -r kill -KILL 2>/dev/null || :
	cat "$BATS_FILE_TMPDIR/switch" >"$SWITCH"
	wait
	is_off
}

# A command is started once the first sample is taken. It ends with bpfcost, or with the test.
in_background() { # N ARG...
	local n=$1

	shift
	"$BPFCOST" "$@" -- bash -c 'echo $$ >"$0"; exec sleep 600' "$T/started$n" \
		>"$T/out$n" 2>"$T/err$n" 3>&- &
	pid[n]=$!
	while [[ ! -s $T/started$n ]]; do
		[[ -d /proc/${pid[n]} ]] || fail "it has ended: $(<"$T/out$n")$(<"$T/err$n")"
		sleep 0.05
	done
}

# Ends those in the background; their status is the command's.
end_background() { # PID...
	local one

	kill -TERM "$@"
	for one; do
		status=0
		wait "$one" || status=$?
		((status == 143)) || fail "exit status $status"
	done
}

# Does the process have a stats fd?
holds() { # PID
	local fd

	for fd in "/proc/$1/fd/"*; do
		[[ $(readlink "$fd") != *bpf-stats* ]] || return 0
	done
	return 1
}

# Somebody holds the switch, and is $holder.
hold_switch() {
	"$BPFCOST" stats enable >/dev/null 2>&1 3>&- &
	holder=$!
	until holds "$holder"; do
		[[ -d /proc/$holder ]] || fail "it has ended"
		sleep 0.05
	done
}

@test "two at once, and one that is killed in the middle" {
	local pid=()

	in_background 1 -j prog stats id "$alu10"
	in_background 2 -j prog stats id "$alu10"
	stats id "$alu10" -- bash -c '"$0" run "$1" 10; kill -KILL "$2"; "$0" run "$1" 20' \
		"$TARGET" "$P/alu10" "${pid[2]}"
	json_is "runs($alu10) == 30"
	end_background "${pid[1]}"
	cp "$T/out1" "$T/out"
	json_is "runs($alu10) == 30"
	# Whoever is killed has written nothing, and holds nothing.
	[[ ! -s $T/out2 ]]
	! in_lab || [[ $("$BPFCOST" -j stats show | jq -r .state) == off ]]
}

@test "the sysctl changes under it, and stays as the administrator has set it" {
	stats id "$alu10" -- bash -c 'for v in 1 0 1 0 1 0; do
			echo $v >"$2" || exit 9
			"$0" run "$1" 10 || exit 9
		done' "$TARGET" "$P/alu10" "$SWITCH"
	json_is "runs($alu10) == 60 and .switch_was_off == false"
	[[ $(<"$SWITCH") == 0 ]]
	echo 1 >"$SWITCH"
	stats id "$alu10" -- bash -c 'echo 0 >"$2"; "$0" run "$1" 10; echo 1 >"$2"' \
		"$TARGET" "$P/alu10" "$SWITCH"
	json_is "runs($alu10) == 10"
	[[ $(<"$SWITCH") == 1 ]]
	echo 0 >"$SWITCH"
}

@test "a kernel without stats fds: the sysctl, for as long as it takes" {
	local forbid=("$TARGET" forbid 32 22) # BPF_ENABLE_STATS, EINVAL

	"${forbid[@]}" "$BPFCOST" -j prog stats id "$alu10" -- \
		bash -c '"$0" run "$1" 10; cat "$2" >&2' "$TARGET" "$P/alu10" "$SWITCH" \
		>"$T/out" 2>"$T/err"
	json_is "runs($alu10) == 10 and .switch == \"sysctl\" and .switch_was_off == false"
	[[ $(head -n 1 "$T/err") == 'the switch of the statistics is held by the sysctl'* ]]
	[[ $(<"$T/err") == *$'\n1\n'*'is set back to 0' ]] || fail "$(<"$T/err")"
	[[ $(<"$SWITCH") == 0 ]]
	# Somebody switches it off: that is said, as runs are missing.
	"${forbid[@]}" "$BPFCOST" -j prog stats id "$alu10" -- \
		bash -c '"$0" run "$1" 10; echo 0 >"$2"; "$0" run "$1" 10' "$TARGET" "$P/alu10" \
		"$SWITCH" >"$T/out" 2>"$T/err"
	if in_lab; then
		json_is "runs($alu10) == 10 and .switch_was_off"
		"${forbid[@]}" "$BPFCOST" prog stats id "$alu10" -- \
			bash -c 'echo 0 >"$0"' "$SWITCH" >"$T/out" 2>"$T/err"
		grep -qx 'the statistics were switched off meanwhile: runs are missing' "$T/out"
	fi
	[[ $(<"$SWITCH") == 0 ]]
	# Signals that would end others at once (SIGUSR1) end it as well; and the programs by which
	# it looks whether it is still on are not taken for others'.
	if in_lab; then
		"${forbid[@]}" "$BPFCOST" -j prog stats interval 0.3 -- \
			bash -c 'sleep 1; kill -USR1 $PPID; sleep 60' >"$T/out" 2>"$T/err" || :
		[[ $(ask -s 'length > 2 and all(.[]; .unseen == 0)' "$T/out") == true ]] ||
			fail "$(show)"
		[[ $(<"$SWITCH") == 0 && $(<"$T/err") == *'is set back to 0' ]] || fail "$(<"$T/err")"
	fi
	# Where it cannot be written, that is the message.
	cat >"$T/readonly" <<-'EOF'
		mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys || exit 99
		exec "$@"
	EOF
	status=0
	unshare -m bash "$T/readonly" "${forbid[@]}" "$BPFCOST" -j prog stats duration 0.1 \
		>"$T/out" 2>"$T/err" || status=$?
	((status != 99)) || skip "may not mount"
	# Unless somebody else holds it, which may be natively.
	((status == 1)) || { ! in_lab && jq -e '.switch == "foreign"' "$T/out" >/dev/null; } ||
		fail "exit status $status: $(<"$T/out")$(<"$T/err")"
	((status == 0)) || [[ $(jq -r .error "$T/out") == *'cannot be set: Read-only file system (EROFS)'* ]] ||
		fail "$(<"$T/out")$(<"$T/err")"
	# With stats fds it does not matter.
	unshare -m bash "$T/readonly" "$BPFCOST" -j prog stats id "$alu10" -- \
		"$TARGET" run "$P/alu10" 10 >"$T/out"
	json_is "runs($alu10) == 10 and .switch == \"fd\""
}

@test "without CAP_SYS_ADMIN: beside somebody who holds the switch" {
	local text="cannot switch the kernel's statistics on: Operation not permitted (EPERM); it"
	local few=("$TARGET" caps cap_bpf "$BPFCOST" -j prog stats pinned "$P/alu10")
	local holder i

	# Others hold it natively, now and then.
	if in_lab; then
		run -1 "${few[@]}" duration 0.05
		[[ $(jq -r .error <<<"$output") == "$text needs CAP_SYS_ADMIN, for example: sudo" ]]
	fi
	hold_switch
	"${few[@]}" -- bash -c '"$0" run "$1" 10' "$TARGET" "$P/alu10" >"$T/out" 2>"$T/err"
	json_is "runs($alu10) == 10 and .switch == \"foreign\" and .switch_was_off == false"
	grep -q '^the switch of the statistics is held by somebody else, and can end' "$T/err"
	# Whether its zero would be one takes more, and that is said.
	json_is '.blind_known == false'
	"$TARGET" caps cap_bpf "$BPFCOST" prog stats pinned "$P/alu10" -- true >"$T/out" 2>&1
	grep -q '^what is not counted .* it needs CAP_SYS_ADMIN' "$T/out" || fail "$(<"$T/out")"
	# What is loaded counts as locked memory before 5.11, of which there is little.
	for i in 1 2 3 4 5 6; do
		"${few[@]}" -- true >"$T/out" 2>"$T/err"
		json_is 'has("floor")'
	done
	# It ends.
	if in_lab; then
		export -f holds
		"${few[@]}" -- bash -c '"$0" run "$1" 10; kill "$2"
			while holds "$2"; do sleep 0.05; done
			"$0" run "$1" 10' "$TARGET" "$P/alu10" "$holder" >"$T/out" 2>"$T/err"
		json_is "runs($alu10) == 10 and .switch_was_off"
	fi
	# What is not needed is given up: opening by id takes CAP_SYS_ADMIN, handing on signals to a
	# command that became somebody else CAP_KILL. The command keeps its own.
	bpfcost prog stats id "$alu10" -- bash -c 'grep -h -e CapPrm -e CapEff "/proc/$PPID/status" \
		/proc/self/status'
	[[ $(head -n 2 "$T/out") == $'CapPrm:\t0000000000200020\nCapEff:\t0000000000200020' &&
		$(sed -n 4p "$T/out") == "$(grep CapEff /proc/self/status)" ]] ||
		fail "$(<"$T/out")"
	# By id, or all of them, it takes more.
	run -1 --separate-stderr "$TARGET" caps cap_bpf "$BPFCOST" prog stats id "$alu10" duration 1
	[[ ! $output && $stderr == *"cannot open program $alu10: Operation not permitted (EPERM); "* ]]
	run -1 --separate-stderr "$TARGET" caps '' "$BPFCOST" prog stats name alu10 duration 1
	[[ ! $output && $stderr == *'cannot list programs: '*'it needs CAP_SYS_ADMIN'* ]]
}

@test "an ordinary user: what its own processes have open, also where /proc hides others" {
	local fifo=$ORDINARY/fifo id hide='' holder files
	# shellcheck disable=SC2016 # for the other shell
	local go='echo >"$0"; while [ -e "$0" ]; do sleep 0.05; done'

	new_fifo() {
		rm -f "$fifo"
		mkfifo "$fifo"
		chmod 666 "$fifo"
	}
	own() { # ARG...
		new_fifo
		"$TARGET" own 65534 70 "$fifo" "$ORDINARY/bpfcost" "$@" -- \
			sh -c "$go" "$fifo" >"$T/out" 2>"$T/err"
	}
	# Nobody holds it, or that cannot be seen: what is not counted is not shown as a zero.
	if in_lab; then
		run -1 own -j prog stats
		[[ $(jq -r .error "$T/out") == *'it needs CAP_SYS_ADMIN, for example: sudo; nothing was counted' ]]
	fi
	hold_switch
	for hide in '' 1; do
		if [[ $hide ]]; then
			cat >"$T/hide" <<-'EOF'
				mount -t proc -o hidepid=2 proc /proc || exit 99
				exec "$@"
			EOF
			status=0
			new_fifo
			unshare -m bash "$T/hide" "$TARGET" own 65534 70 "$fifo" \
				"$ORDINARY/bpfcost" -j prog stats by owner -- \
				sh -c "$go" "$fifo" >"$T/out" 2>"$T/err" || status=$?
			((status != 99)) || break
		else
			own -j prog stats by owner || fail "$(<"$T/out")$(<"$T/err")"
		fi
		id=$(head -n 1 "$T/err")
		# No floor without loading anything, and no list of ids.
		[[ $(ask -n "[inputs] | length == 1 and (.[0] | .switch == \"foreign\"
			and (has(\"floor\") or has(\"unseen\") | not)
			and (.programs | length == 1)
			and (prog($id) | .run_cnt == 70 and .type == \"socket_filter\"
				and (has(\"net_per_run\") or has(\"name\") | not)
				and (.owners | map(.comm) == [\"target\"])))" "$T/out") == true ]] ||
			fail "$(show)$(<"$T/err")"
		grep -q '^only programs that your own processes have open can be read; ' "$T/err"
	done
	run -1 own prog stats id "$id"
	[[ $(<"$T/err") == *"but they have none that was asked for"* ]] || fail "$(<"$T/err")"
	# An interval in which nothing ran is not the end, and not a row of zeros either.
	"$TARGET" own 65534 70 "$fifo" "$ORDINARY/bpfcost" -j prog stats interval 0.3 -- \
		sh -c 'sleep 1; echo >"$0"; sleep 1' "$fifo" >"$T/out" 2>"$T/err" ||
		fail "$(<"$T/out")$(<"$T/err")"
	[[ $(jq -s 'map(.run_cnt) | add == 70 and .[0] == 70' "$T/out") == true ]] ||
		fail "$(<"$T/out")"
	[[ $(grep -c '^nothing was counted so far: the statistics are off, or nothing ran$' \
		"$T/err") == 1 ]] || fail "$(<"$T/err")"
	own -d prog stats
	grep -Eq '^sample 2: [0-9.]+ ms of CPU in .*; programs read from /proc/PID/fdinfo: 1$' \
		"$T/err" || fail "$(<"$T/err")"
	own prog stats by owner
	[[ $(<"$T/out") == *'not all processes could be looked at for what they have open'* ]]
	[[ $(<"$T/out") == *'What can be seen of BPF takes '* ]]
	[[ $(<"$T/out") == *'net is not known: the floor cannot be measured here'* ]]
	# Too few files for that are an error, and no program that is gone.
	for files in 5 6 7 8 9 10 11 12; do
		status=0
		new_fifo
		"$TARGET" own 65534 70 "$fifo" sh -c 'ulimit -n "$0"; exec "$@"' "$files" \
			"$ORDINARY/bpfcost" -j prog stats -- \
			sh -c 'echo | tee "$0"; while [ -e "$0" ]; do sleep 0.05; done' "$fifo" \
			>"$T/out" 2>"$T/err" ||
			status=$?
		# Where it is no static program, loading it can take more.
		[[ $(<"$T/err") != *'loading shared libraries'* ]] || continue
		[[ $(jq "(.error // \"\" | endswith(\"(EMFILE)\")) == ($status == 1)
			and (has(\"error\") or .run_cnt == 70)" "$T/out") == true ]] ||
			fail "$files: $(<"$T/out")$(<"$T/err")"
	done
	kill "$holder"
}

@test "a clock that jumps" {
	in_lab || skip "the clock is only set in the lab"
	local now

	now=$(date +%s)
	bpfcost -j prog stats id "$alu10" interval 0.3 -- bash -c '
		"$0" run "$1" 10
		date -s "2031-01-01 00:00:00" >/dev/null && sleep 0.5 && "$0" run "$1" 10
		date -s "2021-01-01 00:00:00" >/dev/null && sleep 0.5 && "$0" run "$1" 10
		date -s "$2" >/dev/null' "$TARGET" "$P/alu10" "@$now"
	((status == 0)) || fail "$(show)$(<"$T/err")"
	ask -es "all(.[]; sound and .window_ns < 60e9 and (prog($alu10) | .marks == []))
		and (map(runs($alu10)) | add == 30) and (map(.time) | max - min > 1e8)" "$T/out" \
		>/dev/null || fail "$(show)"
	# A program that is loaded then is as new as any.
	bpfcost -j prog stats -- bash -c 'date -s "2001-01-01 00:00:00" >/dev/null
		"$0" load "$1" "$2" && id=$("$0" id "$2/alu1") &&
			until grep -qs "prog_id:.$id\$" "/proc/$PPID/fdinfo/"*; do sleep 0.05; done
		"$0" run "$2/alu1" 5; rm -r "$2"
		date -s "$3" >/dev/null' "$TARGET" "$TESTDIR/cli/targets.bpf.o" "$BPFFS/later" \
		"@$now"
	((status == 0)) || fail "$(show)$(<"$T/err")"
	json_is "prog($(sed -n 's/ alu1$//p' "$T/err")) | .run_cnt == 5 and .marks == [\"new\"]"
}

@test "everybody at once" {
	local pid=() jobs=() tools='bpftool sysctl' i

	need_bpftool
	need_command sysctl
	"$BPFTOOL" prog show >/dev/null
	# It wants a terminal; and on arm64 more than 5.10 has, where it ends.
	! in_lab || need_command bpftop
	if [[ $(type -P bpftop) && ${WHERE-} != lab/5.10/arm64 ]]; then
		TERM=xterm "$TESTDIR/counts/pty" 40 120 bpftop <<<'end 0' >"$T/bpftop" 2>&1 3>&- &
		jobs+=($!)
		tools+=' bpftop'
		for ((i = 0; i < 100; i++)); do
			! "$BPFCOST" -j stats show | jq -e 'any(.holders[]; .comm == "bpftop")' \
				>/dev/null || break
			sleep 0.2
		done
		((i < 100)) || fail "bpftop holds nothing: $(<"$T/bpftop")"
	fi
	while :; do "$BPFTOOL" prog show >/dev/null 2>&1; done 3>&- &
	jobs+=($!)
	while :; do
		sysctl -q -w kernel.bpf_stats_enabled=1
		sysctl -q -w kernel.bpf_stats_enabled=0
	done 3>&- &
	jobs+=($!)
	echo "# beside $tools" >&3
	in_background 1 -j prog stats id "$alu10"
	in_background 2 -j prog stats id "$alu10" interval 0.1
	for ((i = 0; i < 3; i++)); do
		stats id "$alu10" -- "$TARGET" run "$P/alu10" 100 5
		json_is "runs($alu10) == 500"
	done
	end_background "${pid[@]}"
	ask -es "all(.[]; sound) and (map(runs($alu10)) | add == 1500)" "$T/out2" >/dev/null ||
		fail "$(show "$T/out2")"
	cp "$T/out1" "$T/out"
	json_is "runs($alu10) == 1500"
	kill -KILL "${jobs[@]}"
	wait "${jobs[@]}" 2>/dev/null || :
	# One that was about to write may still do so.
	sleep 0.3
	echo 0 >"$SWITCH"
}
