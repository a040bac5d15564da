# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What holds for every document of prog stats, and words for what tests ask of it.

def near($v): . - $v | fabs < 0.001 * ([$v, -$v, 1] | max);

def sum(f): [.programs[] | f // 0] | add // 0;

# A program by its id: others may have its name.
def prog($id): .programs[] | select(.id == $id);

# How often it ran; of all rows, if there are several.
def runs($id): [prog($id) | .run_cnt] | add // 0;

def sound_program($doc): . as $p
	| .run_cnt == .last.run_cnt - .first.run_cnt
	and .run_time_ns == .last.run_time_ns - .first.run_time_ns
	and has("recursion_misses") == (.last | has("recursion_misses"))
	and (.recursion_misses // 0) ==
		(.last.recursion_misses // 0) - (.first.recursion_misses // 0)
	and ([.run_cnt, .run_time_ns, .recursion_misses // 0] | min >= 0)
	and (.cpu_percent | near($p.run_time_ns / $p.window_ns * 100))
	and (.machine_percent | near($p.cpu_percent / $doc.online_cpus))
	and (.runs_per_s | near($p.run_cnt * 1e9 / $p.window_ns))
	and (if .run_cnt > 0 then
		(.ns_per_run | near($p.run_time_ns / $p.run_cnt))
		and (.net_per_run | near($p.ns_per_run - $doc.floor))
		and .net_is_noise == (.ns_per_run <= $doc.floor_p90 + 0.001)
	else
		has("ns_per_run") or has("net_per_run") | not
	end);

def sound: . as $doc
	| .window_ns > 0 and .online_cpus > 0
	and .floor_p10 <= .floor and .floor <= .floor_p90
	and .run_cnt == sum(.run_cnt) and .run_time_ns == sum(.run_time_ns)
	and (.cpu_percent | near($doc | sum(.cpu_percent)))
	and (.machine_percent | near($doc.cpu_percent / $doc.online_cpus))
	and ([.programs[].cpu_percent] | . == (sort | reverse))
	and all(.programs[]; sound_program($doc));

# For messages: without those that did nothing.
def brief: if type == "object" and has("programs") then
		.programs |= map(select(.run_cnt != 0 or .marks != [] or has("blind")))
	else . end;
