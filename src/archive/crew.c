#include "archive/crew.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "archive/deflate.h"

/* With two helpers, deflating 50 MiB takes about 2.5 MiB of memory. */
enum { max_helpers = 2, max_slots = max_helpers + 2 };

enum { slot_is_free, slot_is_ready, slot_is_taken, slot_is_done };

/* A thread and its engine. */
struct helper {
    bp_crew *crew;
    bp_deflater *deflater;
    void (*begin)(void);
    pthread_t thread;
};

struct bp_crew {
    bp_deflater *deflater; /* the calling thread's */
    bp_slot slots[max_slots];
    size_t slot_count;
    size_t oldest, used_count; /* the calling thread's alone */
    bool was_hired;
    struct helper helpers[max_helpers];
    size_t helper_count;
    pthread_mutex_t mutex; /* for what follows, and for the state of each slot */
    pthread_cond_t changed;
    bool must_quit, is_abandoned;
    size_t active_count; /* helpers that have not ended */
};

static const long look_ns = 10000000; /* to ask for a stop while a helper is waited for */

bp_crew *bp_crew_new(void) {
    bp_crew *crew = calloc(1, sizeof *crew);
    if (crew == NULL) {
        return NULL;
    }
    crew->slot_count = 1;
    crew->deflater = bp_deflater_new();
    if (crew->deflater == NULL || pthread_mutex_init(&crew->mutex, NULL) != 0) {
        goto out;
    }
    if (pthread_cond_init(&crew->changed, NULL) == 0) {
        return crew;
    }
    (void)pthread_mutex_destroy(&crew->mutex);
out:
    bp_deflater_free(crew->deflater);
    free(crew);
    return NULL;
}

/* Nobody uses it any more. */
static void destroy(bp_crew *crew) {
    for (size_t i = 0; i < crew->helper_count; i++) {
        bp_deflater_free(crew->helpers[i].deflater);
    }
    for (size_t i = 0; i < max_slots; i++) {
        free(crew->slots[i].read);
        free(crew->slots[i].out);
    }
    (void)pthread_cond_destroy(&crew->changed);
    (void)pthread_mutex_destroy(&crew->mutex);
    bp_deflater_free(crew->deflater);
    free(crew);
}

/* Of the slots that wait, the one that is needed first; NULL for none. The lock is held. */
static bp_slot *take_ready(bp_crew *crew, size_t from) {
    for (size_t i = 0; i < crew->slot_count; i++) {
        bp_slot *slot = &crew->slots[(from + i) % crew->slot_count];
        if (slot->state == slot_is_ready) {
            slot->state = slot_is_taken;
            return slot;
        }
    }
    return NULL;
}

/* The lock is held before and after, not during. */
static void deflate_taken(bp_crew *crew, bp_deflater *deflater, bp_slot *slot) {
    (void)pthread_mutex_unlock(&crew->mutex);
    slot->out_bytes =
        bp_deflate_chunk(deflater, slot->bytes, slot->byte_count, slot->is_last, slot->out);
    (void)pthread_mutex_lock(&crew->mutex);
    slot->state = slot_is_done;
    (void)pthread_cond_broadcast(&crew->changed);
}

static void *help(void *argument) {
    struct helper *helper = argument;
    bp_crew *crew = helper->crew;
    if (helper->begin != NULL) {
        helper->begin();
    }
    (void)pthread_mutex_lock(&crew->mutex);
    size_t next = 0; /* behind the slot that it had last: nearly always the oldest one */
    while (!crew->must_quit) {
        bp_slot *slot = take_ready(crew, next);
        if (slot != NULL) {
            next = (size_t)(slot - crew->slots) + 1;
            deflate_taken(crew, helper->deflater, slot);
        } else {
            (void)pthread_cond_wait(&crew->changed, &crew->mutex);
        }
    }
    bool is_last = --crew->active_count == 0 && crew->is_abandoned;
    (void)pthread_mutex_unlock(&crew->mutex);
    if (is_last) {
        destroy(crew);
    }
    return NULL;
}

void bp_crew_hire(bp_crew *crew, const bp_archive_helpers *helpers) {
    if (crew->was_hired || crew->used_count > 0) {
        return;
    }
    crew->was_hired = true;
    /* Nobody is at work yet, so the count of slots can still be changed. */
    size_t wanted = helpers->count < max_helpers ? helpers->count : max_helpers;
    crew->slot_count = wanted > 0 ? wanted + 2 : 1;
    for (size_t i = 0; i < wanted; i++) {
        struct helper *helper = &crew->helpers[crew->helper_count];
        *helper =
            (struct helper){.crew = crew, .deflater = bp_deflater_new(), .begin = helpers->begin};
        if (helper->deflater == NULL) {
            return;
        }
        crew->active_count++; /* before it is there: no helper looks at it until it is to quit */
        if (helpers->start(help, helper, &helper->thread, NULL) != BUGPACK_OK) {
            crew->active_count--;
            bp_deflater_free(helper->deflater);
            return;
        }
        crew->helper_count++;
    }
}

