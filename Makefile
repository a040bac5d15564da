# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# make                       build/bpfcost, for this machine
# make O=DIR                 everything that is made goes to DIR
# make ARCH=arm64            cross build (CROSS_COMPILE=aarch64-linux-gnu- is the default there)
# make STATIC=1              no shared libraries: the result runs on a machine that has none
# make ASAN=1                address and undefined behaviour sanitizers, user space only
# make WERROR=1              warnings are errors (CI)
# make V=1                   show the commands
# make check | demo | bench | cost-table | coverage-table
#                            the scripts of the same name
# make install               DESTDIR=, PREFIX=
# make install-selftests     the suite for the kernel's statistics, to run where there is no compiler

.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules

O ?= build
PREFIX ?= /usr/local
VERSION := 0.1.0

HOST_ARCH := $(patsubst aarch64,arm64,$(patsubst x86_64,amd64,$(shell uname -m)))
ARCH ?= $(HOST_ARCH)
override ARCH := $(patsubst x86,amd64,$(patsubst aarch64,arm64,$(patsubst x86_64,amd64,$(ARCH))))
TRIPLET_amd64 := x86_64-linux-gnu
TRIPLET_arm64 := aarch64-linux-gnu
BPF_ARCH_amd64 := x86
BPF_ARCH_arm64 := arm64
TRIPLET := $(TRIPLET_$(ARCH))
ifeq ($(TRIPLET),)
$(error ARCH=$(ARCH): amd64 and arm64 are supported)
endif

ifneq ($(ARCH),$(HOST_ARCH))
CROSS_COMPILE ?= $(TRIPLET)-
export PKG_CONFIG_LIBDIR ?= /usr/lib/$(TRIPLET)/pkgconfig:/usr/share/pkgconfig
endif
ifneq ($(CROSS_COMPILE),)
CC := $(CROSS_COMPILE)gcc
AR := $(CROSS_COMPILE)ar
else
ifeq ($(origin CC),default)
CC := gcc
endif
endif
CLANG ?= clang
BPFTOOL ?= $(shell PATH="$$PATH:/usr/sbin:/sbin" command -v bpftool || echo bpftool)
RST2MAN ?= $(shell command -v rst2man || command -v rst2man.py || echo rst2man)
PKG_CONFIG ?= pkg-config

# Libraries: libbpf and libelf talk to the kernel, libcap names and drops privileges, json-c writes
# and reads JSON.
PKGS := libbpf libelf libcap json-c
PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PKGS))
PKG_LIBS := $(shell $(PKG_CONFIG) $(if $(STATIC),--static) --libs $(PKGS))

# Absolute paths must not reach an object: the same source makes the same bytes anywhere.
ABS_O := $(abspath $(O))
PREFIX_MAP := -ffile-prefix-map=$(ABS_O)=build -ffile-prefix-map=$(CURDIR)=.

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
override CFLAGS := -O2 -g $(CFLAGS)
BASE_CFLAGS := -std=gnu11 $(WARNINGS) $(if $(WERROR),-Werror) $(PREFIX_MAP) -D_GNU_SOURCE \
	-DBPFCOST_VERSION='"$(VERSION)"' -Iinclude $(PKG_CFLAGS)
LDFLAGS_ALL := $(if $(STATIC),-static) $(LDFLAGS)
ifneq ($(ASAN),)
ifneq ($(STATIC),)
$(error ASAN=1 and STATIC=1 exclude each other)
endif
SAN := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
endif

# Only clang compiles for BPF; asm/types.h is in the multiarch directory.
BPF_CFLAGS := -target bpf -mcpu=v3 -O2 -g $(WARNINGS) -Wno-missing-prototypes \
	-Wno-unused-parameter $(if $(WERROR),-Werror) $(PREFIX_MAP) \
	-D__TARGET_ARCH_$(BPF_ARCH_$(ARCH)) -Iinclude -Iprogs \
	$(shell $(PKG_CONFIG) --cflags libbpf) \
	-idirafter /usr/include/$(TRIPLET) -idirafter /usr/$(TRIPLET)/include

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-8s %s\n' $(1) $(2)
endif

