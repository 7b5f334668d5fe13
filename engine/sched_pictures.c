/* sched_pictures: pictures are pulled, one by one, for the eldest request that wants one. Design §3.
 *
 * Always true: a slot holds features of at most two pictures, in order, none of a picture that is wholly in the KV; of
 * the two PIXELS slots one is being filled at most, and those that are full wait in `decoded`, the one being encoded
 * first.
 */
#include "engine/sched.h"
#include "engine/sched_inside.h"
#include "pools/pools.h"

#include <assert.h>
#include <stdio.h>

static uint32_t picture_end(const struct request *request, uint32_t picture)
{
    assert(picture < request->picture_count);
    return request->pictures[picture].first_token + request->pictures[picture].token_count;
}

/* A place in `decoded` whose feature is gone: its pixels go back now, or when the tower lets go of them. */
static void forget_decoded(struct sched *sched, uint32_t feature)
{
    for (uint32_t i = 0; i < SLOT_PICTURES; i++) {
        if (sched->decoded[i] != feature) {
            continue;
        }
        assert(sched->encoding != feature);
        pools_put(POOL_PIXELS, sched->decoded_pixels[i]);
        for (; i + 1 < SLOT_PICTURES; i++) {
            sched->decoded[i] = sched->decoded[i + 1];
            sched->decoded_pixels[i] = sched->decoded_pixels[i + 1];
        }
        sched->decoded[SLOT_PICTURES - 1] = MM_NONE;
    }
}

static void release_feature(struct sched *sched, uint32_t feature)
{
    if (mm_release(&sched->mm, feature)) {
        forget_decoded(sched, feature);
        return;
    }
    if (sched->is_decoding && sched->job.feature == feature && mm_at(feature)->holders == 0) {
        atomic_store_explicit(&sched->job.is_cancelled, true, memory_order_relaxed);
    }
}

void slot_drop_pictures(struct sched *sched, struct sched_slot *slot)
{
    for (uint32_t i = 0; i < SLOT_PICTURES; i++) {
        if (slot->features[i] != MM_NONE) {
            release_feature(sched, slot->features[i]);
            slot->features[i] = MM_NONE;
        }
    }
}

void slot_pass_pictures(struct sched *sched, struct sched_slot *slot)
{
    const struct request *request = slot->request;

    while (slot->picture < request->picture_count && picture_end(request, slot->picture) <= slot->computed) {
        if (slot->features[0] != MM_NONE) {
            release_feature(sched, slot->features[0]);
        }
        slot->features[0] = slot->features[1];
        slot->features[1] = MM_NONE;
        slot->picture++;
    }
    slot_release_body(slot);
}

uint32_t slot_picture_limit(const struct sched_slot *slot)
{
    const struct request *request = slot->request;

    for (uint32_t i = 0; slot->picture + i < request->picture_count; i++) {
        if (i == SLOT_PICTURES || slot->features[i] == MM_NONE || mm_at(slot->features[i])->state != MM_READY) {
            return request->pictures[slot->picture + i].first_token;
        }
    }
    return UINT32_MAX;
}

void slot_release_body(struct sched_slot *slot)
{
    struct request *request = slot->request;

    assert(slot->picture <= request->picture_count);
    if (slot->picture + SLOT_PICTURES < request->picture_count) {
        return;
    }
    for (uint32_t i = 0; slot->picture + i < request->picture_count; i++) {
        if (slot->features[i] == MM_NONE || mm_at(slot->features[i])->state < MM_DECODED) {
            return;
        }
    }
    atomic_store_explicit(&request->is_body_free, true, memory_order_release);
}

/* True if a picture of this slot is not decoded yet. */
static bool wants_pictures(const struct sched_slot *slot)
{
    return (slot->state == SLOT_PREFILL || slot->state == SLOT_WAIT_PICTURE) &&
           slot->picture < slot->request->picture_count;
}

/* Holds the slot's next features as far as there is room; returns the place of the first that somebody must decode, or
 * SLOT_PICTURES. */
static uint32_t hold_features(struct sched *sched, struct sched_slot *slot, bool is_eldest)
{
    const struct request *request = slot->request;

    for (uint32_t i = 0; i < SLOT_PICTURES && slot->picture + i < request->picture_count; i++) {
        if (slot->features[i] == MM_NONE) {
            if (!mm_acquire(&sched->mm, &request->pictures[slot->picture + i], is_eldest, &slot->features[i])) {
                return SLOT_PICTURES;
            }
            slot_release_body(slot);
        }
        if (mm_at(slot->features[i])->state == MM_WANTED) {
            return i;
        }
    }
    return SLOT_PICTURES;
}

