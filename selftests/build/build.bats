#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the Makefile promises, on copies of the sources.

setup_file() {
	load ../lib/common
	[[ ${SRCDIR-} ]] || return 0
	export A=$BATS_FILE_TMPDIR/a B=$BATS_FILE_TMPDIR/another/directory
	local copy

	for copy in "$A" "$B"; do
		mkdir -p "$copy"
		(cd "$SRCDIR" && tar -c Makefile Documentation include plugin progs selftests) |
			tar -x -C "$copy"
	done
	# Of the caller's make, which may run this.
	unset MAKEFLAGS MAKELEVEL MFLAGS
	make -C "$A" -j"$(nproc)" >"$A.log" 2>&1
}

setup() {
	load ../lib/common
	need_srcdir
	need_command make gcc clang
	T=$BATS_TEST_TMPDIR
	unset MAKEFLAGS MAKELEVEL MFLAGS
}

# The command alone, quickly, with warnings as errors.
build() { # DIR VARIABLE=VALUE...
	local o=$1

	shift
	make -C "$B" -j"$(nproc)" O="$o" WERROR=1 "$@" "$o/bpfcost" 2>&1 || fail "make O=$o $*"
}

@test "all is built, with one line a file" {
	[[ -x $A/build/bpfcost && -s $A/build/progs/profiler.bpf.o &&
		-s $A/build/Documentation/bpfcost.8 ]]
	[[ -x $A/build/selftests/run && -x $A/build/selftests/cli/target ]]
	run -1 grep -Ei 'warning|error' <(grep -vE '^  [A-Z]+ +build/' "$A.log")
	# The second time there is nothing to do.
	run -0 make -C "$A"
	[[ $output != *'  CC '* && $output != *'  LINK '* && $output != *'  BPF '* ]]
}

@test "two builds in different directories are the same, byte for byte" {
	local file

	build "$T/elsewhere"
	for file in bpfcost progs/profiler.bpf.o progs/empty.bpf.o progs/profiler.skel.h; do
		cmp "$A/build/$file" "$T/elsewhere/$file" || fail "$file differs"
	done
	run -1 grep -aF "$BATS_FILE_TMPDIR" "$A/build/bpfcost" "$A/build/progs/profiler.bpf.o"
	# Nothing is written beside O.
	[[ ! -e $B/build ]]
}

@test "install puts files where a distribution expects them" {
	local d=$T/root

	make -C "$A" install DESTDIR="$d" PREFIX=/usr >/dev/null
	[[ $(find "$d" ! -type d | sort) == "$(printf '%s\n' \
		"$d/usr/sbin/bpfcost" "$d/usr/sbin/bpftool-cost" \
		"$d/usr/share/bash-completion/completions/bpfcost" \
		"$d/usr/share/man/man8/bpfcost.8")" ]]
	[[ $(readlink "$d/usr/sbin/bpftool-cost") == bpfcost ]]
	[[ $(stat -c %a "$d/usr/sbin/bpfcost" "$d/usr/share/man/man8/bpfcost.8") == 755$'\n'644 ]]
	run -0 "$d/usr/sbin/bpftool-cost" -V
	make -C "$A" uninstall DESTDIR="$d" PREFIX=/usr >/dev/null
	[[ ! $(find "$d" ! -type d) ]]
	make -C "$A" install DESTDIR="$d" >/dev/null
	[[ -x $d/usr/local/sbin/bpfcost ]]
}

@test "what cannot be is refused" {
	run -2 make -C "$B" ASAN=1 STATIC=1
	[[ $output == *'ASAN=1 and STATIC=1 exclude each other'* ]]
	run -2 make -C "$B" ARCH=vax
	[[ $output == *'ARCH=vax: amd64 and arm64 are supported'* ]]
}

@test "clang finds nothing to warn of" {
	build "$T/clang" CC=clang
	run -0 "$T/clang/bpfcost" -V
}

