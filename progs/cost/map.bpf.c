// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Maps: a step is one call, with the map, and the key on the stack, as its arguments. The map's
 * address is loaded before the steps: how many instructions a JIT makes of it depends on where the
 * map is, and so on the boot.
 */
#include "steps.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MAP(map, kind)                             \
	struct {                                   \
		__uint(type, BPF_MAP_TYPE_##kind); \
		__uint(max_entries, 64);           \
		__type(key, __u32);                \
		__type(value, __u64);              \
	} map SEC(".maps")
MAP(array, ARRAY);
MAP(percpu_array, PERCPU_ARRAY);
MAP(hash, HASH);
MAP(percpu_hash, PERCPU_HASH);
MAP(lru_hash, LRU_HASH);

/* The key is 1, and the value for updates 7. The first step is not the one that makes the entry. */
#define BEFORE(map)                  \
	"r6 = %[" #map "] ll\n\t"    \
	"r0 = 1\n\t"                 \
	"*(u32 *)(r10 - 4) = r0\n\t" \
	"r0 = 7\n\t"                 \
	"*(u64 *)(r10 - 16) = r0"
#define ARGUMENTS      \
	"r1 = r6\n\t"  \
	"r2 = r10\n\t" \
	"r2 += -4\n\t"
#define UPDATE          \
	ARGUMENTS       \
	"r3 = r10\n\t"  \
	"r3 += -16\n\t" \
	"r4 = 0\n\t"    \
	"call %[map_update_elem]"

#define LOOKUPS(map)                                                                            \
	STEPS(tc, map##_lookup, 50, 100, 150, BEFORE(map), ARGUMENTS "call %[map_lookup_elem]", \
	      "", HELPER(map_lookup_elem), ADDR(map))
#define UPDATES(map, n1, n2, n3)                                                              \
	STEPS(tc, map##_update, n1, n2, n3, BEFORE(map), UPDATE, "", HELPER(map_update_elem), \
	      ADDR(map))

LOOKUPS(array)
LOOKUPS(percpu_array)
LOOKUPS(hash)
LOOKUPS(percpu_hash)
LOOKUPS(lru_hash)
UPDATES(array, 50, 100, 150)
UPDATES(percpu_array, 50, 100, 150)
UPDATES(hash, 20, 40, 60)
UPDATES(percpu_hash, 20, 40, 60)
UPDATES(lru_hash, 20, 40, 60)

/* What is deleted is put back. */
STEPS(tc, hash_delete, 20, 40, 60, BEFORE(hash), ARGUMENTS "call %[map_delete_elem]\n\t" UPDATE, "",
      HELPER(map_delete_elem), HELPER(map_update_elem), ADDR(hash))
