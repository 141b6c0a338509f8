// SPDX-License-Identifier: GPL-2.0
/* plait_agenda: one timer for all lines.
 *
 * The agenda is a binary heap of the lines that have something to do, by instant, and by the order in which they asked
 * for the same instant. The timer is due at the first of them. It calls the lines of one instant one after the other, in
 * softirq, where they deliver packets like a network card.
 *
 * In virtual time the timer is an event of User-Mode Linux itself (arch/um/kernel/time.c), which needs neither a clock
 * event nor an interrupt; it is as exact as a timer of high resolution. Elsewhere, and in a module, it is such a timer.
 *
 * Locking: plait_agenda.lock is below those of lines. The caller of plait_agenda_set holds the line's, with bottom
 * halves off. No event holds a lock of the agenda. plait_agenda_foresee takes both in the other order, so it passes over
 * a line whose lock is taken.
 */

#include <linux/hrtimer.h>
#include <linux/idr.h>
#include <linux/interrupt.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/tick.h>
#include <linux/version.h>

#include "plait_line.h"

#if defined(CONFIG_UML_TIME_TRAVEL_SUPPORT) && !defined(MODULE)
#include <linux/time-internal.h>
#if __has_include(<linux/time-skip.h>)
#include <linux/time-skip.h>
#define PLAIT_CAN_SKIP
#endif
#define PLAIT_VIRTUAL	(time_travel_mode == TT_MODE_INFCPU)
#else
#define PLAIT_VIRTUAL	false
#endif

#define PLAIT_SKIPS	1000	/* instants in one softirq */
#define PLAIT_FORESEEN	7	/* the upper three levels of the heap */
#define PLAIT_MANY	96	/* lines whose memory the caches do not keep */

/* Two of them, which are compared, share a line of the cache. */
struct plait_asked {
	u64 at;
	u64 order;
	struct plait_line *line;
	u32 number;		/* that of the line here */
};

static struct {
	spinlock_t lock;
	struct plait_asked *heap;
	u32 *place;		/* in the heap, by the line's number: dense, so that the caches keep it */
	u32 count;
	u32 room;
	u32 lines;
	u64 order;
	u64 armed;			/* what the timer is set to */
	struct plait_line *running;	/* in an event now .. */
	u64 now;			/* .. of that instant; PLAIT_NEVER: none */
	struct hrtimer timer;
#if defined(CONFIG_UML_TIME_TRAVEL_SUPPORT) && !defined(MODULE)
	struct time_travel_event event;
	struct tasklet_struct tasklet;
#endif
} agenda = { .lock = __SPIN_LOCK_UNLOCKED(agenda.lock), .armed = PLAIT_NEVER, .now = PLAIT_NEVER };

static DEFINE_IDA(plait_numbers);

/* --- The heap ----------------------------------------------------------------------------------------------------- */

/* One wide number, so that comparing needs no branch: nobody can predict which of two lines is first. */
static unsigned __int128 plait_rank(const struct plait_asked *asked)
{
	return (unsigned __int128)asked->at << 64 | asked->order;
}

static bool plait_is_before(const struct plait_asked *a, const struct plait_asked *b)
{
	return plait_rank(a) < plait_rank(b);
}

static void plait_put(u32 index, struct plait_asked asked)
{
	agenda.heap[index] = asked;
	agenda.place[asked.number] = index;
}

static void plait_sift_up(u32 index, struct plait_asked asked)
{
	while (index) {
		u32 above = (index - 1) / 2;

		if (!plait_is_before(&asked, &agenda.heap[above]))
			break;
		plait_put(index, agenda.heap[above]);
		index = above;
	}
	plait_put(index, asked);
}

static void plait_sift_down(u32 index, struct plait_asked asked)
{
	for (;;) {
		u32 below = 2 * index + 1;

		if (below >= agenda.count)
			break;
		if (below + 1 < agenda.count)
			below += plait_is_before(&agenda.heap[below + 1], &agenda.heap[below]);
		if (!plait_is_before(&agenda.heap[below], &asked))
			break;
		plait_put(index, agenda.heap[below]);
		index = below;
	}
	plait_put(index, asked);
}

