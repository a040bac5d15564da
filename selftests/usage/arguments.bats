#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Bad input: a clear message, status 2, nothing on stdout (with -j: one object),
# nothing left behind.

load usage

setup_file() {
	mount_bpffs
	"$TARGET" load "$TESTDIR/cli/targets.bpf.o" "$BPFFS/t" >/dev/null
	"$TARGET" plain "$BPFFS/plain" >/dev/null
	"$TARGET" map "$BPFFS/map"
	touch "$BATS_FILE_TMPDIR/file"
}

teardown_file() {
	umount_bpffs
}

setup() {
	alu0=(prog profile pinned "$BPFFS/t/alu0")
}

@test "a program is missing, or is none" {
	refuses "a program is missing: { id ID | tag TAG | name NAME | pinned FILE } or all" \
		prog profile
	refuses "expected 'id', 'tag', 'name', 'pinned' or 'all', got: 'xdp_fw'" prog profile xdp_fw
	refuses "expected 'id', 'tag', 'name', 'pinned' or 'all', got: ''" prog profile ''
	refuses "got: 'idx'" prog profile idx 1
	refuses "'id' needs a value" prog profile id
	refuses "'i' needs a value" prog profile i
	refuses "'pin' needs a value" prog profile pin
}

@test "ids" {
	local id

	for id in '' x +1 ' 1' 1x 0 0x 1.0 4294967296 99999999999999999999 '1 2'; do
		refuses "'$id' is not a program id" prog profile id "$id"
	done
	refuses "there is no program with id 4294967295 (ENOENT)" prog profile id 4294967295
	refuses "there is no program with id 4294967295 (ENOENT)" prog profile id 0xffffffff
	refuses "there is no program with id 4294967294" "${alu0[@]}" id 4294967294 ns
}

@test "a program that is gone" {
	local id

	"$TARGET" plain "$BPFFS/gone" >"$T/id"
	id=$(<"$T/id")
	rm "$BPFFS/gone"
	while "$BPFTOOL" prog show id "$id" >/dev/null 2>&1; do
		sleep 0.1
	done
	refuses "there is no program with id $id (ENOENT); 'bpftool prog show' lists those loaded" \
		prog profile id "$id" ns
	refuses "there is no program with id $id (ENOENT)" prog profile id "$id" duration 1 -- \
		touch "$T/ran"
	[[ ! -e $T/ran ]]
}

@test "tags and names" {
	local tag

	for tag in '' x 123 0123456789abcdeg 0123456789abcdef0 '0123456789 bcdef'; do
		refuses "'$tag' is not a tag: 16 hexadecimal digits" prog profile tag "$tag"
	done
	refuses "no loaded program has the tag '0123456789abcdef'" prog profile tag 0123456789abcdef
	refuses "no loaded program has the name 'no_such_program'" prog profile name no_such_program
	# In full or as the kernel cuts them; no beginnings, no patterns.
	refuses "no loaded program has the name 'a_name_longer'" prog profile name a_name_longer
	refuses "no loaded program has the name 'alu*'" prog profile name 'alu*'
	refuses "no loaded program has the name ''" prog profile name ''
}

@test "several programs with one name: all are listed" {
	local a b

	a=$("$TARGET" id "$BPFFS/t/a_name_longer_than_the_kernel_keeps")
	b=$("$TARGET" id "$BPFFS/t/a_name_longer_than_bpftool_takes")
	bpfcost prog profile name a_name_longer_t ns
	((status == 2))
	[[ $(<"$T/err") == *"$a (socket_filter a_name_longer_than_the_kernel_keeps)"* ]]
	[[ $(<"$T/err") == *"$b (socket_filter a_name_longer_than_bpftool_takes)"* ]]
	refuses "several programs match this handle" prog profile name a_name_longer_t ns
	# Two programs of the same instructions have one tag.
	"$TARGET" plain "$BPFFS/second" >/dev/null
	refuses "(socket_filter plain)" prog profile tag "$("$TARGET" tag "$BPFFS/plain")"
}

