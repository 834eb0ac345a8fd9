#include "trigger/gaps.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/pages.h"
#include "base/status.h"
#include "base/utf8.h"

enum { slot_count = 2 * BUGPACK_GAP_KEYS_MAX }; /* a power of two: half of them stay empty */
static const char table_overflow[] = "overflow";

/* The state of a key. It moves between the first two, and stays in the others. */
typedef enum gap_state {
    GAP_OPEN,    /* an occurrence may lead to a report */
    GAP_PENDING, /* a report is on its way */
    GAP_WRITTEN,
    GAP_GIVEN_UP
} gap_state;

/* Where a key is counted. */
typedef enum row_kind {
    OWN_ROW,
    UNKNOWN_OVERFLOW,
    CHANNEL_OVERFLOW,
    TABLE_OVERFLOW,
    row_kind_count
} row_kind;

struct channel {
    uint32_t key_count, unknown_count;
    uint32_t place_count; /* reports that are pending or written */
    bool is_cap_reported;
};

struct bp_gap {
    char text[BUGPACK_GAP_KEY_MAX_BYTES + 1];
    uint8_t bytes, channel_bytes;
    _Atomic uint8_t state; /* a gap_state; changed under the lock */
    uint8_t try_count;
    bool takes[row_kind_count]; /* keys without a row of their own are counted here */
    struct channel *channel;
    uint64_t first_wall_ns;
    const char *refusal; /* why its last occurrence led to no report; NULL: it did */
};

/* The occurrences of a key, on a cache line of their own. */
struct tally {
    _Alignas(64) _Atomic uint64_t count, last_wall_ns;
};

/* A row is filled before a slot leads to it, and its text never changes: a key whose report is not
 * to be begun any more is counted without the lock. */
struct bp_gaps {
    bp_gaps_options options;
    bp_tag_key hash_key; /* of long names, and of the slots: nobody can aim at one */
    char cap_reason[80], channel_cap_reason[80];
    bp_lock lock; /* of what follows; held for a look-up, or for a copy of all rows */
    bool is_cap_reported;
    uint32_t gap_count, pending_count, written_count;
    _Atomic uint16_t slots[slot_count]; /* a row's index and 1; 0: empty, where a search ends */
    struct bp_gap gaps[BUGPACK_GAP_KEYS_MAX];
    struct tally tallies[BUGPACK_GAP_KEYS_MAX];    /* of the rows */
    struct channel channels[BUGPACK_GAP_KEYS_MAX]; /* that of a channel's first row is used */
};

bugpack_status bp_gaps_new(const bp_gaps_options *options, bp_gaps **ret_gaps,
                           bugpack_error *error) {
    /* Not calloc: from a heap that was used before it would write all of the table. */
    bp_gaps *gaps = bp_pages_new(sizeof *gaps);
    if (gaps == NULL) {
        return bp_fail_memory(error, "count gaps");
    }
    bp_lock_init(&gaps->lock, BP_LOCK_GAPS);
    gaps->options = *options;
    if (gaps->options.cap > BUGPACK_GAP_KEYS_MAX) {
        gaps->options.cap = BUGPACK_GAP_KEYS_MAX;
    }
    bp_tag_key_new(&gaps->hash_key);
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
        bp_lock_destroy(&gaps->lock);
        bp_pages_free(gaps);
    }
}

void bp_gaps_read_key(const bp_gaps *gaps, bp_gap_key *key, const char *text) {
    bp_gap_key_read(key, &gaps->hash_key, text);
}

const char *bp_gap_text(const bp_gap *gap) {
    return gap->text;
}

size_t bp_gap_channel_bytes(const bp_gap *gap) {
    return gap->channel_bytes;
}

/* A key's row, or NULL and the empty slot where the search ended; one is always there. */
static bp_gap *find(bp_gaps *gaps, const bp_gap_key *key, size_t *ret_slot) {
    uint64_t hash = XXH3_64bits_withSeed(key->text, key->bytes, gaps->hash_key.words[0]);
    size_t slot = hash % slot_count;
    unsigned row;
    /* Acquire: who sees the slot sees the row. */
    for (; (row = atomic_load_explicit(&gaps->slots[slot], memory_order_acquire)) != 0;
         slot = (slot + 1) % slot_count) {
        bp_gap *gap = &gaps->gaps[row - 1];
        if (gap->bytes == key->bytes && memcmp(gap->text, key->text, key->bytes) == 0) {
            return gap;
        }
    }
    *ret_slot = slot;
    return NULL;
}

/* A walk over all rows, but only for a key that was never seen before. The lock is held here and in
 * what follows, unless it says otherwise. */
