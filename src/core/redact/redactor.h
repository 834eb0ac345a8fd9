/*
 * Replaces secrets in the entries of one report while they are written, as a stream, and counts
 * them.
 *
 * A text is searched by lines, JSON by records: a line of JSON Lines, or a part of a document. Only
 * what has a keyword, or a code that may hide one (redact/codes.h), is looked at closely. Memory is
 * bounded: what is over 256 KiB is searched in pieces. A piece ends before each match that depends
 * on what follows it; a match over 128 KiB takes the rest of its line or string with it. A pattern
 * that takes too many steps costs its record, which is replaced as a whole.
 */
#ifndef BP_REDACT_REDACTOR_H
#define BP_REDACT_REDACTOR_H

#include <stdint.h>

#include <bugpack/log.h>

#include "base/buffer.h"
#include "base/sink.h"
#include "redact/rule_set.h"
#include "redact/tag.h"

typedef enum bp_redact_form {
    BP_REDACT_BINARY,    /* passed on as it is */
    BP_REDACT_MESSAGES,  /* the same: its messages were overwritten before */
    BP_REDACT_FRAMES,    /* a pcap of bugpack: redact/record.h */
    BP_REDACT_TEXT,      /* binary after all if there is a NUL in its first 8 KiB */
    BP_REDACT_LOG,       /* the same if over an eighth of these are NULs */
    BP_REDACT_JSON,      /* one document */
    BP_REDACT_JSON_LINES /* one record a line */
} bp_redact_form;

/* By the ending of an entry's name; what is not known is a text. */
bp_redact_form bp_redact_form_of(const char *entry);

/* One thread at a time. */
typedef struct bp_redactor bp_redactor;

/* With a key of its own for its tags. The set is borrowed. NULL without memory. */
bp_redactor *bp_redactor_new(const bp_rule_set *set);
void bp_redactor_free(bp_redactor *redactor);

/* Tags by another key, before the first entry. NULL is fine for both. */
void bp_redactor_set_key(bp_redactor *redactor, const bp_tag_key *key);

/* The next entry begins, with counts of zero; one that has not ended is forgotten. */
void bp_redactor_begin(bp_redactor *redactor, bp_redact_form form);

/*
 * Takes bytes of the entry and passes on what is redacted. With `bytes` NULL the entry ends, and
 * what was held back is passed on. NO_MEMORY, or what `pass_on` returns: then the entry is to be
 * discarded.
 */
bugpack_status bp_redactor_write(bp_redactor *redactor, const void *bytes, size_t byte_count,
                                 bp_sink *pass_on, void *context);

/* True if the entry was searched: false for a binary one. */
bool bp_redactor_is_searched(const bp_redactor *redactor);

/* Counts of replacements by each rule of the set since the entry began. Borrowed. */
const uint64_t *bp_redactor_counts(const bp_redactor *redactor);

/*
 * Replaces the secrets of a message that begin in [from, to), each by as many bytes, so that its
 * length stays. What is before them may be of another message. It must not come between the pieces
 * of a text. NO_MEMORY.
 */
bugpack_status bp_redactor_overwrite(bp_redactor *redactor, unsigned char *bytes, size_t byte_count,
                                     size_t from, size_t to);

/* Appends a short text without its secrets; they count, except those of an open entry. NO_MEMORY,
 * or LIMIT of the buffer. */
bugpack_status bp_redactor_text(bp_redactor *redactor, const char *text, size_t byte_count,
                                bp_buffer *out);

/* Beside the public BUGPACK_PART_ flags: the end of the message was not recorded. */
enum { BP_PART_WAS_CUT = 4 };

/* The same for a message of a thread and channel; several may have the lines of one private key, or
 * be parts of one line. */
bugpack_status bp_redactor_message(bp_redactor *redactor, uint64_t stream, unsigned part,
                                   const char *text, size_t byte_count, bp_buffer *out);

#endif
