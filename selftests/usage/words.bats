#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Help, man page, completion and the command itself hold to one list of words. The list is in the
# help text; what it says is taken apart here.

load usage

setup_file() {
	mount_bpffs
	"$TARGET" load "$TESTDIR/cli/targets.bpf.o" "$BPFFS/t" >/dev/null
}

teardown_file() {
	umount_bpffs
}

setup() {
	BPFTOOL=/nonexistent "$BPFCOST" help 2>"$T/help"
}

# One word a line, sorted.
words() {
	tr ' ' '\n' | sed '/^$/d' | sort -u
}

help_commands() { # "prog profile" as "prog:profile"
	sed -nE 's/^ *bpfcost ([a-z]+)( ([a-z]+))?( .*)?$/\1:\3/p' "$T/help" | words
}

help_commands_of() { # OBJECT
	help_commands | sed -n "s/^$1://p" | words
}

help_keywords() { # COMMAND: [func FUNC], [histogram], [by task]
	keywords "$1" <"$T/help"
}

# Of the lines from "bpfcost COMMAND" to the next command.
keywords() { # COMMAND
	sed -nE "/bpfcost (\[OPTIONS\] )?$1( |\$)/,/^\$/p" |
		awk '/bpfcost/ && n++ { exit } { print }' |
		grep -Eo '\[[a-z_]+( [A-Za-z]+)?\]' | sed 's/^.\([a-z_]*\).*/\1/' | words
}

help_handles() {
	sed -n 's/.*PROG *:=//p' "$T/help" | grep -Eo '\b[a-z]+\b' | words
}

help_options() {
	sed -n '/OPTIONS *:=/,/^$/p' "$T/help" | grep -Eo -e '--?[A-Za-z]+' | words
}

help_metrics() {
	sed -n '/METRIC *:=/,/;/p' "$T/help" | sed 's/.*:=//; s/;.*//' |
		grep -Eo '\b[a-z0-9_]+\b' | words
}

# A section of the man page's source.
man_section() { # NAME
	awk -v want="$1" '
		/^(====|----)/ { if (last == want) on = 1; else if (on) exit }
		on
		{ last = $0 }' "$SRCDIR/Documentation/bpfcost.8.rst"
}

equal() { # WHAT FILE-OR-FIFO FILE-OR-FIFO
	diff -u "$2" "$3" || fail "$1 differ"
}

@test "the help text says something" {
	[[ $(help_commands | tr '\n' ' ') == \
		'calibrate: metric:list prog:bench prog:compare prog:profile prog:stats stats:enable stats:show ' ]]
	[[ $(help_keywords 'prog profile' | tr '\n' ' ') == \
		'by duration func histogram interval sample ' ]]
	[[ $(help_keywords 'prog stats' | tr '\n' ' ') == 'by duration interval ' ]]
	[[ $(help_keywords 'prog bench' | tr '\n' ' ') == 'count ctx_in data_in format repeat ' ]]
	[[ $(help_keywords 'prog compare' | tr '\n' ' ') == 'force threshold ' ]]
	[[ $(help_keywords 'stats enable' | tr '\n' ' ') == 'duration inherit ' ]]
	[[ ! $(help_keywords 'stats show') ]]
	[[ $(help_handles) == all$'\n'id$'\n'name$'\n'pinned$'\n'tag ]]
	[[ $(help_options | wc -l) == 10 ]]
	[[ $(help_metrics | wc -l) == 7 ]]
	# A terminal's width, no blanks at the end.
	run -1 grep -E '.{81}| $' "$T/help"
}

