#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# scripts/lab: what it hands through, what it reports, and that nothing stays behind.

setup() {
	load ../lib/common
	need_srcdir
	LAB=$SRCDIR/scripts/lab
	T=$BATS_TEST_TMPDIR
}

teardown() {
	[[ ! ${COPY-} ]] || rm -rf "$COPY"
}

# What a guest needs; not for the tests that start none.
need_lab() {
	need_command qemu-system-aarch64 aarch64-linux-gnu-gcc
}

# The kernel that boots most quickly, with stdout and stderr in files and $status.
lab() { # [OPTION]... -- COMMAND...
	status=0
	"$LAB" --kernel 6.1 --arch arm64 "$@" >"$T/out" 2>"$T/err" 3>&- || status=$?
}

is() { # STATUS STDOUT
	((status == $1)) || fail "exit status $status, expected $1"$'\n'"$(cat "$T/out" "$T/err")"
	[[ $(cat "$T/out") == "$2" ]] || fail "stdout: $(cat "$T/out")"
}

# Each of them is in a line of stderr.
says() { # TEXT...
	local text

	for text; do
		grep -qF -- "$text" "$T/err" || fail "'$text' is not in:"$'\n'"$(cat "$T/err")"
	done
}

# A cache of another user's, with only what the kernel above needs in it.
copy_cache() { # DIR
	local image dir

	image=$("$LAB" kernels --arch arm64 6.1 2>"$T/err" | awk '{ print $4 }')
	dir=${image%/kernels/*}
	mkdir -p "$1/lab/kernels" "$1/lab/busybox"
	cp -r "$dir/kernels/bookworm-arm64" "$1/lab/kernels/"
	cp -r "$dir/busybox/arm64" "$1/lab/busybox/"
}

@test "wrong usage is refused before anything is done" {
	local args bad=(
		'|no command to run'
		'--exakt -- true|unknown option'
		'--kernel|needs a value'
		'--arch sparc -- true|unknown architecture'
		'--kernel 6.1 --smp two -- true|not a number of CPUs'
		'--timeout 0 -- true|not a number of seconds'
		'--memory 1G -- true|not a number of megabytes'
		'--build /nonexistent -- true|no such directory'
		'--package ../x -- true|not the name of a package'
		'--package x/.. -- true|not the name of a package'
		'--kernel /nonexistent -- true|no such file'
		'--kernel nonesuch -- true|no kernel is called'
		'kernels nonesuch|no kernel is called'
		'kernels --arch sparc|unknown architecture'
	)

	for args in "${bad[@]}"; do
		read -ra words <<<"${args%|*}"
		status=0
		"$LAB" "${words[@]}" >"$T/out" 2>"$T/err" || status=$?
		is 2 ''
		says "lab: " "${args#*|}"
		(($(wc -l <"$T/err") == 1)) || fail "more than a line: $(cat "$T/err")"
	done
	printf 'no kernel' >"$T/file"
	lab --kernel "$T/file" -- true
	is 2 ''
	says 'neither a bzImage nor an arm64 Image'
}

@test "a damaged cache is noticed, and mended" {
	export BPFCOST_CACHE=$T/cache

	lab --kernel nonesuch -- true
	is 2 ''
	echo >>"$(echo "$T"/cache/lab/tools/*/host/lab-host)"
	lab --kernel nonesuch -- true
	is 2 ''
	says 'is damaged'
	lab --kernel nonesuch -- true
	run ! grep 'is damaged' "$T/err"
	[[ ! $(find "$T/cache" -name '*.new.*') ]]
}

@test "output goes through unchanged and apart, the exit status as well" {
	local i

	need_lab
	mkdir "$T/build"
	for ((i = 0; i < 256; i++)); do
		printf %b "\\x$(printf %02x $i)"
	done >"$T/all"
	for ((i = 0; i < 200; i++)); do
		cat "$T/all"
	done >"$T/build/many"
	# shellcheck disable=SC2016 # for the guest
	lab --build "$T/build" -- sh -c 'cat many; cat many >&2; printf "$0"; exit 7' 'no newline'
	((status == 7)) || fail "exit status $status: $(cat "$T/err")"
	cmp <(cat "$T/build/many"; printf 'no newline') "$T/out"
	cmp "$T/build/many" "$T/err"
}

@test "the command has the environment that is described" {
	need_lab
	# shellcheck disable=SC2016 # for the guest
	lab --smp 2,maxcpus=2 -- sh -c '
		set -e
		echo "$PWD $HOME $TERM $(id -u) $(hostname)"
		test "${PATH%%:*}" = /bpfcost
		for dir in /proc /sys /dev /dev/pts /dev/shm /tmp /run /sys/fs/bpf \
			/sys/kernel/tracing /sys/kernel/debug /sys/fs/cgroup; do
			grep -q " $dir " /proc/mounts || echo "nothing is mounted on $dir"
		done
		modprobe veth
		grep -o "^veth" /proc/modules
		ping -c 1 -W 1 127.0.0.1 >/dev/null
		: >/dev/shm/x
		echo x | cat /dev/fd/0
		grep -c "^root:\|^user:\|^nobody:" /etc/passwd
		echo 0 >/sys/devices/system/cpu/cpu1/online
		cat /sys/devices/system/cpu/online
		kill -9 $$
	'
	is 137 $'/bpfcost /root dumb 0 lab\nveth\nx\n3\n0'
}

@test "a command that is not there is 127" {
	need_lab
	lab -- nonesuch
	is 127 ''
	says nonesuch
}