# What there is, by the folders.
PLUGIN_SRC := $(wildcard plugin/*.c)
PLUGIN_OBJ := $(PLUGIN_SRC:%.c=$(O)/%.o)
PROGS_SRC := $(wildcard progs/*.bpf.c)
SKELS := $(PROGS_SRC:%.bpf.c=$(O)/%.skel.h)
BPF_OBJ := $(PROGS_SRC:%.bpf.c=$(O)/%.bpf.o)
# Programs with known costs: objects, which selftests/cost/cost opens.
COST_OBJ := $(patsubst %.bpf.c,$(O)/%.bpf.o,$(wildcard progs/cost/*.bpf.c))
# What they cost on the kernels of the lab, to compare with.
COST_TABLE := $(patsubst Documentation/%,$(O)/selftests/cost/%,\
	$(wildcard Documentation/cost-table.json))

# selftests: each selftests/SUITE/NAME.c is a program, each NAME.bpf.c an object and a skeleton
# that the programs of the suite include as "NAME.skel.h"; selftests/lib/*.c is linked into all.
# A program may use every module of the command but its main().
TEST_LIB_SRC := $(wildcard selftests/lib/*.c)
TEST_SRC := $(filter-out $(TEST_LIB_SRC),$(wildcard selftests/*/*.c))
TEST_BPF_SRC := $(filter %.bpf.c,$(TEST_SRC))
TEST_C_SRC := $(filter-out %.bpf.c,$(TEST_SRC))
TEST_BIN := $(TEST_C_SRC:%.c=$(O)/%)
TEST_OBJ := $(TEST_C_SRC:%.c=$(O)/%.o) $(TEST_LIB_SRC:%.c=$(O)/%.o)
TEST_BPF_OBJ := $(TEST_BPF_SRC:%.c=$(O)/%.o)
TEST_SKELS := $(TEST_BPF_SRC:%.bpf.c=$(O)/%.skel.h)
TEST_DATA := $(shell find selftests -type f ! -name '*.c' ! -name '*.h' ! -name '.*')
TEST_DATA_OUT := $(TEST_DATA:%=$(O)/%)