bool bp_crew_has_helpers(const bp_crew *crew) {
    return crew->helper_count > 0;
}

void bp_crew_free(bp_crew *crew, bool may_wait) {
    if (crew == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&crew->mutex);
    crew->must_quit = true;
    crew->is_abandoned = !may_wait;
    for (size_t i = 0; i < crew->helper_count && !may_wait; i++) {
        (void)pthread_detach(crew->helpers[i].thread);
    }
    bool is_last = may_wait || crew->active_count == 0;
    (void)pthread_cond_broadcast(&crew->changed);
    (void)pthread_mutex_unlock(&crew->mutex);
    for (size_t i = 0; may_wait && i < crew->helper_count; i++) {
        (void)pthread_join(crew->helpers[i].thread, NULL);
    }
    if (is_last) {
        destroy(crew); /* else the last helper does */
    }
}

bool bp_crew_is_full(const bp_crew *crew) {
    return crew->used_count == crew->slot_count;
}

bool bp_crew_is_empty(const bp_crew *crew) {
    return crew->used_count == 0;
}

static bp_slot *newest(bp_crew *crew) {
    return &crew->slots[(crew->oldest + crew->used_count) % crew->slot_count];
}

bp_slot *bp_crew_next(bp_crew *crew, bool must_read) {
    bp_slot *slot = newest(crew);
    if (slot->out == NULL) {
        slot->out = malloc(BP_DEFLATE_OUT_BYTES);
    }
    if (must_read && slot->read == NULL) {
        slot->read = malloc(BP_DEFLATE_CHUNK_BYTES);
    }
    return slot->out != NULL && (!must_read || slot->read != NULL) ? slot : NULL;
}

void bp_crew_submit(bp_crew *crew) {
    (void)pthread_mutex_lock(&crew->mutex);
    newest(crew)->state = slot_is_ready;
    crew->used_count++;
    (void)pthread_cond_broadcast(&crew->changed);
    (void)pthread_mutex_unlock(&crew->mutex);
}

/* Waits for a helper; true when the work is to stop. The lock is held but while asking. Where the
 * clock of the wait is set, a stop is heard later. */
static bool wait_a_moment(bp_crew *crew, bp_stop *stop) {
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (until.tv_nsec + look_ns) / 1000000000;
    until.tv_nsec = (until.tv_nsec + look_ns) % 1000000000;
    (void)pthread_cond_timedwait(&crew->changed, &crew->mutex, &until);
    (void)pthread_mutex_unlock(&crew->mutex);
    bool must_stop = bp_stop_poll(stop);
    (void)pthread_mutex_lock(&crew->mutex);
    return must_stop;
}

const bp_slot *bp_crew_settle(bp_crew *crew, bp_stop *stop) {
    if (crew->used_count == 0) {
        return NULL;
    }
    bp_slot *slot = &crew->slots[crew->oldest];
    (void)pthread_mutex_lock(&crew->mutex);
    while (slot->state != slot_is_done) {
        /* Rather than wait, do what nobody has begun; with no helpers that is this very slot. */
        bp_slot *ready = take_ready(crew, crew->oldest);
        if (ready != NULL) {
            deflate_taken(crew, crew->deflater, ready);
        } else if (wait_a_moment(crew, stop)) {
            (void)pthread_mutex_unlock(&crew->mutex);
            return NULL;
        }
    }
    slot->state = slot_is_free;
    (void)pthread_mutex_unlock(&crew->mutex);
    crew->oldest = (crew->oldest + 1) % crew->slot_count;
    crew->used_count--;
    return slot;
}

void bp_crew_drop_all(bp_crew *crew) {
    (void)pthread_mutex_lock(&crew->mutex);
    for (size_t i = 0; i < crew->slot_count; i++) {
        while (crew->slots[i].state == slot_is_taken) {
            (void)pthread_cond_wait(&crew->changed, &crew->mutex);
        }
        crew->slots[i].state = slot_is_free;
    }
    (void)pthread_mutex_unlock(&crew->mutex);
    crew->used_count = 0;
}
