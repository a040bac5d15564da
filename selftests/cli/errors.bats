#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the kernel can have against a measurement, provoked; and what stays behind: nothing.
# shellcheck disable=SC2016 # for other shells

load cli

@test "already traced, replaced, no BTF, not JITed, without a PMU" {
	local id

	id=$("$TARGET" id "$P/alu0")
	# The other tracers of the program are there for as long as the command that they run.
	broken() { # TEXT HOW...
		local text=$1 real=$BPFCOST BPFCOST=$T/broken

		shift
		{
			echo '#!/bin/bash'
			printf 'exec'
			printf ' %q' "$TARGET" "$@" "$real"
			echo ' "$@"'
		} >"$BPFCOST"
		chmod +x "$BPFCOST"
		fails 1 "$text" prog profile id "$id" ns duration 0.05
	}
	broken "prog $id: already traced as far as the kernel allows: Argument list too long" \
		trace "$P/alu0"
	broken "prog $id: it has been replaced (freplace)" \
		replace "$P/alu0" "$TESTDIR/cli/replace.bpf.o"
	# And all is as before.
	profile alu0 ns duration 0.05

	id=$("$TARGET" plain "$BPFFS/plain")
	fails 1 "prog $id (plain): has no BTF, so that its functions have no names to attach to" \
		prog profile id "$id" ns
	rm "$BPFFS/plain"
	if ! has_event cycles; then
		fails 1 "CPU has no 'cycles' event (ENOENT); try the metric 'ns', which needs no" \
			prog profile pinned "$P/alu0" cycles
	fi
	fails 1 "CPU has no 'node-prefetches' event" prog profile pinned "$P/alu0" ns \
		node-prefetches
}

@test "not JITed" {
	local jit=/proc/sys/net/core/bpf_jit_enable old id

	[[ -w $jit ]] || skip "no sysctl net.core.bpf_jit_enable"
	old=$(<"$jit")
	echo 0 2>/dev/null >"$jit" || skip "the kernel is built with CONFIG_BPF_JIT_ALWAYS_ON"
	"$TARGET" load "$TESTDIR/cli/targets.bpf.o" "$BPFFS/interpreted" >/dev/null || :
	echo "$old" >"$jit"
	[[ -e $BPFFS/interpreted/alu1 ]] || skip "the kernel has no interpreter"
	fails 1 "(alu1): not JITed, so that nothing can be attached to it; switch the JIT on" \
		prog profile pinned "$BPFFS/interpreted/alu1" ns
}

@test "privileges are dropped before the measurement, and the command keeps its own" {
	# CAP_KILL, to hand signals on to a command that became somebody else.
	local kept=$((1 << 5)) own version

	own=$(sed -n 's/^CapEff:\t//p' /proc/self/status)
	# Up to 5.18 the statistics of a program cannot be read without CAP_BPF, see prog_profile.c.
	version=$(uname -r)
	[[ $version =~ ^([0-9]+)\.([0-9]+) ]]
	if ((BASH_REMATCH[1] * 1000 + BASH_REMATCH[2] < 5019)) &&
		[[ $(</proc/sys/kernel/unprivileged_bpf_disabled) != 0 ]]; then
		kept=$((kept | 1 << 39))
	fi
	caps() { # KEPT METRIC...
		local want

		printf -v want '%016x' "$1"
		shift
		bpfcost -j prog profile pinned "$P/alu0" "$@" -- \
			bash -c 'grep -E "^Cap(Eff|Prm|Inh|Amb)" /proc/$PPID/status
				grep CapEff /proc/self/status'
		((status == 0)) || fail "$(<"$T/out")$(<"$T/err")"
		json_is "$sound"
		printf 'CapInh:\t%016x\nCapPrm:\t%s\nCapEff:\t%s\nCapAmb:\t%016x\nCapEff:\t%s\n' \
			0 "$want" "$want" 0 "$own" | diff - "$T/err"
	}
	caps "$kept" ns
	# CPUs that come online: CAP_PERFMON.
	! has_event page-faults || caps $((kept | 1 << 38)) page-faults
}

# What is there now and was not BEFORE. What is going away may take a moment.
nothing_but() { # BEFORE
	local try more

	for ((try = 0; try < 50; try++)); do
		more=$("$TARGET" ids | grep -vxF "$1" || :)
		[[ $more ]] || return 0
		sleep 0.1
	done
	fail "left behind: $more"
}

@test "kill -9 at any moment leaves nothing behind" {
	local before pins i stats=/proc/sys/kernel/bpf_stats_enabled

	before=$("$TARGET" ids)
	pins=$(ls -R "$BPFFS")
	for ((i = 0; i < 20; i++)); do
		"$BPFCOST" prog profile pinned "$P/alu0" ns page-faults -- \
			"$TARGET" run "$P/alu0" 1000 100 >/dev/null 2>&1 3>&- &
		# From before it has done anything to while it measures.
		sleep "0.$(printf %03d $((i * 15)))"
		kill -KILL $! 2>/dev/null || :
		wait $! 2>/dev/null || :
	done
	nothing_but "$before"
	[[ $(ls -R "$BPFFS") == "$pins" ]]
	[[ ! -e $stats || $(<"$stats") == 0 ]]
	# The program can be measured as before.
	profile alu0 ns duration 0.05
	nothing_but "$before"
}

@test "errors, signals and ends leave nothing behind" {
	local before

	before=$("$TARGET" ids)
	fails 2 'unknown metric' prog profile pinned "$P/alu0" nope
	fails 1 "has no 'node-prefetches' event" prog profile pinned "$P/alu0" ns node-prefetches
	profile alu0 ns duration 0.05
	bpfcost -j prog profile all ns duration 0.05
	((status == 0))
	json_is 'all(.[]; has("metrics") or has("error")) and any(.[]; .name == "alu0")'
	"$BPFCOST" prog profile pinned "$P/alu0" ns >/dev/null 2>&1 3>&- &
	sleep 0.5
	kill -TERM $!
	wait $! || :
	nothing_but "$before"
}
