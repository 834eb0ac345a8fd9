#include "redact/at_call.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "redact/record.h"

enum { slot_count = 8, set_max_count = 32, out_max_bytes = 1 << 20 };

/* A redactor, for the threads that share it. */
typedef struct call_slot {
    _Alignas(64) bp_lock lock;
    bp_redactor *redactor; /* NULL: none was needed yet */
    bp_buffer out;
    atomic_bool is_in_block; /* a private key has begun, whose lines have no keyword */
} call_slot;

struct bp_at_call {
    bp_entry_guard guard;
    bp_tag_key key;
    _Atomic(bp_rule_set *) set;
    bp_lock lock;                     /* of `sets` */
    bp_rule_set *sets[set_max_count]; /* a text may still be searched by an older one */
    unsigned set_count;
    call_slot slots[slot_count];
};

bugpack_status bp_at_call_new(const void *owner, bp_at_call **ret_at_call, bugpack_error *error) {
    bp_at_call *at_call = aligned_alloc(_Alignof(bp_at_call), sizeof *at_call);
    if (at_call == NULL) {
        return bp_fail_memory(error, "open a session");
    }
    memset(at_call, 0, sizeof *at_call);
    bp_entry_guard_init(&at_call->guard, owner);
    bp_tag_key_new(&at_call->key);
    bp_lock_init(&at_call->lock, BP_LOCK_AT_CALL);
    for (size_t i = 0; i < slot_count; i++) {
        bp_lock_init(&at_call->slots[i].lock, BP_LOCK_AT_CALL);
        bp_buffer_init(&at_call->slots[i].out, out_max_bytes);
    }
    *ret_at_call = at_call;
    return BUGPACK_OK;
}

bugpack_status bp_at_call_use(bp_at_call *at_call, bp_rule_set *set, bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    bp_lock_acquire(&at_call->lock);
    if (at_call->set_count == set_max_count) {
        status = bp_fail(error, BUGPACK_ERR_LIMIT, "redaction rules were added too often");
    } else {
        at_call->sets[at_call->set_count++] = bp_rule_set_retain(set);
        atomic_store(&at_call->set, set);
    }
    bp_lock_release(&at_call->lock);
    return status;
}

const bp_tag_key *bp_at_call_key(const bp_at_call *at_call) {
    return &at_call->key;
}

void bp_at_call_close(bp_at_call *at_call) {
    if (at_call == NULL || !bp_entry_guard_shut(&at_call->guard)) {
        return;
    }
    for (size_t i = 0; i < slot_count; i++) {
        bp_redactor_free(at_call->slots[i].redactor);
        bp_buffer_release(&at_call->slots[i].out);
    }
    for (unsigned i = 0; i < at_call->set_count; i++) {
        bp_rule_set_drop(at_call->sets[i]);
    }
    bp_tag_key_clear(&at_call->key);
}

void bp_at_call_free(bp_at_call *at_call) {
    if (at_call != NULL) {
        bp_at_call_close(at_call);
        for (size_t i = 0; i < slot_count; i++) {
            bp_lock_destroy(&at_call->slots[i].lock);
        }
        bp_lock_destroy(&at_call->lock);
        bp_entry_guard_release(&at_call->guard);
        free(at_call);
    }
}

/* True if no rule can match: no keyword, and nothing that one may be hidden in or divided by. */
static bool is_clean(const bp_rule_set *set, const unsigned char *bytes, size_t byte_count) {
    const bp_keywords *keywords = set->keywords;
    bp_keyword_state state = bp_keywords_start(keywords);
    return !set->searches_all &&
           bp_keywords_next(keywords, bytes, byte_count, 0, &state) == SIZE_MAX;
}

/* The lines of a private key may be records of one thread and channel. The lock is held. */
static bugpack_status redact(const bp_at_call *at_call, call_slot *slot, bp_rule_set *set,
                             uint64_t stream, unsigned part, const void *bytes, size_t byte_count) {
    if (slot->redactor == NULL || slot->redactor->set != set) {
        bp_redactor *redactor = bp_redactor_new(set);
        if (redactor == NULL) {
            return BUGPACK_ERR_NO_MEMORY;
        }
        bp_redactor_set_key(redactor, &at_call->key);
        bp_redactor_free(slot->redactor);
        slot->redactor = redactor;
    }
    bp_buffer_clear(&slot->out);
    bugpack_status status =
        bp_redactor_message(slot->redactor, stream, part, bytes, byte_count, &slot->out);
    atomic_store(&slot->is_in_block, slot->redactor->scan.open_count > 0);
    return status;
}

bool bp_at_call_begin(bp_at_call *at_call, uint64_t thread_id, const char *channel, unsigned part,
                      const void *bytes, size_t byte_count, bp_clean_text *ret_text) {
    static const char unknown[] = "(there was no memory to search this text for secrets)";
    if (!bp_entry_guard_enter(&at_call->guard, &ret_text->entry)) {
        return false;
    }
    call_slot *slot = &at_call->slots[thread_id % slot_count];
    bp_rule_set *set = atomic_load(&at_call->set);
    ret_text->bytes = bytes;
    ret_text->byte_count = byte_count;
    ret_text->lock = NULL;
    if (set != NULL && part == 0 && !atomic_load(&slot->is_in_block) &&
        is_clean(set, bytes, byte_count)) {
        return true;
    }
    uint64_t stream = thread_id;
    if (channel != NULL) {
        stream ^= bp_tag_hash(&at_call->key, channel, strnlen(channel, 64));
    }
    bp_lock_acquire(&slot->lock);
    bool is_redacted =
        set != NULL && redact(at_call, slot, set, stream, part, bytes, byte_count) == BUGPACK_OK;
    ret_text->lock = &slot->lock;
    ret_text->bytes = is_redacted ? bp_buffer_text(&slot->out) : unknown;
    ret_text->byte_count = is_redacted ? slot->out.size : sizeof unknown - 1;
    return true;
}

void bp_at_call_end(bp_clean_text *text) {
    if (text->lock != NULL) {
        bp_lock_release(text->lock);
    }
    bp_entry_guard_leave(&text->entry);
}