MAN_SRC := $(wildcard Documentation/*.8.rst)
MAN := $(MAN_SRC:%.rst=$(O)/%)

.PHONY: all tests cost man clean install install-selftests uninstall check demo bench cost-table \
	coverage-table
all: $(O)/bpfcost $(BPF_OBJ) tests man
tests: $(TEST_BIN) $(TEST_BPF_OBJ) $(COST_OBJ) $(COST_TABLE) $(TEST_DATA_OUT)
man: $(MAN)
# What the programs with known costs need, in a guest as well: nothing else of the build directory.
cost: $(O)/selftests/cost/cost $(COST_OBJ) $(COST_TABLE)

# A change of the flags rebuilds everything that they reach.
FLAGS := $(CC) $(BASE_CFLAGS) $(CFLAGS) $(SAN) $(LDFLAGS_ALL) $(PKG_LIBS) $(CLANG) $(BPF_CFLAGS)
$(O)/.flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(FLAGS))' | cmp -s - $@ || \
		printf '%s\n' '$(subst ','\'',$(FLAGS))' > $@
.PHONY: FORCE
FORCE:

$(O)/bpfcost: $(PLUGIN_OBJ)
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN) $(LDFLAGS_ALL) -o $@ $^ $(PKG_LIBS) -lm

$(O)/plugin/%.o: plugin/%.c $(O)/.flags | $(SKELS)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE_CFLAGS) $(CFLAGS) $(SAN) -I$(O)/progs -MMD -MP -c -o $@ $<

# bpftool's static linker drops the DWARF that clang needs -g to make BTF from.
$(O)/%.bpf.o: %.bpf.c $(O)/.flags
	$(call say,BPF,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c -o $(@:.bpf.o=.bpf.tmp) $<
	$(Q)$(BPFTOOL) gen object $@ $(@:.bpf.o=.bpf.tmp)
	@rm -f $(@:.bpf.o=.bpf.tmp)

$(O)/%.skel.h: $(O)/%.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $(subst -,_,$(notdir $(<:.bpf.o=)))_bpf > $@

$(O)/libbpfcost.a: $(filter-out $(O)/plugin/main.o,$(PLUGIN_OBJ)) \
		$(TEST_LIB_SRC:%.c=$(O)/%.o)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcsD $@ $^

$(TEST_OBJ): $(O)/%.o: %.c $(O)/.flags | $(SKELS) $(TEST_SKELS)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE_CFLAGS) $(CFLAGS) $(SAN) -Iplugin -Iselftests/lib -I$(O)/progs -I$(@D) \
		-MMD -MP -c -o $@ $<

$(TEST_BIN): $(O)/%: $(O)/%.o $(O)/libbpfcost.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN) $(LDFLAGS_ALL) -o $@ $< $(O)/libbpfcost.a $(PKG_LIBS) -lm -lpthread

$(TEST_DATA_OUT): $(O)/%: %
	@mkdir -p $(@D)
	$(Q)cp -p $< $@

$(COST_TABLE): $(O)/selftests/cost/%: Documentation/%
	@mkdir -p $(@D)
	$(Q)cp -p $< $@

$(O)/Documentation/%.8: Documentation/%.8.rst
	$(call say,MAN,$@)
	@mkdir -p $(@D)
	$(Q)$(RST2MAN) --strict $< > $@

install: all
	install -D -m 755 $(O)/bpfcost $(DESTDIR)$(PREFIX)/sbin/bpfcost
	ln -sf bpfcost $(DESTDIR)$(PREFIX)/sbin/bpftool-cost
	install -d $(DESTDIR)$(PREFIX)/share/man/man8
	install -m 644 $(MAN) $(DESTDIR)$(PREFIX)/share/man/man8/
	install -D -m 644 plugin/bash-completion/bpfcost \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/bpfcost

# What it takes to run selftests/stats: neither a compiler nor the command.
STATS_PROGS := $(filter $(O)/selftests/stats/%,$(TEST_BIN))
STATS_DATA := $(filter-out %/Makefile,$(filter \
	selftests/run selftests/skips selftests/.fmf/% selftests/lib/% selftests/stats/%, \
	$(TEST_DATA)))
SELFTESTS_DIR = $(DESTDIR)$(PREFIX)/libexec/bpfcost
install-selftests: $(STATS_PROGS) $(STATS_DATA:%=$(O)/%)
	install -d $(SELFTESTS_DIR)/selftests/lib $(SELFTESTS_DIR)/selftests/stats
	install $(STATS_PROGS) $(SELFTESTS_DIR)/selftests/stats/
	cd $(O) && cp -p --parents $(STATS_DATA) $(abspath $(SELFTESTS_DIR))/

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/sbin/bpfcost $(DESTDIR)$(PREFIX)/sbin/bpftool-cost \
		$(MAN:$(O)/Documentation/%=$(DESTDIR)$(PREFIX)/share/man/man8/%) \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/bpfcost

check demo bench cost-table coverage-table:
	./scripts/$@

clean:
	rm -rf $(O)

-include $(PLUGIN_OBJ:.o=.d) $(TEST_C_SRC:%.c=$(O)/%.d) $(TEST_LIB_SRC:%.c=$(O)/%.d)
-include $(BPF_OBJ:.o=.d) $(COST_OBJ:.o=.d) $(TEST_BPF_OBJ:.o=.d)
