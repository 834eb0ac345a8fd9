#include "trigger/gaps_private.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* XXH3 as the compiler can inline it; no library is linked. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/status.h"

static const uint64_t tag_mask = ~(uint64_t)0xffff;
static const size_t slot_mask = bp_gap_slot_count - 1;
static const char table_overflow[] = "overflow";

bugpack_status bp_gaps_new(const bp_gaps_options *options, bp_gaps **ret_gaps,
                           bugpack_error *error) {
    bp_gaps *gaps = calloc(1, sizeof *gaps);
    if (gaps == NULL || pthread_mutex_init(&gaps->mutex, NULL) != 0) {
        free(gaps);
        return bp_fail_memory(error, "count gaps");
    }
    gaps->options = *options;
    if (gaps->options.cap > BUGPACK_GAP_KEYS_MAX) {
        gaps->options.cap = BUGPACK_GAP_KEYS_MAX;
    }
    if (options->channel_cap == 0 || options->channel_cap > gaps->options.cap) {
        gaps->options.channel_cap = gaps->options.cap;
    }
    char id[BP_ID_BYTES];
    bp_id_new(id);
    gaps->seed = XXH3_64bits(id, sizeof id);
    (void)snprintf(gaps->cap_reason, sizeof gaps->cap_reason,
                   "the session takes at most %u reports of gaps", (unsigned)gaps->options.cap);
    (void)snprintf(gaps->channel_cap_reason, sizeof gaps->channel_cap_reason,
                   "one channel takes at most %u reports of gaps",
                   (unsigned)gaps->options.channel_cap);
    *ret_gaps = gaps;
    return BUGPACK_OK;
}

void bp_gaps_free(bp_gaps *gaps) {
    if (gaps != NULL) {
        (void)pthread_mutex_destroy(&gaps->mutex);
        free(gaps);
    }
}

const char *bp_gap_text(const bp_gap *gap) {
    return gap->text;
}

size_t bp_gap_channel_bytes(const bp_gap *gap) {
    return gap->channel_bytes;
}

/* Where a key's row is, or the empty slot where the search ended. One of them is always there. */
static bp_gap *find(bp_gaps *gaps, const bp_gap_key *key, uint64_t hash, size_t *ret_slot) {
    for (size_t slot = hash & slot_mask;; slot = (slot + 1) & slot_mask) {
        uint64_t found = atomic_load_explicit(&gaps->slots[slot], memory_order_acquire);
        if (found == 0) {
            *ret_slot = slot;
            return NULL;
        }
        if ((found & tag_mask) == (hash & tag_mask)) {
            bp_gap *gap = &gaps->gaps[(found & ~tag_mask) - 1];
            if (gap->bytes == key->bytes && memcmp(gap->text, key->text, key->bytes) == 0) {
                return gap;
            }
        }
    }
}

static uint64_t hash_of(const bp_gaps *gaps, const bp_gap_key *key) {
    return XXH3_64bits_withSeed(key->text, key->bytes, gaps->seed);
}

/* Which row takes a key that has none of its own. */
typedef enum row_kind {
    OWN_ROW,
    UNKNOWN_OVERFLOW,
    CHANNEL_OVERFLOW,
    TABLE_OVERFLOW,
    row_kind_count
} row_kind;

static void make_home_key(bp_gap_key *key, const bp_gap_key *of, row_kind where) {
    if (where == TABLE_OVERFLOW) {
        bp_gap_key_read(key, table_overflow);
    } else {
        bp_gap_key_make_overflow(key, of, where == UNKNOWN_OVERFLOW);
    }
}

/* The row that takes a key where there is no room for it, if that is known already; no lock. */
static bp_gap *find_overflow(bp_gaps *gaps, const bp_gap_key *of) {
    bp_gap_key key;
    size_t slot = 0;
    for (row_kind where = of->is_unknown ? UNKNOWN_OVERFLOW : CHANNEL_OVERFLOW;
         where < row_kind_count; where++) {
        make_home_key(&key, of, where);
        bp_gap *gap = find(gaps, &key, hash_of(gaps, &key), &slot);
        if (gap != NULL &&
            atomic_load_explicit(&gap->takes[where - UNKNOWN_OVERFLOW], memory_order_relaxed)) {
            return gap;
        }
    }
    return NULL;
}

/* The mutex is held. A walk over all rows, but only for a key that was never seen before. */
static bp_gap_channel *channel_of(bp_gaps *gaps, const char *name, size_t name_bytes) {
    uint32_t count = atomic_load_explicit(&gaps->gap_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        const bp_gap *gap = &gaps->gaps[i];
        if (gap->channel_bytes == name_bytes && memcmp(gap->text, name, name_bytes) == 0) {
            return gap->channel;
        }
    }
    return &gaps->channels[count]; /* the first of its channel */
}