@test "a guest that hangs is ended by its timeout" {
	need_lab
	lab --timeout 6 -- sh -c 'echo it hangs >/dev/kmsg; sleep 1000'
	is 124 ''
	says 'timed out after 6 s'
}

@test "a warning of the kernel is a failure, with the log shown" {
	need_lab
	lab -- sh -c 'echo ok; echo "WARNING: CPU: 0 PID: 1 at here" >/dev/kmsg; exit 3'
	is 123 ok
	says 'reported a problem' 'WARNING: CPU: 0 PID: 1 at here' 'ended with status 3'
}

@test "a panic of the kernel is a failure, with the log shown" {
	need_lab
	lab -- sh -c 'echo before; sleep 1; echo c >/proc/sysrq-trigger; echo after'
	is 123 before
	says 'crashed' 'Kernel panic - not syncing'
}

@test "a guest that is switched off before its command ends is a failure" {
	need_lab
	lab -- sh -c 'poweroff -f; sleep 1000'
	is 125 ''
	says 'switched off or restarted'
}

@test "with exact time there are counters, and time passes only for what is done" {
	need_lab
	SECONDS=0
	lab --exact --smp 2 -- sh -c 'nproc; sleep 3000; ls /sys/bus/event_source/devices'
	((SECONDS < 300)) || fail "took $SECONDS s"
	((status == 0)) || fail "exit status $status: $(cat "$T/err")"
	grep -qx 2 "$T/out"
	grep -qx armv8_pmuv3 "$T/out"
}

@test "packages are in the guest, and win over busybox" {
	need_lab
	# One is of another suite, with a C library of its own, that all use then; it
	# wants a terminal for whatever it does, but it starts.
	lab --suite bookworm --package bash --package jq --package kmod --package bpftop/trixie \
		-- bash -c '
		jq -c . <<<"{\"a\": [1, 2]}"
		bpftop --version 2>&1 | grep -c "shared librar\|GLIBC"
		type -P bpftop
		modprobe --version | head -n 1 | cut -d" " -f 1
		modprobe dummy && echo loaded'
	[[ $(cat "$T/err") != *'could not be read'* ]] || skip "no network"
	is 0 $'{"a":[1,2]}\n0\n/usr/sbin/bpftop\nkmod\nloaded'
}

@test "a kernel of one's own runs by its file, without modules" {
	need_lab
	"$LAB" kernels --arch arm64 6.1 >"$T/kernels" 2>"$T/err"
	cp "$(awk '{ print $4 }' "$T/kernels")" "$T/Image"
	lab --kernel "$T/Image" --append 'bpfcost.here and.there' -- \
		sh -c 'ls /lib/modules; grep -o "bpfcost.*" /proc/cmdline'
	is 0 'bpfcost.here and.there'
	says /lib/modules
	lab --kernel "$T/Image" --arch amd64 -- true
	is 2 ''
	says 'a kernel for arm64, not amd64'
}

@test "an ordinary user can do it, and without a network" {
	local offline=()

	need_lab
	need_root
	# Neither the checkout nor the test's directory need be open to others.
	COPY=$(mktemp -d)
	mkdir "$COPY/scripts" "$COPY/home"
	cp "$SRCDIR"/scripts/lab* "$COPY/scripts/"
	copy_cache "$COPY/home/.cache/bpfcost"
	chown -R 65534:65534 "$COPY"
	! unshare -n true 2>/dev/null || offline=(unshare -n)
	unset BPFCOST_CACHE XDG_CACHE_HOME
	status=0
	HOME=$COPY/home "${offline[@]}" \
		setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs \
		"$COPY/scripts/lab" --kernel 6.1 --arch arm64 -- \
		sh -c 'id -u; test -O /init; test -O /usr/bin/busybox' \
		>"$T/out" 2>"$T/err" 3>&- || status=$?
	is 0 0
}

# The emulator of a lab that was started in the background.
emulator_of() { # PID
	local i

	for ((i = 0; i < 300; i++)); do
		pgrep -P "$1" qemu && return
		sleep 0.1
	done
	fail "no emulator was started: $(cat "$T/err")"
}

gone() { # PID
	local i

	for ((i = 0; i < 100; i++)); do
		[[ -d /proc/$1 && $(cut -d' ' -f3 "/proc/$1/stat") != Z ]] || return 0
		sleep 0.1
	done
	fail "process $1 is still there"
}

@test "the emulator ends with the lab, however that ends" {
	local signal pid emulator

	need_lab
	need_command pgrep
	for signal in TERM INT KILL; do
		# A shell's background command ignores SIGINT; the lab must not be told so.
		env --default-signal=INT "$LAB" --kernel 6.1 --arch arm64 -- sleep 1000 \
			>"$T/out" 2>"$T/err" 3>&- &
		pid=$!
		emulator=$(emulator_of $pid)
		kill -$signal $pid
		status=0
		wait $pid || status=$?
		((status == 128 + $(kill -l $signal))) || fail "exit status $status for SIG$signal"
		gone "$emulator"
	done
}

@test "a reader that goes away ends the lab" {
	need_lab
	SECONDS=0
	lab_status=$("$LAB" --kernel 6.1 --arch arm64 --timeout 200 -- yes 3>&- |
		{ head -n 1 && exec <&-; } >/dev/null; echo "${PIPESTATUS[0]}")
	((lab_status)) || fail "it ended with 0"
	((SECONDS < 150)) || fail "took $SECONDS s"
}