static struct channel *channel_of(bp_gaps *gaps, const bp_gap_key *key) {
    for (uint32_t i = 0; i < gaps->gap_count; i++) {
        const bp_gap *gap = &gaps->gaps[i];
        if (gap->channel_bytes == key->channel_bytes &&
            memcmp(gap->text, key->text, key->channel_bytes) == 0) {
            return gap->channel;
        }
    }
    return &gaps->channels[gaps->gap_count]; /* it is the first of its channel */
}

static row_kind choose_row(bp_gaps *gaps, const bp_gap_key *key) {
    const struct channel *channel = channel_of(gaps, key);
    /* The last row is for what has no room anywhere. */
    if (gaps->gap_count >= BUGPACK_GAP_KEYS_MAX - 1) {
        return TABLE_OVERFLOW;
    }
    if (key->is_unknown && channel->unknown_count == BUGPACK_GAP_UNKNOWN_OPCODES_MAX) {
        return UNKNOWN_OVERFLOW;
    }
    return channel->key_count == BUGPACK_GAP_CHANNEL_KEYS_MAX ? CHANNEL_OVERFLOW : OWN_ROW;
}

/* The key that `key` is counted as in a row of that kind; `made` has room for it. */
static const bp_gap_key *row_key(const bp_gap_key *key, row_kind kind, bp_gap_key *made) {
    if (kind == OWN_ROW) {
        return key;
    }
    if (kind == TABLE_OVERFLOW) {
        bp_gap_key_read(made, NULL, table_overflow);
    } else {
        bp_gap_key_make_overflow(made, key, kind == UNKNOWN_OVERFLOW);
    }
    return made;
}

/* Adds a row for a key that has none, or for all keys that have no room. */
static bp_gap *add_row(bp_gaps *gaps, const bp_gap_key *key) {
    bp_gap_key made;
    row_kind kind = choose_row(gaps, key);
    bool is_new = kind == OWN_ROW;
    const bp_gap_key *counted = row_key(key, kind, &made);
    size_t slot = 0;
    bp_gap *gap = find(gaps, counted, &slot);
    if (gap == NULL) {
        gap = &gaps->gaps[gaps->gap_count];
        gap->channel = channel_of(gaps, counted);
        memcpy(gap->text, counted->text, counted->bytes);
        gap->bytes = (uint8_t)counted->bytes;
        gap->channel_bytes = (uint8_t)counted->channel_bytes;
        gap->first_wall_ns = bp_clock_wall_ns();
        gap->state = GAP_OPEN;
        gaps->gap_count++;
        atomic_store_explicit(&gaps->slots[slot], (uint16_t)gaps->gap_count, memory_order_release);
    }
    gap->takes[kind] = true;
    gap->channel->key_count += is_new;
    gap->channel->unknown_count += is_new && key->is_unknown;
    return gap;
}

/* The row that a key has, or shares with all that have no room; NULL when neither is known yet. */
static bp_gap *find_row(bp_gaps *gaps, const bp_gap_key *key) {
    bp_gap_key made;
    size_t slot = 0;
    bp_gap *gap = find(gaps, key, &slot);
    row_kind kind = key->is_unknown ? UNKNOWN_OVERFLOW : CHANNEL_OVERFLOW;
    for (; gap == NULL && kind < row_kind_count; kind++) {
        const bp_gap_key *overflow = row_key(key, kind, &made);
        bp_gap *shared = find(gaps, overflow, &slot);
        gap = shared != NULL && shared->takes[kind] ? shared : NULL;
    }
    return gap;
}

/* Notes why an occurrence leads to no report. The first for this reason is `reported`. */
static bp_gap_occurrence refuse(bp_gap *gap, const char *reason, bool *is_reported,
                                bp_gap_occurrence reported) {
    bool is_first = !*is_reported;
    gap->refusal = reason;
    *is_reported = true;
    return is_first ? reported : BP_GAP_COUNTED;
}

static bp_gap_occurrence take_place(bp_gaps *gaps, bp_gap *gap, bool is_enabled) {
    if (!is_enabled) {
        gap->refusal = "pedantic mode was off";
        return BP_GAP_COUNTED;
    }
    uint32_t place_count = gaps->pending_count + gaps->written_count;
    uint32_t channel_cap = gaps->options.channel_cap;
    if (place_count >= gaps->options.cap) {
        return refuse(gap, gaps->cap_reason, &gaps->is_cap_reported, BP_GAP_CAP);
    }
    if (channel_cap != 0 && gap->channel->place_count >= channel_cap) {
        return refuse(gap, gaps->channel_cap_reason, &gap->channel->is_cap_reported,
                      BP_GAP_CHANNEL_CAP);
    }
    gap->channel->place_count++;
    gaps->pending_count++;
    gap->state = GAP_PENDING;
    return BP_GAP_REPORT;
}

