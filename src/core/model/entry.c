#include "model/entry.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/suggest.h"
#include "base/utf8.h"

enum { name_max_bytes = 200, row_max = 64, process_max = 1 << 25 };

#define ROW(id, name, form, flag, worth, cut, holds)                                               \
    {name, BP_ENTRY_##form, BP_ENTRY_##flag, worth, BP_ENTRY_##cut, holds},
#define SOURCE(id, name, form, flag, worth, cut, holds, ...)                                       \
    ROW(id, name, form, flag, worth, cut, holds)
const bp_entry_row bp_entries[BP_ENTRY_COUNT] = {BP_ENTRIES(ROW, SOURCE)};

static bool is_in_row(const char *name, size_t row) {
    size_t length = strlen(bp_entries[row].name);
    bool is_directory = bp_entries[row].name[length - 1] == '/';
    return is_directory ? strncasecmp(name, bp_entries[row].name, length) == 0
                        : bp_entry_is_same(name, bp_entries[row].name);
}

static unsigned find_row(const char *name) {
    unsigned row = 0;
    while (row < BP_ENTRY_COUNT && !is_in_row(name, row)) {
        row++;
    }
    return row;
}

static bool is_of_process(const char *name) {
    return strncasecmp(name, BP_ENTRY_PROCESSES, sizeof BP_ENTRY_PROCESSES - 1) == 0;
}

size_t bp_entry_folder_bytes(const char *name) {
    const char *slash =
        is_of_process(name) ? strchr(name + sizeof BP_ENTRY_PROCESSES - 1, '/') : NULL;
    return slash != NULL ? (size_t)(slash + 1 - name) : 0;
}

const char *bp_entry_in_process(const char *name) {
    return name + bp_entry_folder_bytes(name);
}

bp_entry_id bp_entry_find(const char *name) {
    return (bp_entry_id)find_row(bp_entry_in_process(name));
}

bool bp_entry_is_late(const char *name) {
    bp_entry_id id = bp_entry_find(name);
    return id < BP_ENTRY_COUNT && (bp_entries[id].flags & BP_ENTRY_LATE) != 0;
}

unsigned bp_entry_rank(const char *name) {
    if (bp_entry_is_same(name, bp_entries[BP_ENTRY_MANIFEST].name)) {
        return UINT_MAX;
    }
    if (!is_of_process(name)) {
        return find_row(name);
    }
    /* By process, and inside in the order of all entries. A pid has at most 22 bits. */
    unsigned long pid = strtoul(name + sizeof BP_ENTRY_PROCESSES - 1, NULL, 10);
    return (unsigned)(pid % process_max + 1) * row_max + find_row(bp_entry_in_process(name));
}

/* The next word of a list; false at its end. */
static bool take_word(const char **list, const char **ret_word, size_t *ret_bytes) {
    *ret_word = *list + strspn(*list, " ");
    *ret_bytes = strcspn(*ret_word, " ");
    *list = *ret_word + *ret_bytes;
    return *ret_bytes > 0;
}

static bool is_word(const char *word, size_t word_bytes, const char *name) {
    return strlen(name) == word_bytes && memcmp(word, name, word_bytes) == 0;
}

/* The first name that is not of an entry to leave out; false where there is none. */
static bool find_mistake(const char *list, const char **ret_word, size_t *ret_bytes) {
    while (take_word(&list, ret_word, ret_bytes)) {
        unsigned row = 0;
        while (row < BP_ENTRY_COUNT && !((bp_entries[row].flags & BP_ENTRY_OPTIONAL) &&
                                         is_word(*ret_word, *ret_bytes, bp_entries[row].name))) {
            row++;
        }
        if (row == BP_ENTRY_COUNT) {
            return true;
        }
    }
    return false;
}

const char *bp_entry_refuse_list(const char *list, char out[BP_ENTRY_MISTAKE_BYTES]) {
    const char *wrong = "";
    size_t bytes = 0;
    char word[64];
    if (!find_mistake(list, &wrong, &bytes)) {
        return NULL;
    }
    (void)snprintf(word, sizeof word, "%.*s", (int)(bytes < sizeof word ? bytes : sizeof word - 1),
                   wrong);
    bp_suggestion near = {.word = word};
    for (unsigned row = 0; row < BP_ENTRY_COUNT; row++) {
        if (bp_entries[row].flags & BP_ENTRY_OPTIONAL) {
            bp_suggest(&near, bp_entries[row].name);
        }
    }
    (void)snprintf(out, BP_ENTRY_MISTAKE_BYTES,
                   "'%s' is not the name of an entry to leave out%s%s%s", word,
                   near.name != NULL ? "; did you mean '" : "", near.name != NULL ? near.name : "",
                   near.name != NULL ? "'?" : "");
    return out;
}

bool bp_entry_is_in_list(const char *list, const char *name) {
    const char *word;
    size_t bytes;
    while (take_word(&list, &word, &bytes)) {
        if (is_word(word, bytes, name)) {
            return true;
        }
    }
    return false;
}

bool bp_entry_is_same(const char *one, const char *other) {
    return strcasecmp(one, other) == 0;
}

bool bp_entry_is_in_the_way(const char *one, const char *other) {
    size_t one_bytes = strlen(one);
    size_t other_bytes = strlen(other);
    size_t shorter_bytes = one_bytes < other_bytes ? one_bytes : other_bytes;
    const char *longer = one_bytes < other_bytes ? other : one;
    return strncasecmp(one, other, shorter_bytes) == 0 &&
           (longer[shorter_bytes] == '\0' || longer[shorter_bytes] == '/');
}

/* True if a name would make a directory of an entry that a report has, or may have. */
static bool is_below_an_entry(const char *name) {
    bool is_below = false;
    for (size_t row = 0; row < BP_ENTRY_COUNT; row++) {
        bool is_file = bp_entries[row].name[strlen(bp_entries[row].name) - 1] != '/';
        is_below = is_below || (is_file && !bp_entry_is_same(name, bp_entries[row].name) &&
                                bp_entry_is_in_the_way(name, bp_entries[row].name));
    }
    return is_below;
}

const char *bp_entry_refuse(const char *name) {
    size_t length = strlen(name);
    const char *wrong = bp_utf8_refuse_name(name, length);
    if (wrong != NULL || length > name_max_bytes) {
        return wrong != NULL ? wrong : "the name is longer than 200 bytes";
    }
    unsigned row = find_row(name);
    if (bp_entry_is_same(name, bp_entries[BP_ENTRY_MANIFEST].name) ||
        bp_entry_is_in_the_way(name, "processes") ||
        (row < BP_ENTRY_COUNT && !(bp_entries[row].flags & BP_ENTRY_HOSTS)) ||
        is_below_an_entry(name)) {
        return "the name is reserved";
    }
    return NULL;
}
