#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What is not ours is bpftool's, to the last byte.

load usage

setup_file() {
	need_bpftool
	mount_bpffs
	"$TARGET" plain "$BPFFS/plain" >/dev/null
	"$TARGET" map "$BPFFS/map"
}

teardown_file() {
	umount_bpffs
}

setup() {
	need_bpftool
	cd "$T" || return
}

# bpftool as it is called by its name, which is in its messages.
real() { # ARG...
	(exec -a bpftool "$BPFTOOL" "$@")
}

# bpftool and bpfcost: the same stdout, stderr and status. Others may load
# programs meanwhile: three tries.
same() { # ARG...
	local try a b

	for try in 1 2 3; do
		a=0 b=0
		real "$@" >"$T/out-a" 2>"$T/err-a" </dev/null || a=$?
		"$BPFCOST" "$@" >"$T/out-b" 2>"$T/err-b" </dev/null || b=$?
		if ((a == b)) && cmp -s "$T/out-a" "$T/out-b" && cmp -s "$T/err-a" "$T/err-b"; then
			return 0
		fi
	done
	diff "$T/out-a" "$T/out-b" || :
	diff "$T/err-a" "$T/err-b" || :
	fail "$*: status $a of bpftool, $b of bpfcost, after try $try"
}

@test "prog: show, list, dump, and beginnings of words" {
	same prog
	same prog show
	same prog list
	same p s
	same prog show -j
	same -j prog show
	same -jp prog show
	same --json --pretty prog show
	same prog show pinned "$BPFFS/plain"
	same prog show -f pinned "$BPFFS/plain"
	same prog dump xlated pinned "$BPFFS/plain"
	same -j prog dump xlated pinned "$BPFFS/plain" opcodes
	same prog d x pi "$BPFFS/plain"
}

@test "map, btf, link, cgroup, net, perf, iter, struct_ops, feature" {
	same map show
	same -j map show
	same map dump pinned "$BPFFS/map"
	same -jp map dump pinned "$BPFFS/map"
	same btf list
	same btf show -j
	same link show
	same link
	same cgroup tree
	same net
	same -jp net
	same perf
	same iter
	same struct_ops show
	same feature probe kernel
	same gen object "$T/linked.o" "$TESTDIR/cli/targets.bpf.o"
	same gen skeleton "$TESTDIR/cli/targets.bpf.o"
}

@test "what changes things does so once" {
	"$BPFCOST" map update pinned "$BPFFS/map" key 0 0 0 0 value 1 2 3 4
	same map lookup pinned "$BPFFS/map" key 0 0 0 0
	run -0 "$BPFCOST" -j map lookup pinned "$BPFFS/map" key 0 0 0 0
	[[ $(jq -c .value <<<"$output") == '["0x01","0x02","0x03","0x04"]' ]]
	same map pin pinned "$BPFFS/map" /nonexistent/map
}

@test "version, batch files, and standard input" {
	same version
	same -j version
	same version -p
	printf 'prog show\nmap show\n# a comment\nversion\n' >commands
	same batch file commands
	same -j batch file commands
	printf 'prog show\nnonsense\nversion\n' >commands
	same batch file commands
	same batch file nonexistent
	echo version >commands
	cmp <(real batch file - <commands 2>&1) <("$BPFCOST" batch file - <commands 2>&1)
}

@test "errors are bpftool's, with its exit status" {
	same nonsense
	same -j nonsense
	same nonsense -p
	same prog nonsense
	same -j prog nonsense
	same prog show id 4294967295
	same -j prog show id 4294967295
	same prog show id
	same prog load
	same map dump
	same --nonsense
	same --nonsense prog show
	same prog show --nonsense
	same -j -x prog show
	same prog show -B
	same -- prog show
	same prog -- show
	# What begins like ours, and is bpftool's, or nobody's.
	same s show
	same st show
	same str
	same struct
	same statsx show
	same statistics
	same state show
	same prog s
	same prog sh
	same ''
	same '' ''
	same prog ''
}

@test "help: ours, then bpftool's" {
	local args

	for args in '' help -h --help 'prog help' 'prog show -h' '-h prog' 'prog help -m' h; do
		# shellcheck disable=SC2086 # words
		real $args >"$T/out-a" 2>"$T/err-a" || :
		# shellcheck disable=SC2086
		bpfcost $args
		((status == 0)) || fail "'$args': exit status $status"
		cmp "$T/out-a" "$T/out"
		# Ours is what there is without a bpftool.
		# shellcheck disable=SC2086
		BPFTOOL=/nonexistent "$BPFCOST" help 2>"$T/ours"
		cmp <(cat "$T/ours" "$T/err-a") "$T/err"
	done
	same -j help
	same map help
	same -j prog help
}