/* With or without the lock. */
static void count_occurrence(bp_gaps *gaps, const bp_gap *gap) {
    struct tally *tally = &gaps->tallies[gap - gaps->gaps];
    atomic_fetch_add_explicit(&tally->count, 1, memory_order_relaxed);
    atomic_store_explicit(&tally->last_wall_ns, bp_clock_wall_tick_ns(), memory_order_relaxed);
}

bp_gap_occurrence bp_gaps_see(bp_gaps *gaps, const bp_gap_key *key, bool is_enabled,
                              bp_gap **ret_gap) {
    bp_gap_occurrence occurrence = BP_GAP_COUNTED;
    size_t slot = 0;
    bp_gap *gap = find(gaps, key, &slot);
    if (gap != NULL && atomic_load_explicit(&gap->state, memory_order_relaxed) != GAP_OPEN) {
        count_occurrence(gaps, gap);
        return occurrence;
    }
    bp_lock_acquire(&gaps->lock);
    if (gap == NULL) { /* a row that was found stays */
        gap = find_row(gaps, key);
    }
    if (gap == NULL) {
        gap = add_row(gaps, key);
    }
    count_occurrence(gaps, gap);
    if (gap->state == GAP_OPEN) {
        occurrence = take_place(gaps, gap, is_enabled);
    }
    bp_lock_release(&gaps->lock);
    if (occurrence != BP_GAP_COUNTED) {
        *ret_gap = gap;
    }
    return occurrence;
}

void bp_gaps_settle(bp_gaps *gaps, bp_gap *gap, bool is_written) {
    bp_lock_acquire(&gaps->lock);
    gaps->pending_count--;
    if (is_written) {
        gaps->written_count++;
        gap->state = GAP_WRITTEN;
    } else {
        gap->channel->place_count--;
        gap->try_count++;
        gap->state = gap->try_count >= BUGPACK_GAP_TRIES ? GAP_GIVEN_UP : GAP_OPEN;
        gap->refusal = NULL;
    }
    bp_lock_release(&gaps->lock);
}

void bp_gaps_count(bp_gaps *gaps, bugpack_pedantic_state *ret_state) {
    bp_lock_acquire(&gaps->lock);
    ret_state->written_count = gaps->written_count;
    ret_state->pending_count = gaps->pending_count;
    ret_state->distinct_count = gaps->gap_count;
    ret_state->occurrence_count = 0;
    for (uint32_t i = 0; i < gaps->gap_count; i++) {
        ret_state->occurrence_count += gaps->tallies[i].count;
    }
    bp_lock_release(&gaps->lock);
}

void bp_gaps_tallies(bp_gaps *gaps, bp_trigger_tally *ret_tallies, size_t count) {
    for (size_t i = 0; i < count; i++) {
        ret_tallies[i] = (bp_trigger_tally){gaps->tallies[i].count, gaps->tallies[i].last_wall_ns};
    }
}

void bp_gaps_give_up(bp_gaps *gaps, bp_gap *gap, const char *reason) {
    bp_lock_acquire(&gaps->lock);
    gaps->pending_count--;
    gap->channel->place_count--;
    gap->state = GAP_GIVEN_UP;
    gap->refusal = reason;
    bp_lock_release(&gaps->lock);
}

/* Why a key has no report; "" when it has one. */
static const char *reason_of(const bp_gap *gap) {
    static const char *const reasons[] = {
        [GAP_PENDING] = "its report is on its way",
        [GAP_WRITTEN] = "",
        [GAP_GIVEN_UP] = "its report could not be written, and its tries are used up"};
    if (gap->refusal != NULL && (gap->state == GAP_OPEN || gap->state == GAP_GIVEN_UP)) {
        return gap->refusal;
    }
    if (gap->state != GAP_OPEN) {
        return reasons[gap->state];
    }
    return gap->try_count > 0 ? "its report could not be written; the next occurrence tries again"
                              : "its report was not begun";
}