@test "pinned files" {
	refuses "open the pinned program '/nonexistent': No such file or directory (ENOENT)" \
		prog profile pinned /nonexistent
	refuses "cannot open the pinned program '': No such file or directory (ENOENT)" \
		prog profile pinned ''
	refuses "'$BPFFS/map' is pinned, but is not a program" prog profile pinned "$BPFFS/map"
	refuses "is it a file of a bpf file system?" prog profile pinned "$BATS_FILE_TMPDIR/file"
	# Without /proc it cannot be seen what it is.
	if [[ $BPFCOST != */asan/* ]]; then
		run -1 "$TESTDIR/switch/tool" noproc "$BPFCOST" prog stats pinned "$BPFFS/t/alu0"
		[[ $output == "Error: cannot see whether the pinned '$BPFFS/t/alu0' is a program: /proc"* ]] ||
			fail "$output"
	fi
	refuses "cannot open the pinned program '$BPFFS'" prog profile pinned "$BPFFS"
	refuses "File name too long" prog profile pinned "$(printf %0300d 0)"
}

@test "numbers" {
	local n

	for n in '' x 0 +1 1s 1e3 1,5 .  1.2.3 nan inf 0x 0.0000000001 1e999 ' 1' 99999999999; do
		refuses "duration: '$n' is not a number of seconds above 0 (1, or 0.25)" \
			"${alu0[@]}" duration "$n" ns
		refuses "interval: '$n' is not a number of seconds above 0" \
			"${alu0[@]}" interval "$n" ns
	done
	for n in '' x 0 1.5 1000000001 ns 0x; do
		refuses "sample: '$n' is not a number from 1 to 1000000000" \
			"${alu0[@]}" sample "$n" ns
	done
	# It looks like an option.
	refuses "unknown option '-1'" "${alu0[@]}" duration -1 ns
	for n in duration interval sample func; do
		refuses "'$n' needs a value" "${alu0[@]}" ns "$n"
	done
	# Where bpftool would take it for a metric.
	refuses "unknown metric 'dur'" "${alu0[@]}" dur 1
	refuses "duration: '0' is not a number of seconds" "${alu0[@]}" dur 0 ns
}

@test "stats show and stats enable" {
	local n

	refuses "stats show takes no arguments, got: 'now'" stats show now
	refuses "stats show takes no arguments, got: '--'" stats show -- true
	for n in '' x 0 00 +1 5s 1e3 1,5 .  1.2.3 nan inf 0x 0.0000000001 1e999 ' 1' '1 ' \
		99999999999 18446744073709551616; do
		refuses "duration: '$n' is not a number of seconds above 0 (1, or 0.25)" \
			stats enable duration "$n"
		refuses "duration: '$n' is not a number of seconds above 0 (1, or 0.25)" \
			stats enable duration "$n" -- touch "$T/ran"
	done
	refuses "unknown option '-1'" stats enable duration -1
	refuses "'duration' needs a value" stats enable duration
	refuses "'dur' needs a value" stats enable dur -- touch "$T/ran"
	refuses "'duration' is there twice" stats enable duration 1 duration 2
	refuses "'duration' is there twice" prog stats duration 1 interval 1 dur 2
	refuses "'interval' is there twice" prog stats interval 1 interval 2
	refuses "expected 'duration', 'inherit' or '--', got: 'touch'" stats enable touch "$T/ran"
	refuses "expected 'duration', 'inherit' or '--', got: '1'" stats enable 1
	refuses "'--' needs a command behind it" stats enable --
	refuses "'inherit' needs a command that inherits: -- COMMAND..." stats enable inherit
	refuses "'inherit' does not go with 'duration'" stats enable inherit duration 1 -- \
		touch "$T/ran"
	refuses "unknown option '-x'" stats enable -x -- touch "$T/ran"
	refuses "'stats' has no command 'disable'" stats disable
	refuses "'stats' has no command 'shows'" stats shows
	refuses "'stats' needs a command" stats
	refuses "'stat' needs a command" stat
	[[ ! -e $T/ran ]]
}

@test "words that are no text do no harm" {
	local word=$'\xe9\e[31m"\\\r'

	bpfcost prog stats name "$word"
	((status == 2)) && [[ ! -s $T/out && $(<"$T/err") == \
		"Error: no loaded program has the name '"'\xe9\x1b[31m"\\x0d'"'" ]] ||
		fail "$(<"$T/err")"
	bpfcost -j prog stats name "$word"
	((status == 2)) && [[ ! -s $T/err && $(<"$T/out") == \
		"{\"error\":\"no loaded program has the name '"$'\xef\xbf\xbd''\u001b[31m\"\\\r'"'\"}" ]] ||
		fail "$(<"$T/out")"
	# What is too long for a message is cut, and still is a document.
	bpfcost -j prog stats name "$(printf 'é%.0s' {1..3000})"
	((status == 2))
	[[ $(jq -r .error "$T/out") == "no loaded program has the name 'éé"* ]]
	LC_ALL=C.UTF-8 grep -qxa '.*' "$T/out" || fail 'no UTF-8'
	bpfcost stats enable -- "$word"
	((status == 127)) && [[ $(tail -n 1 "$T/err") == \
		"Error: cannot run '"'\xe9\x1b[31m"\\\x0d'"': No such file or directory (ENOENT)" ]] ||
		fail "$(<"$T/err")"
}

@test "metrics" {
	local i many=()

	refuses "unknown metric 'cylces'; did you mean 'cycles'?" "${alu0[@]}" cylces
	refuses "unknown metric 'abcdef'; 'bpfcost metric list' shows those there are" \
		"${alu0[@]}" abcdef
	refuses "there is no metric ''" "${alu0[@]}" ''
	refuses "unknown metric 'r'" "${alu0[@]}" r
	refuses "nope" "${alu0[@]}" nope/event/
	for ((i = 0; i < 17; i++)); do
		many+=("r1$i")
	done
	refuses "at most 16 metrics at once; 'r116' is one more" "${alu0[@]}" "${many[@]}"
	# One metric twice is one.
	bpfcost "${alu0[@]}" ns ns n ns ns ns ns ns ns ns ns ns ns ns ns ns ns ns
	((status != 2))
}

@test "functions" {
	bpfcost "${alu0[@]}" func nope ns
	if grep -q "refuses\|no BTF" "$T/err"; then
		skip "the kernel refuses entry and exit programs"
	fi
	refuses "has no function 'nope'; it has: alu0" "${alu0[@]}" func nope ns
}

@test "options" {
	refuses "unknown option '--nope'" --nope "${alu0[@]}"
	refuses "unknown option '--nope=1'" "${alu0[@]}" --nope=1
	refuses "unknown option '-x'" "${alu0[@]}" -x
	refuses "unknown option '-y'" "${alu0[@]}" -fy ns
	refuses "unknown option '-B'" "${alu0[@]}" -B
	refuses "'--' needs a command behind it" "${alu0[@]}" ns --
	refuses "'metric' has no command 'lost'" metric lost
	refuses "'metric' needs a command" metric
	refuses "'metr' has no command 'x'" metr x
}

@test "nothing is attached or left behind, and the command does not run" {
	local before

	before=$("$TARGET" ids | sort)
	refuses "unknown metric" "${alu0[@]}" nope -- touch "$T/ran"
	refuses "is not a number" "${alu0[@]}" duration x ns -- touch "$T/ran"
	refuses "is not a number" prog profile all duration x ns -- touch "$T/ran"
	[[ ! -e $T/ran ]]
	# What others load meanwhile is not ours.
	run -1 grep -F -e bpfcost -e empty <(comm -13 <(echo "$before") <("$TARGET" ids | sort))
}

@test "-V, -h and help need nothing" {
	run -0 --separate-stderr "$BPFCOST" -V
	[[ $output == 'bpfcost v'*$'\n''using libbpf v'* && ! $stderr ]]
	run -0 --separate-stderr "$BPFCOST" --version prog profile nonsense
	[[ $output == 'bpfcost v'* ]]
	run -0 --separate-stderr "$BPFCOST" -jV
	jq -e 'keys == ["libbpf_version", "version"]' <<<"$output"
	[[ ! $stderr ]]
	for word in 'prog profile help' 'prog profile -h' '-h prog profile x' 'metric help' \
		'metric list help' 'stats help' 'stats show help' 'stats en help' 'sta e -h' \
		'me l --help'; do
		# shellcheck disable=SC2086 # words
		bpfcost $word
		((status == 0)) && [[ ! -s $T/out && $(<"$T/err") == 'Usage: bpfcost '* ]] ||
			fail "$word"
		# shellcheck disable=SC2086
		bpfcost -j $word
		((status == 0)) && [[ $(<"$T/out") == null && ! -s $T/err ]] || fail "-j $word"
	done
}

@test "output that cannot be written is an error" {
	# shellcheck disable=SC2016 # for the other shell
	run -1 bash -c '"$BPFCOST" metric list >/dev/full'
	[[ $output == 'Error: cannot write the result: No space left on device'* ]]
	# shellcheck disable=SC2016 # for the other shell
	run -1 bash -c '"$BPFCOST" -V >/dev/full'
}
