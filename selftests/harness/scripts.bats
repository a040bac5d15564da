#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# scripts/deps with a Debian made up here, and the counting that scripts/check and CI share.

setup() {
	load ../lib/common
	need_srcdir
	[[ -e $SRCDIR/scripts/deps ]] || skip "no scripts in the source tree"
	cd "$BATS_TEST_TMPDIR"
	mkdir bin
	PATH=$PWD/bin:$PATH
	# What is called, with which arguments.
	: >calls
	stub dpkg 'case $1 in --print-architecture) echo amd64 ;; esac'
	stub dpkg-query 'cat installed'
	stub apt-get ''
	stub apt-cache 'echo "  Candidate: 1.0"'
	stub uname 'echo x86_64'
	: >installed
}

stub() { # NAME BODY
	printf '#!/bin/bash\ncd "%s"\necho "%s $*" >>calls\n%s\n' "$PWD" "$1" "$2" >"bin/$1"
	chmod +x "bin/$1"
}

# Makes a package installed.
have() { # PACKAGE[:ARCH]...
	local name arch

	for name; do
		arch=amd64
		[[ $name != *:* ]] || arch=${name#*:}
		printf '%s %s installed\n' "${name%:*}" "$arch" >>installed
	done
}

@test "deps: nothing is done when nothing is missing" {
	mapfile -t all < <("$SRCDIR/scripts/deps" --missing)
	((${#all[@]} > 20)) || fail "too few: ${all[*]}"
	have "${all[@]}"
	: >calls
	run -0 "$SRCDIR/scripts/deps"
	[[ ! $output ]] || fail "$output"
	if grep '^apt' calls; then fail "it called apt"; fi
}

@test "deps: what is missing is said, then installed without recommendations" {
	need_root
	mapfile -t all < <("$SRCDIR/scripts/deps" --missing | grep -vx 'jq\|bats')
	have "${all[@]}"
	: >calls
	run -0 "$SRCDIR/scripts/deps"
	[[ $output == *"installing 2 packages: bats jq"* ]] || fail "$output"
	grep -qx 'apt-get install -y --no-install-recommends bats jq' calls || fail "$(cat calls)"
	# The list of packages was good enough.
	if grep 'apt-get.*update' calls; then fail "it read the lists of packages"; fi
}

@test "deps: a package of the right name and the wrong architecture is not enough" {
	have zlib1g-dev:arm64
	run -0 "$SRCDIR/scripts/deps" --missing build
	[[ $'\n'$output$'\n' == *$'\nzlib1g-dev\n'* ]] || fail "$output"
	run -0 "$SRCDIR/scripts/deps" --missing cross
	[[ $output != *zlib1g-dev:arm64* ]] || fail "$output"
}

@test "deps: the other architecture is added for its libraries only" {
	need_root
	run -0 "$SRCDIR/scripts/deps" build
	if grep 'dpkg --add-architecture' calls; then fail "for build"; fi
	run -0 "$SRCDIR/scripts/deps" cross
	grep -qx 'dpkg --add-architecture arm64' calls || fail "$(cat calls)"
}

@test "deps: what apt cannot do is an error, with what apt said" {
	need_root
	stub apt-get 'echo "E: no such luck"; exit 100'
	run -1 "$SRCDIR/scripts/deps" build
	[[ $output == *"E: no such luck"*"could not install: "*gcc* ]] || fail "$output"
}

@test "deps: an ordinary user is told what to do" {
	need_command setpriv
	need_root
	cp -r "$SRCDIR/scripts" .
	chmod -R a+rX . "$BATS_RUN_TMPDIR"
	chmod a+rwX . calls
	run -1 setpriv --reuid 65534 --clear-groups scripts/deps cross
	[[ $output == *"as root, run:"*"dpkg --add-architecture arm64"* ]] || fail "$output"
	[[ $output == *"apt-get install -y --no-install-recommends "*gcc-aarch64* ]] || fail "$output"
	if grep '^apt-get' calls; then fail "it called apt-get"; fi
}

@test "an unknown option is wrong usage" {
	run -2 "$SRCDIR/scripts/deps" --nonsense
	run -2 "$SRCDIR/scripts/check" --nonsense
	run -2 "$SRCDIR/scripts/check" --kernel
	run -2 "$TESTDIR/run" --nonsense
}

@test "totals: the innermost results count, of all files together" {
	cat >one.ktap <<-'EOF'
	KTAP version 1
	1..3
	# a/x.bats
	  KTAP version 1
	  1..3
	  ok 1 passes
	  # not ok 9 is only a remark
	  ok 2 skips # SKIP no PMU
	  # the reason
	  not ok 3 fails
	  # Totals: pass:1 fail:1 xfail:0 xpass:0 skip:1 error:0
	not ok 1 a/x
	# a/y.bats
	    1..1
	    ok 1 sub
	  ok 1 with subtests
	ok 2 a/y
	# a/short
	  1..2
	  ok 1 passes
	# planned 2 tests, got 1
	not ok 3 a/short
	EOF
	printf '%s\n' 'KTAP version 1' '1..1' 'ok 1 a build' >two.ktap
	. "$SRCDIR/scripts/lib.sh"
	run -0 ktap_count one.ktap two.ktap
	[[ $output == "4 2 1" ]] || fail "$output"
	run -1 ktap_totals one.ktap two.ktap
	[[ $output == "4 passed, 2 failed, 1 skipped" ]] || fail "$output"
	run -0 ktap_totals two.ktap
	[[ $output == "1 passed, 0 failed, 0 skipped" ]] || fail "$output"
	run -1 ktap_totals two.ktap /dev/null
	[[ $output == "1 passed, 1 failed, 0 skipped" ]] || fail "$output"
	run -1 ktap_totals two.ktap <(head -n 8 one.ktap)
	[[ $output == "2 passed, 1 failed, 1 skipped" ]] || fail "$output"
	run -0 ktap_failures <(head -n 8 one.ktap)
	[[ $output == '# a/x.bats
the results end here: planned 3, got 0' ]] || fail "$output"
	run -0 ktap_failures one.ktap
	[[ $output == '# a/x.bats
  # the reason
  not ok 3 fails
# a/short
# planned 2 tests, got 1
not ok 3 a/short' ]] || fail "$output"
}

@test "totals: the runner counts alike" {
	mkdir -p t/lib t/one
	cp "$TESTDIR/run" t/
	cp "$TESTDIR/lib/ktap-formatter" "$TESTDIR/lib/common.bash" t/lib/
	sed 's/^TEST /@test /' >t/one/a.bats <<-'EOF'
	load ../lib/common
	TEST "p" { true; }
	TEST "f" { false; }
	TEST "s" { skip "no PMU"; }
	TEST "subtests" { ktap_run printf '%s\n' 1..2 'ok 1 p' 'not ok 2 q'; }
	TEST "fails by itself" { ktap_run printf '%s\n' 1..2 'ok 1 p'; }
	EOF
	. "$SRCDIR/scripts/lib.sh"
	t/run >all.ktap || :
	run -1 ktap_totals all.ktap
	[[ $(tail -n 1 all.ktap) == "# $output" ]] || fail "$output"$'\n'"$(cat all.ktap)"
	[[ $output == "3 passed, 3 failed, 1 skipped" ]] || fail "$output"
}