@test "sanitizers" {
	build "$T/asan" ASAN=1
	run -0 "$T/asan/bpfcost" -j metric list
}

@test "a static build for arm64" {
	need_command aarch64-linux-gnu-gcc readelf
	build "$T/arm64" ARCH=arm64 STATIC=1
	run -0 readelf -hl "$T/arm64/bpfcost"
	[[ $output == *AArch64* && $output != *INTERP* ]]
}

@test "V=1 shows the commands, and a change of flags rebuilds" {
	run -0 make -C "$B" O="$T/v" V=1 "$T/v/plugin/parse.o"
	[[ $output == *' -c -o '*'plugin/parse.o'* ]]
	run -0 make -C "$B" O="$T/v" "$T/v/plugin/parse.o"
	[[ $output != *'  CC '* ]]
	run -0 make -C "$B" O="$T/v" CFLAGS=-O1 "$T/v/plugin/parse.o"
	[[ $output == *'  CC '* ]]
}

@test "install-selftests: the statistics' suite, which runs without a compiler and without sources" {
	local d=$T/root suite program

	make -C "$A" install-selftests DESTDIR="$d" PREFIX=/usr >/dev/null
	suite=$d/usr/libexec/bpfcost/selftests
	# Nothing else is installed, nothing of what it was made from.
	[[ $(find "$d" -mindepth 1 -maxdepth 5 | wc -l) == 9 ]] || fail "$(find "$d" -maxdepth 5)"
	[[ ! $(find "$d" -name '*.[cho]' -o -name Makefile -o -name '*.d') ]]
	[[ $(<"$suite/.fmf/version") == 1 ]]
	cp -a "$suite" "$T/moved"
	run -0 env -i PATH=/usr/bin:/bin "$T/moved/run" --list
	[[ $output == *'stats/stats: reference count of the switch'* ]] || fail "$output"
	[[ $output != *cli* ]]
	for program in "$A"/selftests/stats/*.c; do
		program=$(basename "$program" .c)
		run -0 env -i "$T/moved/stats/$program" --list
		[[ $output ]]
	done
	# Away from here nobody is root on purpose: all that matters is that it gets to its tests.
	run env -i PATH=/usr/bin:/bin "$T/moved/run" --tag errors stats
	((status == 0 || status == 4)) || fail "$output"
	[[ $output == *'ok 1 errors'* ]] || fail "$output"
}

@test "the statistics' suite builds by itself, and as a target of kselftest" {
	local tree=$T/linux/tools/testing/selftests

	run -0 make -C "$A/selftests/stats" OUTPUT="$T/alone"
	[[ $output != *warning* ]] || fail "$output"
	run -0 "$T/alone/refcount" --list
	[[ $output == *holder-killed* ]] || fail "$output"
	# What the kernel's lib.mk makes of the lists, and the flag that it adds.
	mkdir -p "$tree"
	cat >"$tree/lib.mk" <<-'EOF'
	OUTPUT := $(CURDIR)
	TEST_GEN_FILES := $(patsubst %,$(OUTPUT)/%,$(TEST_GEN_FILES))
	all: $(TEST_GEN_FILES)
	CFLAGS += -D_GNU_SOURCE=
	list: ; @realpath -e $(TEST_PROGS) $(TEST_FILES) $(TEST_INCLUDES) config settings
	EOF
	cp -a "$B/selftests" "$tree/bpfcost"
	run -0 make -C "$tree/bpfcost/stats"
	[[ $output != *warning* ]] || fail "$output"
	[[ -x $tree/bpfcost/stats/refcount && -x $tree/bpfcost/stats/storm ]]
	run -0 make -s --no-print-directory -C "$tree/bpfcost/stats" list
	# A file that cannot be executed goes through the runner beside it.
	[[ ! -x $tree/bpfcost/stats/stats.bats && -x $tree/bpfcost/stats/ksft_runner.sh ]]
}
