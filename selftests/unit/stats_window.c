// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Windows of the run time statistics: what cannot be provoked in a kernel, by samples made up. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ktap.h"
#include "stats_window.h"

#define SECOND 1000000000ULL

static const struct stats_floor floor_10 = {.known = true, .value = 10, .low = 8, .high = 13};

static void begin(struct stats_sample *s, __u64 time_ns, __u32 last_id)
{
	memset(s, 0, sizeof(*s));
	s->time_ns = time_ns;
	s->boot_ns = time_ns + 5 * SECOND; /* it was suspended for a while */
	s->last_id = last_id;
	s->online_cpus = 4;
	s->missed_known = true;
}

static struct stats_row *add(struct stats_sample *s, __u32 id, __u64 load_time, __u64 runs,
			     __u64 time_ns)
{
	struct stats_row *row = stats_sample__add(s);

	if (!row)
		exit(2);
	row->id = id;
	row->load_time = load_time;
	row->time_ns = s->time_ns;
	row->counters.run_cnt = runs;
	row->counters.run_time_ns = time_ns;
	return row;
}

static const struct stats_window_row *find(const struct stats_window *w, __u32 id, __u64 load_time)
{
	size_t i;

	for (i = 0; i < w->n; i++)
		if (w->v[i].last.id == id && w->v[i].last.load_time == load_time)
			return &w->v[i];
	return NULL;
}

static bool is(const struct stats_window *w, __u32 id, __u64 load_time, __u64 runs, __u64 time_ns,
	       unsigned marks)
{
	const struct stats_window_row *r = find(w, id, load_time);

	if (r && r->counters.run_cnt == runs && r->counters.run_time_ns == time_ns &&
	    r->marks == marks)
		return true;
	if (r)
		ktap_note("%u: %llu runs, %llu ns, marks 0x%x; expected %llu, %llu, 0x%x", id,
			  (unsigned long long)r->counters.run_cnt,
			  (unsigned long long)r->counters.run_time_ns, r->marks,
			  (unsigned long long)runs, (unsigned long long)time_ns, marks);
	else
		ktap_note("%u: not there", id);
	return false;
}

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9 * (fabs(b) + 1);
}

static void end(struct stats_window *w, struct stats_sample *from, struct stats_sample *to)
{
	stats_window__free(w);
	stats_sample__free(from);
	stats_sample__free(to);
}

/* Each row has the time between its own readings. */
static bool test_numbers(void)
{
	struct stats_sample from, to;
	struct stats_window w;
	const struct stats_window_row *r;
	bool ok;

	begin(&from, 10 * SECOND, 9);
	add(&from, 3, 1, 1000, 50000);
	add(&from, 4, 1, 7, 700)->time_ns += SECOND / 2;
	add(&from, 5, 1, 0, 0);
	begin(&to, 12 * SECOND, 9);
	add(&to, 3, 1, 1500, 70000)->counters.recursion_misses = 3;
	add(&to, 4, 1, 107, 2000)->time_ns += SECOND / 2;
	add(&to, 5, 1, 0, 0);
	if (stats_window__init(&w, &from, &to, &floor_10))
		return false;
	ok = is(&w, 3, 1, 500, 20000, 0) && is(&w, 4, 1, 100, 1300, 0) && is(&w, 5, 1, 0, 0, 0);
	r = find(&w, 3, 1);
	ok = ok && near(r->ns_per_run, 40) && near(r->net_per_run, 30) && !r->net_is_noise &&
	     near(r->runs_per_s, 250) && near(r->cpus, 1e-5) && r->time_ns == 2 * SECOND &&
	     r->counters.recursion_misses == 3 && r->first.counters.run_cnt == 1000 &&
	     r->last.counters.run_cnt == 1500;
	/* 13 ns gross is still within the floor's spread. */
	r = find(&w, 4, 1);
	ok = ok && near(r->ns_per_run, 13) && near(r->net_per_run, 3) && r->net_is_noise &&
	     r->time_ns == 2 * SECOND && near(r->runs_per_s, 50);
	ok = ok && w.time_ns == 2 * SECOND && w.run_cnt == 600 && w.run_time_ns == 21300 &&
	     w.n_ran == 2 && near(w.cpus, 21300 / 2e9) && w.online_cpus == 4 && !w.cpus_changed &&
	     w.missed_known && !w.switch_was_off && !w.unseen;
	end(&w, &from, &to);
	return ok;
}