@test "the command knows the words of the help text, and no other" {
	local word

	while IFS=: read -r object command; do
		run -0 "$BPFCOST" "$object" ${command:+"$command"} help
	done < <(help_commands)
	while read -r word; do
		if [[ $word == histogram ]]; then
			refuses "unknown metric '1'" prog profile pinned "$BPFFS/t/alu0" "$word" 1
		else
			refuses "'$word' needs a value" prog profile pinned "$BPFFS/t/alu0" "$word"
		fi
	done < <(help_keywords 'prog profile')
	refuses "expected 'by task', got: 'by cpu'" prog profile pinned "$BPFFS/t/alu0" by cpu
	for word in count repeat func2 intervals FUNC; do
		refuses "unknown metric '$word'" prog profile pinned "$BPFFS/t/alu0" "$word" 1
	done
	while read -r word; do
		refuses "'$word' needs a value" prog stats "$word"
	done < <(help_keywords 'prog stats' && help_handles | grep -vx all)
	for word in sample func intervals x ids ''; do
		refuses "'duration', 'interval' or 'by', got: '$word'" prog stats "$word" 1
		refuses "'duration', 'interval' or 'by', got: '$word'" prog stats id \
			"$("$TARGET" id "$BPFFS/t/alu0")" "$word" 1
	done
	refuses "expected 'by owner', got: 'by task'" prog stats by task
	while read -r word; do
		refuses "'$word' needs a value" prog bench "$TESTDIR/cli/targets.bpf.o" "$word"
	done < <(help_keywords 'prog bench')
	for word in duration interval func history threshold ''; do
		refuses " metric '$word'" prog bench "$TESTDIR/cli/targets.bpf.o" "$word" 1
	done
	refuses "expected 'format go', got: 'format json'" prog bench x format json
	refuses "'threshold' needs a value" prog compare a b threshold
	refuses "cannot open 'a'" prog compare a b force
	for word in thresholds forced count ''; do
		refuses "expected 'threshold' or 'force', got: '$word'" prog compare a b "$word" 1
	done
	refuses "expected 'force', got: 'threshold'" prog compare history . threshold 1
	while read -r word; do
		refuses "'$word' needs a " stats enable "$word"
	done < <(help_keywords 'stats enable')
	for word in interval durations inherits fd ''; do
		refuses "expected 'duration', 'inherit' or '--', got: '$word'" stats enable "$word"
	done
	while read -r word; do
		[[ $word == all ]] || refuses "'$word' needs a value" prog profile "$word"
	done < <(help_handles)
	for word in -j -p -d --json --pretty --debug -f -m -n -L --bpffs --mapcompat --nomount; do
		bpfcost "$word" prog profile
		((status == 2)) && grep -q 'a program is missing' "$T/out" "$T/err" ||
			fail "$word: $status"
	done
	equal metrics <(help_metrics) <("$BPFCOST" -j metric list |
		jq -r '.[] | select(.family == "bpftool" or .family == "clock") | .metric' |
		words)
}

@test "the man page has them" {
	need_srcdir
	local synopsis all word object command

	synopsis=$(man_section SYNOPSIS | tr -d '*|')
	equal commands <(help_commands) <(grep -Eo 'OPTIONS\] [a-z]+( [a-z]+)?' <<<"$synopsis" |
		sed 's/.*\] //; s/$/:/; s/ \(.*\):/:\1/' | words)
	equal options <(help_options) <(man_section OPTIONS | grep -E '^-' |
		grep -Eo -e '--?[A-Za-z]+' | words)
	equal 'options in the synopsis' <(help_options) <(sed -n '/OPTIONS :=/,$p' <<<"$synopsis" |
		grep -Eo -e '--?[A-Za-z]+' | words)
	# Each keyword and command has a paragraph of its own.
	while IFS=: read -r object command; do
		command=$object${command:+ $command}
		[[ $(man_section "$command") ]] || fail "no section '$command'"
		equal "keywords of $command" <(help_keywords "$command") \
			<(keywords "$command" <<<"$synopsis")
		equal "keywords described of $command" <(help_keywords "$command") <(
			man_section "$command" |
				sed -nE 's/^\*\*([a-z_]+)( task| owner| go)?\*\*( \*[A-Z]+\*)?$/\1/p' | words
		)
	done < <(help_commands)
	all=$(man_section 'metric list')
	while read -r word; do
		[[ $all == *"**$word**"* && $synopsis == *" $word "* ]] || fail "no metric $word"
	done < <(help_metrics)
	while read -r word; do
		[[ $(man_section 'prog profile') == *"**$word**"* ]] || fail "no '$word'"
	done < <(help_handles)
}

@test "the man page names the fields of the JSON output and the exit statuses" {
	need_srcdir
	local section file text field

	fields() { # FILE
		grep -Eoh 'put(_[a-z]+)?\([a-z]+, "[a-z0-9_]+"' "$SRCDIR/plugin/$1" |
			sed 's/.*"\(.*\)"/\1/' | words
	}
	while read -r file section; do
		[[ $(fields "$file") ]] || fail "$file has no fields"
		text=$(man_section "$section")
		while read -r field; do
			[[ $text == *"*$field*"* ]] || fail "no field '$field' in '$section'"
		done < <(fields "$file" | grep -vx time)
	done <<-EOF
		view_json.c OUTPUT
		stats_view_json.c prog stats
		bench_view_json.c prog bench
		compare_view_json.c prog compare
		stats_show.c stats show
		stats_enable.c stats enable
	EOF
	[[ $(man_section 'prog profile') == *'*time*'* ]]
}

