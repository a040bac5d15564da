# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What scripts/check, scripts/demo and .ci/run share. To be sourced.

# shellcheck disable=SC2034 # used by those who source this
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
# A user's PATH lacks the directories of bpftool, ip and depmod.
PATH=$PATH:/usr/sbin:/sbin
export PATH

# Progress goes to stderr: stdout is for what was asked for.
say() {
	printf '== %s\n' "$*" >&2
}

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

host_arch() {
	case $(uname -m) in
	x86_64) echo amd64 ;;
	aarch64) echo arm64 ;;
	*) uname -m ;;
	esac
}

# Runs a command with its output in LOG; shows the output only if it fails.
logged() { # LOG COMMAND...
	local log=$1 rc=0

	shift
	mkdir -p "${log%/*}"
	"$@" >"$log" 2>&1 </dev/null || rc=$?
	if ((rc)); then
		cat "$log" >&2
		say "failed (exit status $rc): $*"
	fi
	return $rc
}

# The results in KTAP files, counted as selftests/run does: those of the innermost tests, and a test
# that failed though nothing in it did. A file that ends too early is a failure as well. Prints
# "PASSED FAILED SKIPPED".
ktap_count() { # FILE...
	local file

	for file; do
		awk '
		/^1\.\.[0-9]/ { planned = substr($1, 4) + 0 }
		match($0, /^ *(not )?ok [0-9]+( |$)/) {
			match($0, /^ */)
			d = int(RLENGTH / 2)
			failed = $1 == "not"
			skipped = !failed && $0 ~ / # SKIP/
			if (!n[d + 1] || (failed && !bad[d + 1])) {
				if (failed) fail++
				else if (skipped) skip++
				else pass++
			}
			n[d + 1] = bad[d + 1] = 0
			n[d]++
			if (failed) bad[d] = 1
		}
		END {
			if (!planned || n[0] != planned) fail++
			printf "%d %d %d\n", pass, fail, skip
		}' "$file"
	done | awk '{ p += $1; f += $2; s += $3 } END { printf "%d %d %d\n", p, f, s }'
}

# The failed tests in a KTAP file in full: what was said since the result before them.
ktap_failures() { # FILE
	awk '
	/^1\.\.[0-9]/ { planned = substr($1, 4) + 0 }
	match($0, /^ *(not )?ok [0-9]+( |$)/) {
		match($0, /^ */)
		d = int(RLENGTH / 2)
		results[d]++
		if ($1 == "not") {
			# A file whose tests failed has been shown with them.
			if (!bad[d + 1]) {
				if (file) print file
				printf "%s%s\n", text, $0
				file = ""
			}
			bad[d] = 1
		}
		bad[d + 1] = 0
		text = ""
		next
	}
	/^ *K?TAP version|^ *1\.\.[0-9]|^ *# Totals:/ { next }
	/^# [^ ]+\/[^ ]+$/ { file = $0; text = ""; next }
	{ text = text $0 "\n" }
	END {
		if (planned && results[0] == planned) exit
		if (file) print file
		printf "%sthe results end here: planned %d, got %d\n", text, planned, results[0]
	}' "$1"
}

# "N passed, N failed, N skipped", and whether that is a success.
ktap_totals() { # FILE...
	local pass fail skip

	read -r pass fail skip < <(ktap_count "$@")
	printf '%d passed, %d failed, %d skipped\n' "$pass" "$fail" "$skip"
	((fail == 0 && pass > 0))
}
