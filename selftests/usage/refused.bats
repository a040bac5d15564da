#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What a machine may lack or forbid: a message says what, why, and what to do; the status is 1.

load usage

setup_file() {
	mount_bpffs
	"$TARGET" load "$TESTDIR/cli/targets.bpf.o" "$BPFFS/t" >/dev/null
	"$TARGET" plain "$BPFFS/plain" >/dev/null
}

teardown_file() {
	umount_bpffs
}

setup() {
	alu0=(prog profile pinned "$BPFFS/t/alu0")
}

@test "an event that the CPU does not have" {
	"$BPFCOST" -j metric list |
		jq -e '.[] | select(.metric == "instructions") | .available | not' ||
		skip "this CPU counts instructions"
	fails 1 "CPU has no 'cycles' event (ENOENT); try the metric 'ns', which needs no PMU" \
		"${alu0[@]}" cycles
	fails 1 "CPU has no 'instructions' event (ENOENT); try the metric 'ns', which needs no" \
		"${alu0[@]}" duration 1 ns instructions
	fails 1 "CPU has no 'r3' event" "${alu0[@]}" r3
}

@test "a program without BTF" {
	local id

	id=$("$TARGET" id "$BPFFS/plain")
	fails 1 "prog $id (plain): has no BTF, so that its functions have no names to attach to" \
		prog profile id "$id" ns
}

@test "a host that forbids entry and exit programs" {
	local why

	if why=$("$TARGET" traceable "$BPFFS/t/alu0"); then
		skip "this host allows them"
	fi
	[[ $why == 'Operation not permitted' ]]
	fails 1 "(alu0): the kernel refuses entry and exit programs on it: Operation not" \
		"${alu0[@]}" ns
	fails 1 "bpfcost prog stats id " "${alu0[@]}" ns
	fails 1 "the kernel refuses entry and exit programs" "${alu0[@]}" ns -- touch "$T/ran"
	[[ ! -e $T/ran ]]
	bpfcost prog profile all ns
	((status == 1))
	[[ $(<"$T/err") == *'programs can be profiled; the first: '* ]]
}

@test "capabilities" {
	local id

	id=$("$TARGET" id "$BPFFS/t/alu0")
	few() { # CAPABILITIES TEXT ARG...
		local caps=$1

		shift
		# shellcheck disable=SC2016 # for the other shell
		printf '#!/bin/bash\nexec "%s" caps "%s" "%s" "$@"\n' "$TARGET" "$caps" \
			"$BPFCOST" >"$T/few"
		chmod +x "$T/few"
		BPFCOST=$T/few fails 1 "$@"
	}
	few '' 'cannot open program' prog profile id "$id" ns
	few '' 'it needs CAP_SYS_ADMIN, for example: sudo' prog profile id "$id" ns
	few '' 'cannot list programs: Operation not permitted (EPERM); it needs CAP_SYS_ADMIN' \
		prog profile name alu0 ns
	few '' 'cannot list programs' prog profile all ns
	few '' '(alu0): to attach to it takes CAP_SYS_ADMIN, CAP_BPF, CAP_PERFMON' "${alu0[@]}" ns
	few cap_bpf '(alu0): to attach to it takes CAP_SYS_ADMIN, CAP_PERFMON' "${alu0[@]}" ns
	few cap_bpf,cap_perfmon '(alu0): to attach to it takes CAP_SYS_ADMIN, which' "${alu0[@]}" ns
	few cap_bpf,cap_perfmon 'CAP_SYS_ADMIN' prog profile id "$id" ns
}

@test "an ordinary user" {
	need_command setpriv
	local user=(setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs)

	chmod 755 "$BATS_FILE_TMPDIR" "$BATS_RUN_TMPDIR" 2>/dev/null || :
	cp "$BPFCOST" /tmp/bpfcost.$$ && chmod 755 /tmp/bpfcost.$$
	run --separate-stderr "${user[@]}" /tmp/bpfcost.$$ prog profile id \
		"$("$TARGET" id "$BPFFS/plain")" ns
	rm -f /tmp/bpfcost.$$
	((status == 1)) && [[ ! $output && $stderr == 'Error: '*CAP_SYS_ADMIN*sudo* ]]
}