# What completion offers for the last of these words.
complete() { :; } # it is no interactive shell
completes() { # WORD...
	COMP_WORDS=("$BPFCOST" "$@")
	COMP_CWORD=$#
	_bpfcost
	printf '%s\n' "${COMPREPLY[@]}" | words
}

@test "completion offers them" {
	need_srcdir
	# shellcheck source=plugin/bash-completion/bpfcost
	source "$SRCDIR/plugin/bash-completion/bpfcost"
	export BPFTOOL=/nonexistent
	local object

	equal objects <({ help_commands | sed 's/:.*//' && echo help; } | words) <(completes '')
	while read -r object; do
		equal "commands of $object" <({ help_commands_of "$object" && echo help; } | words) \
			<(completes "$object" '')
	done < <(help_commands | sed 's/:.*//' | words)
	equal options <(help_options) <(completes -)
	equal options <(help_options) <(completes prog profile id 1 -)
	equal handles <({ help_handles && echo help; } | words) <(completes prog profile '')
	equal 'keywords and metrics' <(
		{
			help_handles
			help_keywords 'prog profile'
			echo --
			"$BPFCOST" -j metric list |
				jq -r '.[] | select(.available and .family != "pmu") | .metric'
		} | words
	) <(completes prog profile id 1 '')
	[[ $(completes prog profile id 1 d) == duration* ]]
	[[ $(completes prog profile id 1 -- '') == '' ]]
	[[ $(completes -j prog profile id 1 dur) == duration ]]
	equal 'keywords of prog stats' <(
		{
			help_handles
			help_keywords 'prog stats'
			printf '%s\n' -- help
		} | words
	) <(completes prog stats '')
	[[ $(completes prog stats duration '') == '' ]]
	[[ $(completes prog stats all by '') == owner ]]
	[[ $(completes prog stats id 1 -- '') == '' ]]
	cd "$T"
	equal 'what prog bench takes' <({ help_handles && echo help && ls; } | words) \
		<(completes prog bench '')
	equal 'keywords of prog bench' <(
		{
			help_keywords 'prog bench'
			echo --
			"$BPFCOST" -j metric list |
				jq -r '.[] | select(.available and .family != "pmu") | .metric'
		} | words
	) <(completes prog bench x.o '')
	[[ $(completes prog bench id 1 n) == n[as]* ]]
	[[ $(completes prog bench x.o format '') == go ]]
	[[ $(completes prog bench x.o data_in he) == help ]]
	[[ $(completes prog bench x.o repeat '') == '' ]]
	[[ $(completes prog bench x.o -- '') == '' ]]
	equal 'files of prog compare' <({ printf '%s\n' history help && ls; } | words) \
		<(completes prog compare '')
	equal 'keywords of prog compare' <(help_keywords 'prog compare') \
		<(completes prog compare a b '')
	[[ $(completes prog compare history '') == help ]]
	[[ $(completes prog compare history x '') == force ]]
	[[ $(completes prog compare a b threshold '') == '' ]]
	equal 'keywords of stats enable' \
		<({ help_keywords 'stats enable' && echo -- && echo help; } | words) \
		<(completes stats enable '')
	[[ $(completes stats enable duration '') == '' ]]
	[[ $(completes stats enable duration 1 '') == -- ]]
	[[ $(completes stats enable inherit '') == -- ]]
	[[ $(completes stats enable inherit -- '') == '' ]]
	[[ $(completes stats show '') == '' ]]
}

@test "completion offers programs" {
	need_srcdir
	need_bpftool
	# shellcheck source=plugin/bash-completion/bpfcost
	source "$SRCDIR/plugin/bash-completion/bpfcost"
	completes prog profile id '' | grep -Fx "$("$TARGET" id "$BPFFS/t/alu0")"
	completes prog stats id '' | grep -Fx "$("$TARGET" id "$BPFFS/t/alu0")"
	completes prog bench id '' | grep -Fx "$("$TARGET" id "$BPFFS/t/alu0")"
	completes prog profile tag '' | grep -Fx "$("$TARGET" tag "$BPFFS/t/alu10")"
	[[ $(completes prog profile name with_sub) == with_subprog* ]]
	[[ $(completes prog profile pinned "$BPFFS/t/alu1000") == "$BPFFS/t/alu1000" ]]
}