static void plait_place(u32 index, struct plait_asked asked)
{
	if (index && plait_is_before(&asked, &agenda.heap[(index - 1) / 2]))
		plait_sift_up(index, asked);
	else
		plait_sift_down(index, asked);
}

static void plait_enlist(struct plait_line *line, u64 at)
{
	struct plait_asked asked = { .at = at, .order = agenda.order++, .line = line, .number = line->next.number };
	u32 place = agenda.place[asked.number];
	u64 was = line->next.at;

	line->next.at = at;
	if (was == PLAIT_NEVER && at != PLAIT_NEVER)
		plait_sift_up(agenda.count++, asked);
	else if (at != PLAIT_NEVER)
		plait_place(place, asked);
	else if (was != PLAIT_NEVER && --agenda.count != place)
		plait_place(place, agenda.heap[agenda.count]);
}

/* --- The timer ---------------------------------------------------------------------------------------------------- */

#if defined(CONFIG_UML_TIME_TRAVEL_SUPPORT) && !defined(MODULE)

static void plait_arm_event(u64 at, u64 now)
{
	time_travel_del_event(&agenda.event);
	time_travel_add_event_rel(&agenda.event, at - now);
}

static void plait_event_is_due(struct time_travel_event *event)
{
	tasklet_hi_schedule(&agenda.tasklet);
}

static void plait_agenda_run(void);

static void plait_run_tasklet(struct tasklet_struct *tasklet)
{
	plait_agenda_run();
}

/* Whether the kernel would only sleep up to `at` and come back here. If so, it is `at`.
 * Not when the tick has stopped: the idle loop then looks for timers again after each event.
 */
static bool plait_skip_to(u64 at, u64 now)
{
#ifdef PLAIT_CAN_SKIP
	return PLAIT_VIRTUAL && is_idle_task(current) && !need_resched() && !local_softirq_pending() &&
	       !tick_nohz_tick_stopped() && time_travel_skip(at - now);
#else
	return false;
#endif
}

static void plait_start_event(void)
{
	time_travel_set_event_fn(&agenda.event, plait_event_is_due);
	tasklet_setup(&agenda.tasklet, plait_run_tasklet);
}

#else

static void plait_arm_event(u64 at, u64 now)
{
}

static bool plait_skip_to(u64 at, u64 now)
{
	return false;
}

static void plait_start_event(void)
{
}

#endif

/* Sets the timer to the first line, unless it is due earlier anyway. */
static void plait_arm(void)
{
	u64 now, first = agenda.count ? agenda.heap[0].at : PLAIT_NEVER;

	if (first >= agenda.armed)
		return;
	agenda.armed = first;
	if (!PLAIT_VIRTUAL) {
		hrtimer_start(&agenda.timer, ns_to_ktime(first), HRTIMER_MODE_ABS_SOFT);
		return;
	}
	now = ktime_get_ns();
	plait_arm_event(max(first, now), now);
}

/* Calls all lines that have something to do up to now; and while nothing else is to be done, those of later instants. */
static void plait_agenda_run(void)
{
	u64 now = ktime_get_ns();
	u32 skips = 0;

	rcu_read_lock();
	spin_lock(&agenda.lock);
	agenda.armed = PLAIT_NEVER;
	agenda.now = PLAIT_VIRTUAL ? now : PLAIT_NEVER;
	while (agenda.count) {
		u64 at = agenda.heap[0].at;

		if (at > now) {
			if (skips++ == PLAIT_SKIPS || !plait_skip_to(at, now))
				break;
			now = at;
			agenda.now = now;
		}
		agenda.running = agenda.heap[0].line;
		spin_unlock(&agenda.lock);
		plait_line_event(agenda.running, now);
		spin_lock(&agenda.lock);
	}
	agenda.running = NULL;
	agenda.now = PLAIT_NEVER;
	plait_arm();
	spin_unlock(&agenda.lock);
	rcu_read_unlock();
}