/* Adds a row. The mutex is held, and there is room. */
static bp_gap *add(bp_gaps *gaps, const bp_gap_key *key, bool is_ignored) {
    size_t slot = 0;
    uint64_t hash = hash_of(gaps, key);
    bp_gap *gap = find(gaps, key, hash, &slot);
    if (gap != NULL) {
        return gap;
    }
    uint32_t index = atomic_load_explicit(&gaps->gap_count, memory_order_relaxed);
    gap = &gaps->gaps[index];
    gap->channel = channel_of(gaps, key->text, key->channel_bytes);
    memcpy(gap->text, key->text, key->bytes);
    gap->bytes = (uint8_t)key->bytes;
    gap->channel_bytes = (uint8_t)key->channel_bytes;
    gap->first_wall_ns = bp_clock_wall_ns();
    atomic_store_explicit(&gap->state, is_ignored ? BP_GAP_IGNORED : BP_GAP_OPEN,
                          memory_order_relaxed);
    atomic_store_explicit(&gaps->slots[slot], (hash & tag_mask) | (index + 1),
                          memory_order_release);
    atomic_store_explicit(&gaps->gap_count, index + 1, memory_order_release);
    return gap;
}

static bool is_ignored(const bp_gaps *gaps, const char *text) {
    bool is_match = false;
    for (size_t i = 0; i < gaps->options.ignore_count && !is_match; i++) {
        is_match = fnmatch(gaps->options.ignore[i], text, 0) == 0;
    }
    return is_match;
}

/* Where a new key belongs. The mutex is held. */
static row_kind choose_row(bp_gaps *gaps, const bp_gap_key *key) {
    const bp_gap_channel *channel = channel_of(gaps, key->text, key->channel_bytes);
    /* The last row is for what has no room anywhere. */
    if (atomic_load_explicit(&gaps->gap_count, memory_order_relaxed) >= BUGPACK_GAP_KEYS_MAX - 1) {
        return TABLE_OVERFLOW;
    }
    if (key->is_unknown && channel->unknown_count == BUGPACK_GAP_UNKNOWN_OPCODES_MAX) {
        return UNKNOWN_OVERFLOW;
    }
    return channel->key_count == BUGPACK_GAP_CHANNEL_KEYS_MAX ? CHANNEL_OVERFLOW : OWN_ROW;
}

/* A row for a new key, or for all that have no room from now on. The mutex is held. */
static bp_gap *add_row(bp_gaps *gaps, const bp_gap_key *key, const bool ignored[row_kind_count]) {
    row_kind where = choose_row(gaps, key);
    if (where == OWN_ROW) {
        bp_gap *gap = add(gaps, key, ignored[where]);
        gap->channel->key_count++;
        gap->channel->unknown_count += key->is_unknown;
        return gap;
    }
    bp_gap_key overflow;
    make_home_key(&overflow, key, where);
    bp_gap *gap = add(gaps, &overflow, ignored[where]);
    atomic_store_explicit(&gap->takes[where - UNKNOWN_OVERFLOW], true, memory_order_relaxed);
    return gap;
}

/* A key that no row has yet. */
static bp_gap *meet(bp_gaps *gaps, const bp_gap_key *key, uint64_t hash) {
    bp_gap *gap = find_overflow(gaps, key);
    if (gap != NULL) {
        return gap;
    }
    /* Not under the lock: patterns and keys can be chosen to take their time. */
    bool ignored[row_kind_count] = {false};
    for (row_kind where = OWN_ROW; gaps->options.ignore_count > 0 && where < row_kind_count;
         where++) {
        bp_gap_key overflow;
        if (where != OWN_ROW) {
            make_home_key(&overflow, key, where);
        }
        ignored[where] = is_ignored(gaps, where == OWN_ROW ? key->text : overflow.text);
    }
    size_t slot = 0;
    (void)pthread_mutex_lock(&gaps->mutex);
    gap = find(gaps, key, hash, &slot);
    if (gap == NULL) {
        gap = add_row(gaps, key, ignored);
    }
    (void)pthread_mutex_unlock(&gaps->mutex);
    return gap;
}

/* The calling thread's shard: dealt out in turn, so that few threads never share one. */
static unsigned own_shard(void) {
    static atomic_uint dealt;
    static _Thread_local unsigned own; /* and 1; 0: none yet */
    if (own == 0) {
        own = atomic_fetch_add_explicit(&dealt, 1, memory_order_relaxed) % bp_gap_shard_count + 1;
    }
    return own - 1;
}

static void count_occurrence(bp_gaps *gaps, const bp_gap *gap) {
    bp_gap_cell *cell = &gaps->cells[own_shard()][gap - gaps->gaps];
    atomic_fetch_add_explicit(&cell->count, 1, memory_order_relaxed);
    atomic_store_explicit(&cell->last_wall_ns, bp_clock_wall_tick_ns(), memory_order_relaxed);
}

bp_gap_occurrence bp_gaps_see(bp_gaps *gaps, const bp_gap_key *key, bool is_enabled,
                              bp_gap **ret_gap) {
    size_t slot = 0;
    uint64_t hash = hash_of(gaps, key);
    bp_gap *gap = find(gaps, key, hash, &slot);
    if (gap == NULL) {
        gap = meet(gaps, key, hash);
    }
    count_occurrence(gaps, gap);
    if (atomic_load_explicit(&gap->state, memory_order_relaxed) != BP_GAP_OPEN) {
        return BP_GAP_COUNTED;
    }
    bp_gap_occurrence occurrence = bp_gaps_take_place(gaps, gap, is_enabled);
    if (occurrence != BP_GAP_COUNTED) {
        *ret_gap = gap;
    }
    return occurrence;
}