bool sched_next_job(struct sched *sched)
{
    bool is_eldest = true;

    if (sched->is_decoding) {
        return false;
    }
    for (uint32_t i = 0; i < sched->started_count; i++) {
        struct sched_slot *slot = &sched->slots[sched->ages[i]];
        if (!wants_pictures(slot)) {
            continue;
        }
        uint32_t place = hold_features(sched, slot, is_eldest);
        is_eldest = false;
        if (place == SLOT_PICTURES) {
            continue;
        }
        slab_handle pixels = pools_get(POOL_PIXELS);
        if (!slab_is_some(pixels)) {
            return false;
        }
        sched->is_decoding = true;
        sched->job.request = slot->request;
        sched->job.slot = sched->ages[i];
        sched->job.picture = slot->picture + place;
        sched->job.feature = slot->features[place];
        sched->job.pixels = pixels;
        atomic_store_explicit(&sched->job.is_cancelled, false, memory_order_relaxed);
        mm_at(sched->job.feature)->state = MM_DECODING;
        return true;
    }
    return false;
}

/* Ends everyone who waits for the feature, naming the part of his own that shows it. */
static void refuse_holders(struct sched *sched, uint32_t feature, enum err err, const char *reason)
{
    for (uint32_t i = sched->started_count; i > 0; i--) {
        struct sched_slot *slot = &sched->slots[sched->ages[i - 1]];
        for (uint32_t k = 0; k < SLOT_PICTURES; k++) {
            if (slot->state == SLOT_LEAVING || slot->features[k] != feature) {
                continue;
            }
            const struct picture *picture = &slot->request->pictures[slot->picture + k];
            char path[sizeof slot->request->err_param];
            (void)snprintf(path, sizeof path, "messages[%u].content[%u].image_url.url", picture->message_index,
                           picture->part_index);
            (void)request_refuse(slot->request, err, path, "%s: %s", path, reason);
            sched_end(sched, sched->ages[i - 1]);
            break;
        }
    }
}

void sched_job_done(struct sched *sched, enum err err, const char *reason)
{
    struct sched_job *job = &sched->job;
    struct sched_slot *slot = &sched->slots[job->slot];

    assert(sched->is_decoding);
    assert(mm_at(job->feature)->state == MM_DECODING);
    sched->is_decoding = false;
    if (slot->state == SLOT_LEAVING) {
        slot_body_back(sched, slot);
    }
    bool is_gone = mm_settle(&sched->mm, job->feature, err == ERR_OK ? MM_DECODED : MM_WANTED);
    if (err != ERR_OK || is_gone) {
        pools_put(POOL_PIXELS, job->pixels);
        if (!is_gone && err != ERR_CLIENT_GONE) {
            refuse_holders(sched, job->feature, err, reason);
        }
        return;
    }
    assert(mm_at(job->feature)->holders > 0);
    uint32_t place = 0;
    while (sched->decoded[place] != MM_NONE) {
        place++;
        assert(place < SLOT_PICTURES);
    }
    sched->decoded[place] = job->feature;
    sched->decoded_pixels[place] = job->pixels;
    for (uint32_t i = 0; i < sched->started_count; i++) {
        struct sched_slot *waiting = &sched->slots[sched->ages[i]];
        if (wants_pictures(waiting)) {
            slot_release_body(waiting);
        }
    }
}

bool sched_next_encode(struct sched *sched, uint32_t *feature, slab_handle *pixels)
{
    if (sched->encoding != MM_NONE || sched->decoded[0] == MM_NONE) {
        return false;
    }
    sched->encoding = *feature = sched->decoded[0];
    *pixels = sched->decoded_pixels[0];
    assert(mm_at(*feature)->state == MM_DECODED);
    mm_at(*feature)->state = MM_ENCODING;
    return true;
}

static void end_encode(struct sched *sched, enum mm_state state)
{
    uint32_t feature = sched->encoding;

    assert(feature != MM_NONE && sched->decoded[0] == feature);
    sched->encoding = MM_NONE;
    forget_decoded(sched, feature);
    (void)mm_settle(&sched->mm, feature, state);
}

void sched_encoded(struct sched *sched)
{
    end_encode(sched, MM_READY);
}

bool sched_encode_is_unwanted(const struct sched *sched)
{
    return sched->encoding != MM_NONE && mm_at(sched->encoding)->holders == 0;
}

void sched_drop_encode(struct sched *sched)
{
    assert(sched_encode_is_unwanted(sched));
    end_encode(sched, MM_WANTED);
}