static enum hrtimer_restart plait_timer_is_due(struct hrtimer *timer)
{
	plait_agenda_run();
	return HRTIMER_NORESTART;
}

/* --- Memory ------------------------------------------------------------------------------------------------------- */

/* A network of many links does not fit into the processor's caches. While a packet is delivered, the processor therefore
 * fetches what the next events need, one pointer further for each level of the heap (plait_foresee.c).
 */
void plait_agenda_foresee(void)
{
	u32 index;

	if (READ_ONCE(agenda.lines) < PLAIT_MANY)
		return;
	spin_lock(&agenda.lock);
	for (index = 0; index < min_t(u32, agenda.count, PLAIT_FORESEEN); index++)
		plait_line_foresee(agenda.heap[index].line, ilog2(index + 1));
	spin_unlock(&agenda.lock);
}

/* --- For lines ------------------------------------------------------------------------------------------------------ */

void plait_agenda_set(struct plait_line *line, u64 at)
{
	spin_lock(&agenda.lock);
	plait_enlist(line, at);
	if (!agenda.running)
		plait_arm();
	spin_unlock(&agenda.lock);
}

u64 plait_agenda_now(void)
{
	u64 now = READ_ONCE(agenda.now);

	return now == PLAIT_NEVER ? ktime_get_ns() : now;
}

/* Makes room for twice as many lines. */
static int plait_grow(void)
{
	u32 room = agenda.room ? 2 * agenda.room : 64;
	struct plait_asked *heap = kvmalloc_array(room + 1, sizeof(*heap), GFP_KERNEL);
	u32 *place = kvmalloc_array(room, sizeof(*place), GFP_KERNEL);

	if (!heap || !place) {
		kvfree(heap);
		kvfree(place);
		return -ENOMEM;
	}
	heap++;		/* the root is alone in its line of the cache */
	spin_lock_bh(&agenda.lock);
	memcpy(heap, agenda.heap, agenda.count * sizeof(*heap));
	memcpy(place, agenda.place, agenda.room * sizeof(*place));
	swap(heap, agenda.heap);
	swap(place, agenda.place);
	agenda.room = room;
	spin_unlock_bh(&agenda.lock);
	kvfree(heap ? heap - 1 : NULL);
	kvfree(place);
	return 0;
}

int plait_agenda_join(struct plait_line *line)
{
	int number, err;

	ASSERT_RTNL();
	if (agenda.lines == agenda.room) {
		err = plait_grow();
		if (err)
			return err;
	}
	number = ida_alloc(&plait_numbers, GFP_KERNEL);		/* the least, so below the room */
	if (number < 0)
		return number;
	line->next.at = PLAIT_NEVER;
	line->next.number = number;
	agenda.lines++;
	return 0;
}

void plait_agenda_leave(struct plait_line *line)
{
	bool is_running;

	ASSERT_RTNL();
	do {
		spin_lock_bh(&agenda.lock);
		plait_enlist(line, PLAIT_NEVER);
		is_running = agenda.running == line;
		spin_unlock_bh(&agenda.lock);
		cpu_relax();
	} while (is_running);
	ida_free(&plait_numbers, line->next.number);
	agenda.lines--;
}

void plait_agenda_start(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
	hrtimer_setup(&agenda.timer, plait_timer_is_due, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
#else
	hrtimer_init(&agenda.timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	agenda.timer.function = plait_timer_is_due;
#endif
	plait_start_event();
}

/* No line is left. */
void plait_agenda_stop(void)
{
	hrtimer_cancel(&agenda.timer);
	if (agenda.heap)
		kvfree(agenda.heap - 1);
	kvfree(agenda.place);
	agenda.heap = NULL;
	agenda.place = NULL;
}
