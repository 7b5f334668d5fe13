/* sched_inside: what the scheduler's own files share; nobody else includes it. */
#ifndef ENGINE_SCHED_INSIDE_H
#define ENGINE_SCHED_INSIDE_H

#include "engine/sched.h"

/* Changes the state by the table; a transition that is not in it is a bug. */
void slot_event(struct sched *sched, struct sched_slot *slot, enum sched_event event);

/* The tokens known so far, as the prefix cache sees them. */
struct prefix_key slot_key(const struct sched_slot *slot, uint32_t count);

/* sched.c: takes a request out of the queue; `previous` is the one before it, UINT32_MAX: it is the first. */
void queue_remove(struct sched *sched, uint32_t previous, const struct request *request);

/* sched_start.c: grants the page that the next row needs, if it needs one. False: it must wait. */
bool slot_grow(struct sched *sched, struct sched_slot *slot);

/* sched.c: the worker is through with the body of a slot that is LEAVING. */
void slot_body_back(struct sched *sched, struct sched_slot *slot);

/* sched_pictures.c: lets go of the features that the slot holds; of those wholly in the KV only, for
 * slot_pass_pictures. */
void slot_drop_pictures(struct sched *sched, struct sched_slot *slot);
void slot_pass_pictures(struct sched *sched, struct sched_slot *slot);

/* First token that may not be computed yet, since its picture is not encoded; UINT32_MAX: none. */
uint32_t slot_picture_limit(const struct sched_slot *slot);

/* Tells conn that the body may go, once no picture of it has to be decoded any more. */
void slot_release_body(struct sched_slot *slot);

#endif