static bool test_come(void)
{
	struct stats_sample from, to;
	struct stats_window w;
	bool ok;

	begin(&from, 10 * SECOND, 9);
	add(&from, 8, 1, 5, 50)->late = true;
	begin(&to, 12 * SECOND, 20);
	add(&to, 6, 3, 7, 70);		 /* was there, but was not seen */
	add(&to, 8, 1, 6, 60);		 /* was first read a moment later */
	add(&to, 9, 16 * SECOND, 5, 55); /* by its load time: ids begin anew */
	add(&to, 12, 1, 30, 300);	 /* by its id: verified since long before */
	if (stats_window__init(&w, &from, &to, &floor_10))
		return false;
	ok = is(&w, 6, 3, 0, 0, STATS_LATE) && is(&w, 8, 1, 1, 10, STATS_LATE) &&
	     is(&w, 9, 16 * SECOND, 5, 55, STATS_NEW) && is(&w, 12, 1, 30, 300, STATS_NEW) &&
	     find(&w, 12, 1)->time_ns == 2 * SECOND && w.n == 4;
	end(&w, &from, &to);

	/* Neither list nor load time, as from /proc: nothing says that it is new. */
	begin(&from, 10 * SECOND, 0);
	begin(&to, 12 * SECOND, 0);
	add(&to, 6, 0, 7, 70);
	if (stats_window__init(&w, &from, &to, &floor_10))
		return false;
	ok = ok && is(&w, 6, 0, 0, 0, STATS_LATE);
	end(&w, &from, &to);
	return ok;
}

/* An id that is used again, by a program with another load time or tag, is another program. */
static bool test_go(void)
{
	struct stats_sample from, to;
	struct stats_window w;
	bool ok;

	begin(&from, 10 * SECOND, 9);
	add(&from, 3, 1, 100, 1000);
	add(&from, 4, 1, 100, 1000);
	add(&from, 5, 1, 100, 1000);
	add(&from, 6, 1, 100, 1000)->gone = true;
	add(&from, 7, 1, 100, 1000);
	begin(&to, 12 * SECOND, 9);
	add(&to, 3, 1, 120, 1300)->gone = true;
	add(&to, 4, 16 * SECOND, 20, 400);
	add(&to, 7, 1, 3, 30)->tag[3] = 1;
	if (stats_window__init(&w, &from, &to, &floor_10))
		return false;
	ok = is(&w, 3, 1, 20, 300, STATS_GONE) && is(&w, 4, 16 * SECOND, 20, 400, STATS_NEW) &&
	     !find(&w, 4, 1) && !find(&w, 5, 1) && !find(&w, 6, 1) &&
	     is(&w, 7, 1, 0, 0, STATS_LATE) && w.n == 3;
	end(&w, &from, &to);
	return ok;
}

