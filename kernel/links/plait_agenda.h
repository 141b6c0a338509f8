/* SPDX-License-Identifier: GPL-2.0 */
/* When each line of the kernel has something to do next. plait_agenda.c says how. */
#ifndef PLAIT_AGENDA_H
#define PLAIT_AGENDA_H

#include <linux/types.h>

struct plait_line;

#define PLAIT_NEVER	U64_MAX

/* A line's place in the agenda. */
struct plait_entry {
	u64 at;			/* PLAIT_NEVER: not in it */
	u32 number;		/* of the line, from 0 */
};

/* Makes room for one more line; under RTNL. */
int plait_agenda_join(struct plait_line *line);
/* Takes the line out, and returns when it is in no event. */
void plait_agenda_leave(struct plait_line *line);
/* Calls plait_line_event at `at` (not before now), or not at all. */
void plait_agenda_set(struct plait_line *line, u64 at);
/* Asks for the memory of the next events; in an event, under RCU and without locks. */
void plait_agenda_foresee(void);
/* ktime_get_ns(), for which an event does not ask the clock again. */
u64 plait_agenda_now(void);

void plait_agenda_start(void);
void plait_agenda_stop(void);
#endif
