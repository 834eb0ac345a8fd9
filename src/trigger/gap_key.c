#include "trigger/gap_key.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static const char unknown_word[] = ":unknown:";
static const char overflow_word[] = "overflow";

/* A key fits with the longest number, and a channel is cut the same whatever the number.
 */
enum { unknown_channel_max_bytes = BUGPACK_GAP_KEY_MAX_BYTES - (sizeof unknown_word - 1) - 20 };

/* Puts the front of a long key and a hash of the whole into `made`. The hash is keyed: a report
 * holds it, and what is cut off may be a secret. Returns how long the front is. */
static size_t cut(bp_gap_key *key, const bp_tag_key *hash_key, const char *text, size_t bytes) {
    size_t front = bp_utf8_cut(text, bytes, BP_GAP_KEY_FRONT_BYTES);
    memcpy(key->made, text, front);
    int tail = hash_key->is_there
                   ? snprintf(key->made + front, sizeof key->made - front, "~%016llx",
                              (unsigned long long)bp_tag_hash(hash_key, text, bytes))
                   : snprintf(key->made + front, sizeof key->made - front, "~");
    key->text = key->made;
    key->bytes = front + (size_t)tail;
    return front;
}

void bp_gap_key_read(bp_gap_key *key, const bp_tag_key *hash_key, const char *text) {
    key->text = text[0] != '\0' ? text : BP_GAP_KEY_UNNAMED;
    key->bytes = strlen(key->text);
    size_t seen = key->bytes;
    if (key->bytes > BUGPACK_GAP_KEY_MAX_BYTES) {
        seen = cut(key, hash_key, text, key->bytes);
    }
    /* A channel without an end keeps off the hash: else each such key would be its own channel. */
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

bool bp_gap_key_matches(const bp_gap_key *key, const char *const *patterns, size_t pattern_count) {
    bool is_match = false;
    for (size_t i = 0; i < pattern_count && !is_match; i++) {
        is_match = fnmatch(patterns[i], key->text, 0) == 0;
    }
    return is_match;
}