static bool test_impossible(void)
{
	struct stats_sample from, to;
	struct stats_window w;
	const struct stats_window_row *r;
	bool ok;

	begin(&from, 10 * SECOND, 9);
	add(&from, 1, 1, 100, 1000);
	add(&from, 2, 1, 100, 1000);
	add(&from, 3, 1, 100, 1000)->counters.recursion_misses = 1;
	add(&from, 4, 1, 100, 1000);
	add(&from, 5, 1, 100, 1000);
	add(&from, 6, 1, 100, 1000);
	add(&from, 7, 1, 100, 1000);
	begin(&to, 12 * SECOND, 9);
	add(&to, 1, 1, 99, 2000);
	add(&to, 2, 1, 101, 999);
	add(&to, 3, 1, 101, 1001);
	add(&to, 4, 1, 101, 1000);
	add(&to, 5, 1, 100, 1001);
	add(&to, 6, 1, 101, 1000 + 8 * SECOND);
	add(&to, 7, 1, 101, 1001 + 8 * SECOND);
	if (stats_window__init(&w, &from, &to, &floor_10))
		return false;
	ok = is(&w, 1, 1, 0, 0, STATS_BACK) && is(&w, 2, 1, 0, 0, STATS_BACK) &&
	     is(&w, 3, 1, 0, 0, STATS_BACK) && is(&w, 4, 1, 1, 0, STATS_TORN) &&
	     is(&w, 5, 1, 0, 1, STATS_TORN) && is(&w, 6, 1, 1, 8 * SECOND, 0) &&
	     is(&w, 7, 1, 1, 8 * SECOND + 1, STATS_LONG);
	r = find(&w, 1, 1);
	ok = ok && r->ns_per_run == 0 && r->cpus == 0 && r->runs_per_s == 0;
	/* Time without runs is no reason to divide by 0. */
	r = find(&w, 5, 1);
	ok = ok && r->ns_per_run == 0 && r->net_per_run == 0 && !r->net_is_noise;
	end(&w, &from, &to);
	return ok;
}

static bool test_edges(void)
{
	static const struct stats_floor unknown;
	struct stats_sample from, to;
	struct stats_window w;
	bool ok;

	/* Nothing, in no time; a floor that is not known; CPUs that came; a switch that was off. */
	begin(&from, 10 * SECOND, 9);
	begin(&to, 10 * SECOND, 9);
	if (stats_window__init(&w, &from, &to, &unknown))
		return false;
	ok = !w.n && !w.run_cnt && w.cpus == 0 && !w.time_ns;
	end(&w, &from, &to);
	begin(&from, 10 * SECOND, 9);
	add(&from, 1, 1, 0, 0);
	begin(&to, 10 * SECOND, 9);
	add(&to, 1, 1, 1, 100);
	from.missed_known = false;
	to.online_cpus = 0;
	to.switch_was_off = true;
	if (stats_window__init(&w, &from, &to, &unknown))
		return false;
	ok = ok && is(&w, 1, 1, 1, 100, 0) && w.v[0].net_per_run == 0 && !w.v[0].net_is_noise &&
	     w.v[0].cpus == 0 && w.online_cpus == 1 && w.cpus_changed && !w.missed_known &&
	     w.switch_was_off;
	end(&w, &from, &to);
	return ok;
}

static bool unseen_is(__u32 last_from, __u64 seen_from, __u32 last_to, __u64 seen_to,
		      __u64 expected)
{
	struct stats_sample from, to;
	struct stats_window w;
	bool ok;

	begin(&from, 10 * SECOND, last_from);
	begin(&to, 12 * SECOND, last_to);
	from.n_seen = seen_from;
	to.n_seen = seen_to;
	if (stats_window__init(&w, &from, &to, &floor_10))
		return false;
	ok = w.unseen == expected;
	if (!ok)
		ktap_note("unseen: %llu, expected %llu", (unsigned long long)w.unseen,
			  (unsigned long long)expected);
	end(&w, &from, &to);
	return ok;
}

int main(void)
{
	struct ktap k;

	ktap_begin(&k, 6);
	ktap_ok(&k, test_numbers(), "differences, per run, per second, shares, sums");
	ktap_ok(&k, test_come(),
		"programs that come: counted from zero, or from when they were seen");
	ktap_ok(&k, test_go(), "programs that go, and ids that are used again");
	ktap_ok(&k, test_impossible(), "counters that go back, or do not go together, are marked");
	ktap_ok(&k, test_edges(), "no time, no floor, other CPUs, the switch off");
	ktap_ok(&k,
		unseen_is(9, 5, 20, 12, 4) && unseen_is(9, 5, 9, 5, 0) &&
			unseen_is(9, 5, 20, 40, 0) && unseen_is(0, 0, 20, 3, 0) &&
			unseen_is(2147483640, 7, 12, 9, 0),
		"programs that came and went between two looks");
	return ktap_end(&k);
}