bugpack_status bp_gaps_list(bp_gaps *gaps, const bp_gap *writing, bp_pedantic_gap **ret_rows,
                            size_t *ret_count, bugpack_error *error) {
    bugpack_pedantic_state totals;
    bp_gaps_count(gaps, &totals);
    size_t count = totals.distinct_count; /* rows are only ever added */
    bp_pedantic_gap *rows = count > 0 ? calloc(count, sizeof *rows) : NULL;
    if (count > 0 && rows == NULL) {
        return bp_fail_memory(error, "list the gaps");
    }
    bp_lock_acquire(&gaps->lock);
    for (size_t i = 0; i < count; i++) {
        const bp_gap *gap = &gaps->gaps[i];
        uint64_t last_ns = gaps->tallies[i].last_wall_ns; /* its clock has a coarser tick */
        bool is_written = gap == writing || gap->state == GAP_WRITTEN;
        rows[i] = (bp_pedantic_gap){.key = gap->text,
                                    .channel = gap->text,
                                    .channel_bytes = gap->channel_bytes,
                                    .count = gaps->tallies[i].count,
                                    .first_wall_ns = gap->first_wall_ns,
                                    .last_wall_ns =
                                        last_ns > gap->first_wall_ns ? last_ns : gap->first_wall_ns,
                                    .is_written = is_written,
                                    .reason = is_written ? "" : reason_of(gap)};
    }
    bp_lock_release(&gaps->lock);
    *ret_rows = rows;
    *ret_count = count;
    return BUGPACK_OK;
}

static const char unknown_word[] = ":unknown:";
static const char overflow_word[] = "overflow";

/* A key fits with the longest number, and a channel is cut the same whatever the number.
 */
enum { unknown_channel_max_bytes = BUGPACK_GAP_KEY_MAX_BYTES - (sizeof unknown_word - 1) - 20 };

void bp_gap_key_read(bp_gap_key *key, const bp_tag_key *hash_key, const char *text) {
    key->text = text[0] != '\0' ? text : BP_GAP_KEY_UNNAMED;
    key->bytes = strlen(key->text);
    size_t seen = key->bytes;
    if (key->bytes > BUGPACK_GAP_KEY_MAX_BYTES) {
        /* The hash is keyed: a report holds it, and what is cut off may be a secret. */
        seen = bp_utf8_cut(text, key->bytes, BP_GAP_KEY_FRONT_BYTES);
        char *tail = key->made + seen;
        memcpy(key->made, text, seen);
        int tail_bytes = hash_key->is_there
                             ? snprintf(tail, sizeof key->made - seen, "~%016llx",
                                        (unsigned long long)bp_tag_hash(hash_key, text, key->bytes))
                             : snprintf(tail, sizeof key->made - seen, "~");
        key->text = key->made;
        key->bytes = seen + (size_t)tail_bytes;
    }
    /* Without a ':' the front alone is the channel: with the hash each key would be a channel. */
    const char *colon = memchr(key->text, ':', seen);
    key->channel_bytes = colon == NULL ? seen : (size_t)(colon - key->text);
    size_t kind = seen - key->channel_bytes;
    key->is_unknown = kind >= sizeof unknown_word - 1 &&
                      memcmp(colon, unknown_word, sizeof unknown_word - 1) == 0;
}

/* Joins a channel and a tail. A channel that is too long is cut so that the tail stays whole. */
static void join(bp_gap_key *key, const char *channel, size_t channel_bytes, const char *tail,
                 size_t tail_bytes) {
    if (channel_bytes + tail_bytes > BUGPACK_GAP_KEY_MAX_BYTES) {
        channel_bytes = bp_utf8_cut(channel, channel_bytes, BUGPACK_GAP_KEY_MAX_BYTES - tail_bytes);
    }
    memcpy(key->made, channel, channel_bytes);
    memcpy(key->made + channel_bytes, tail, tail_bytes);
    key->made[channel_bytes + tail_bytes] = '\0';
    key->text = key->made;
    key->bytes = channel_bytes + tail_bytes;
    key->channel_bytes = channel_bytes;
}

void bp_gap_key_make_unknown(bp_gap_key *key, const char *channel, uint64_t opcode) {
    /* By hand: snprintf would take as long as all the rest of a repeated occurrence. */
    char tail[sizeof unknown_word + 20];
    char *at = tail + sizeof tail;
    do {
        *--at = (char)('0' + opcode % 10);
        opcode /= 10;
    } while (opcode > 0);
    at -= sizeof unknown_word - 1;
    memcpy(at, unknown_word, sizeof unknown_word - 1);
    size_t channel_bytes = strnlen(channel, unknown_channel_max_bytes + 1);
    join(key, channel, bp_utf8_cut(channel, channel_bytes, unknown_channel_max_bytes), at,
         (size_t)(tail + sizeof tail - at));
    key->is_unknown = true;
}

void bp_gap_key_make_overflow(bp_gap_key *key, const bp_gap_key *of, bool of_unknown) {
    char tail[sizeof unknown_word + sizeof overflow_word];
    int tail_bytes =
        snprintf(tail, sizeof tail, "%s%s", of_unknown ? unknown_word : ":", overflow_word);
    join(key, of->text, of->channel_bytes, tail, (size_t)tail_bytes);
    key->is_unknown = false;
}
