#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Drives the test programs beside it. Each prints KTAP of its own, whose results become subtests; a
# test here is a program, because a test of bats takes a second in an emulated guest.

load ../lib/common

program() { # NAME
	export STATS_KNOWN_FAILURES=$BATS_TEST_DIRNAME/known-failures
	ktap_run "$BATS_TEST_DIRNAME/$1"
}

# bats test_tags=refcount
@test "reference count of the switch" {
	program refcount
}

# bats test_tags=sysctl
@test "sysctl" {
	program sysctl
}

# bats test_tags=together
@test "sysctl and fds together" {
	program together
}

# bats test_tags=errors
@test "errors" {
	program errors
}

# bats test_tags=counted
@test "what is counted" {
	program counted
}

# bats test_tags=storm
@test "storm" {
	program storm
}

# bats test_tags=midrun
@test "the switch changes in the middle of a run" {
	program midrun
}

# bats test_tags=readers
@test "three ways to read" {
	program readers
}

# bats test_tags=howlong
@test "how long runs take" {
	program howlong
}

# bats test_tags=tools
@test "real tools side by side" {
	program tools
}

# bats test_tags=midrun
@test "the switch changes while a program spins" {
	program midspin
}
