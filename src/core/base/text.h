/* The beginning and the end of a text. */
#ifndef BP_BASE_TEXT_H
#define BP_BASE_TEXT_H

#include <stdbool.h>
#include <string.h>

static inline bool bp_text_begins(const char *text, const char *begin) {
    return strncmp(text, begin, strlen(begin)) == 0;
}

static inline bool bp_text_ends(const char *text, const char *end) {
    size_t bytes = strlen(text), end_bytes = strlen(end);
    return bytes >= end_bytes && strcmp(text + bytes - end_bytes, end) == 0;
}

#endif