@test "arguments arrive as they are, by the name of bpftool" {
	cat >fake <<'EOF'
#!/bin/bash
printf '<%s>' "$@"
exit 42
EOF
	chmod +x fake
	run -42 env BPFTOOL="$T/fake" "$BPFCOST" map dump 'a b' '' $'c\nd' -- '*' -x
	[[ $output == $'<map><dump><a b><><c\nd><--><*><-x>' ]]
	ln -s fake bpftool-other
	run -42 env PATH="$T:$PATH" BPFTOOL=bpftool-other "$BPFCOST" -j map
	[[ $output == '<-j><map>' ]]
}

@test "BPFTOOL that cannot be run, or that is bpfcost" {
	export BPFTOOL=/nonexistent/bpftool
	fails 1 "cannot run '/nonexistent/bpftool': No such file or directory (ENOENT); it is" \
		map show
	touch not-executable
	BPFTOOL=$T/not-executable
	fails 1 "Permission denied (EACCES)" map show

	# Else make BPFTOOL=bpfcost runs for ever.
	ln -s "$BPFCOST" bpfcost
	for BPFTOOL in "$BPFCOST" "$T/bpfcost" bpfcost; do
		run -0 --separate-stderr timeout 10 env PATH="$T:$PATH" "$T/bpfcost" -j version
		[[ $(jq -r .libbpf_version <<<"$output") == +([0-9]).+([0-9]) ]]
		[[ ! $stderr ]]
	done
}

@test "links named bpftool and bpftool-cost" {
	local version

	version=$(real version)
	ln -s "$BPFCOST" bpftool
	ln -s "$BPFCOST" bpftool-cost
	PATH=$T:${BPFTOOL%/*}:$PATH
	unset BPFTOOL
	for name in bpftool bpftool-cost; do
		run -0 timeout 10 "$name" version
		[[ $output == "$version" ]]
		run -0 timeout 10 "$name" prog profile help
		[[ $output == 'Usage: bpfcost '* ]]
		run -0 timeout 10 "$name" -V
		[[ $output == 'bpfcost v'* ]]
	done
}

@test "no bpftool installed: which package has it" {
	need_root
	# Hidden where it is looked for, in a mount namespace of its own.
	cat >hide <<'EOF'
for dir in /usr/local/sbin /usr/sbin /sbin /usr/local/bin /usr/bin /bin; do
	[[ ! -f $dir/bpftool ]] || mount --bind /dev/null "$dir/bpftool" || exit 99
done
unset BPFTOOL
exec "$@"
EOF
	run --separate-stderr unshare -m bash hide "$BPFCOST" prog show
	((status != 99)) || skip "may not bind-mount"
	((status == 1))
	[[ ! $output ]]
	[[ $stderr == 'Error: this is a command of bpftool, which is not installed'* ]]
	[[ $stderr == *'apt install bpftool'* ]]
	run -1 --separate-stderr unshare -m bash hide "$BPFCOST" -j map
	[[ $(jq -r .error <<<"$output") == *'apt install bpftool'* && ! $stderr ]]
	# What is ours works all the same.
	run -0 --separate-stderr unshare -m bash hide "$BPFCOST" help
	[[ ! $output && $stderr == 'Usage: bpfcost '* ]]
	run -0 --separate-stderr unshare -m bash hide "$BPFCOST" -j help
	[[ $output == null ]]
	run -2 unshare -m bash hide "$BPFCOST" prog profile id 4294967295
}

@test "the alias is safe in scripts: pipes, closed output, signals" {
	# shellcheck disable=SC2016 # for the other shell
	run -0 bash -c 'set -o pipefail; "$BPFCOST" -j prog show | jq -e length'
	# As bpftool when stdout is closed or full.
	[[ $("$BPFCOST" version >&- 2>&1; echo $?) == "$(real version >&- 2>&1; echo $?)" ]]
	[[ $("$BPFCOST" prog >/dev/full 2>&1; echo $?) == "$(real prog >/dev/full 2>&1; echo $?)" ]]
	# The process is bpftool's own: a signal to it is one to bpftool.
	printf '#!/bin/bash\nkill -TERM $$\n' >fake
	chmod +x fake
	run -143 env BPFTOOL="$T/fake" "$BPFCOST" prog show
}
