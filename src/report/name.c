#include "report/name.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/suggest.h"
#include "base/utf8.h"

enum {
    app_max_bytes = 64,
    detail_max_bytes = 96,
    artefact_name_max_bytes = 200,
    time_bytes = sizeof "2026-11-21T00-36-51Z" - 1,
    number_max = 9999
};

static bool is_plain(char byte) {
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
           (byte >= '0' && byte <= '9') || byte == '_' || byte == '.' || byte == '-';
}

/* Appends a word that anybody may have chosen, in the few characters that a file name may hold. */
static size_t append_word(char *stem, size_t length, const char *word, size_t max_bytes) {
    for (size_t i = 0; i < max_bytes && word[i] != '\0'; i++) {
        char byte = is_plain(word[i]) ? word[i] : '_';
        if (strchr(":/\\ ", word[i]) != NULL) {
            byte = '-';
        }
        /* A file called ".x" is hidden, and one called "-x" is an option to many commands. */
        bool is_in_front = length == 0 && i == 0;
        stem[length + i] = is_in_front && (byte == '.' || byte == '-') ? '_' : byte;
        stem[length + i + 1] = '\0';
    }
    return strlen(stem);
}

void bp_name_app_word(const char *app, char ret_word[BP_NAME_APP_BYTES]) {
    ret_word[0] = '\0';
    (void)append_word(ret_word, 0, app, app_max_bytes);
}

void bp_name_report_stem(const char *app, bp_report_kind kind, const char *detail, uint64_t wall_ns,
                         char ret_stem[BP_NAME_STEM_BYTES]) {
    char time[BP_CLOCK_NAME_BYTES];
    bp_clock_format_name(wall_ns, time);
    bp_name_app_word(app, ret_stem);
    size_t length = strlen(ret_stem);
    length += (size_t)snprintf(ret_stem + length, BP_NAME_STEM_BYTES - length, "-%s-",
                               bp_report_kind_name(kind));
    if (detail != NULL && detail[0] != '\0') {
        length = append_word(ret_stem, length, detail, detail_max_bytes);
        ret_stem[length++] = '-';
    }
    (void)snprintf(ret_stem + length, BP_NAME_STEM_BYTES - length, "%s", time);
}

/* The table of docs/REPORT_FORMAT.md. */
static const struct {
    const char *name;
    bool is_for_hosts; /* a host may provide it itself */
    bool is_optional;  /* without_entries may name it */
} table[] = {
    {"metadata.json", false, false},
    {"crash.json", false, false},
    {"runtime-metrics.json", false, false},
    {"metrics-history.jsonl", false, true},
    {"process.json", false, true},
    {"threads.json", false, true},
    {"files.json", false, true},
    {"system.json", false, true},
    {"heap-state.json", false, true},
    {"stacks.txt", false, true},
    {"stacks.json", false, true},
    {"session.json", true, false},
    {"channel-state.json", true, false},
    {"logs.jsonl", false, true},
    {"logs/", true, false},
    {"notifications.json", false, true},
    {"traffic.pcap", false, true},
    {"traffic-index.jsonl", false, true},
    {"screenshot.png", false, false},
    {"screenshot-region.png", false, false},
    {"screen.txt", true, true},
    {"disconnect-cause.json", false, false},
    {"thread-heap.json", false, true},
    {"commands/", true, false},
    {"host-threads.json", false, false},
};
enum { table_count = sizeof table / sizeof table[0], row_max = 64, process_max = 1 << 25 };

static const char manifest_name[] = "manifest.json";
static const char processes_directory[] = "processes";

static bool is_in_row(const char *name, size_t row) {
    size_t length = strlen(table[row].name);
    bool is_directory = table[row].name[length - 1] == '/';
    return is_directory ? strncasecmp(name, table[row].name, length) == 0
                        : bp_name_is_same_entry(name, table[row].name);
}

static unsigned find_row(const char *name) {
    unsigned row = 0;
    while (row < table_count && !is_in_row(name, row)) {
        row++;
    }
    return row;
}

static bool is_of_process(const char *name) {
    return strncasecmp(name, BP_NAME_PROCESSES, sizeof BP_NAME_PROCESSES - 1) == 0;
}

const char *bp_name_in_process(const char *name) {
    const char *slash =
        is_of_process(name) ? strchr(name + sizeof BP_NAME_PROCESSES - 1, '/') : NULL;
    return slash != NULL ? slash + 1 : name;
}

unsigned bp_name_entry_rank(const char *name) {
    if (bp_name_is_same_entry(name, manifest_name)) {
        return UINT_MAX;
    }
    if (!is_of_process(name)) {
        return find_row(name);
    }
    /* By process, and inside in the order of all entries. A pid has at most 22 bits. */
    unsigned long pid = strtoul(name + sizeof BP_NAME_PROCESSES - 1, NULL, 10);
    return (unsigned)(pid % process_max + 1) * row_max + find_row(bp_name_in_process(name));
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
        while (row < table_count &&
               !(table[row].is_optional && is_word(*ret_word, *ret_bytes, table[row].name))) {
            row++;
        }
        if (row == table_count) {
            return true;
        }
    }
    return false;
}

bool bp_name_is_optional_list(const char *list) {
    const char *word;
    size_t bytes;
    return !find_mistake(list, &word, &bytes);
}

/* A bp_suggest_name of the entries that can be left out. */
static const char *name_optional(const void *context, size_t index) {
    (void)context;
    unsigned row = 0;
    for (; row < table_count; row++) {
        if (table[row].is_optional && index-- == 0) {
            return table[row].name;
        }
    }
    return NULL;
}

const char *bp_name_explain_optional_list(const char *list, char out[BP_NAME_MISTAKE_BYTES]) {
    const char *wrong = "";
    size_t bytes = 0;
    char word[64];
    (void)find_mistake(list, &wrong, &bytes);
    (void)snprintf(word, sizeof word, "%.*s", (int)(bytes < sizeof word ? bytes : sizeof word - 1),
                   wrong);
    const char *near = bp_suggest(word, name_optional, NULL);
    (void)snprintf(
        out, BP_NAME_MISTAKE_BYTES, "'%s' is not the name of an entry to leave out%s%s%s", word,
        near != NULL ? "; did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?" : "");
    return out;
}

bool bp_name_is_in_list(const char *list, const char *name) {
    const char *word;
    size_t bytes;
    while (take_word(&list, &word, &bytes)) {
        if (is_word(word, bytes, name)) {
            return true;
        }
    }
    return false;
}

bool bp_name_is_same_entry(const char *one, const char *other) {
    return strcasecmp(one, other) == 0;
}

bool bp_name_is_in_the_way(const char *one, const char *other) {
    size_t one_bytes = strlen(one);
    size_t other_bytes = strlen(other);
    size_t shorter_bytes = one_bytes < other_bytes ? one_bytes : other_bytes;
    const char *longer = one_bytes < other_bytes ? other : one;
    return strncasecmp(one, other, shorter_bytes) == 0 &&
           (longer[shorter_bytes] == '\0' || longer[shorter_bytes] == '/');
}

/* Whether a name would make a directory of an entry that a report has, or may have. */
static bool is_below_an_entry(const char *name) {
    bool is_below = bp_name_is_in_the_way(name, manifest_name);
    for (size_t row = 0; row < table_count; row++) {
        bool is_file = table[row].name[strlen(table[row].name) - 1] != '/';
        is_below = is_below || (is_file && !bp_name_is_same_entry(name, table[row].name) &&
                                bp_name_is_in_the_way(name, table[row].name));
    }
    return is_below;
}

static bool is_bad_component(const char *component, size_t length) {
    return length == 0 || (length == 1 && component[0] == '.') ||
           (length == 2 && component[0] == '.' && component[1] == '.');
}

const char *bp_name_refuse_artefact(const char *name) {
    size_t length = strlen(name);
    if (length == 0 || length > artefact_name_max_bytes) {
        return "it must have 1 to 200 bytes";
    }
    if (!bp_utf8_is_valid(name, length)) {
        return "it is not valid UTF-8";
    }
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)name[i];
        if (byte < 0x20 || byte == 0x7F || byte == '\\' || byte == ':') {
            return "it holds a control character, a backslash or a colon";
        }
    }
    for (const char *component = name;; component++) {
        size_t component_length = strcspn(component, "/");
        if (is_bad_component(component, component_length)) {
            return "it has a component that is empty, \".\" or \"..\"";
        }
        component += component_length;
        if (*component == '\0') {
            break;
        }
    }
    unsigned row = find_row(name);
    if (bp_name_is_same_entry(name, manifest_name) ||
        bp_name_is_in_the_way(name, processes_directory) ||
        (row < table_count && !table[row].is_for_hosts) || is_below_an_entry(name)) {
        return "the name is reserved";
    }
    return NULL;
}

static const char extension[] = ".zip";

/* Which kinds there are, and whether the name of one holds a detail. */
static const struct {
    bp_report_kind kind;
    bool has_detail;
} kinds[] = {{BP_REPORT_BUGREPORT, false},     {BP_REPORT_PEDANTIC, true},
             {BP_REPORT_DISCONNECT, true},     {BP_REPORT_NOTIFICATION, false},
             {BP_REPORT_AUTO_SNAPSHOT, false}, {BP_REPORT_CRASH, false}};

/* "2026-11-21T00-36-51Z", and only a moment that the clock can show in just these letters. */
static bool read_time(const char *text, uint64_t *ret_secs) {
    uint64_t wall_ns;
    char again[BP_CLOCK_NAME_BYTES];
    if (!bp_clock_parse(text, &wall_ns)) {
        return false;
    }
    bp_clock_format_name(wall_ns, again);
    *ret_secs = wall_ns / BP_NS_PER_SEC;
    return memcmp(again, text, time_bytes) == 0;
}

/* Takes "-N" off the end, where it is there; `*length` is then shorter. */
static unsigned take_number(const char *name, size_t *length) {
    unsigned number = 1;
    size_t digits = 0;
    while (digits < 4 && digits < *length && name[*length - digits - 1] >= '0' &&
           name[*length - digits - 1] <= '9') {
        digits++;
    }
    const char *text = name + *length - digits;
    if (digits > 0 && digits < *length && text[-1] == '-' && text[0] != '0' &&
        (number = (unsigned)strtoul(text, NULL, 10)) >= 2 && number <= number_max) {
        *length -= digits + 1;
        return number;
    }
    return 1;
}

/* Whether "-<kind>[-<detail>]" fills the text from `at` to the '-' before the time, at `end`. */
static bool is_kind_at(const char *name, size_t at, size_t end, size_t row) {
    const char *word = bp_report_kind_name(kinds[row].kind);
    size_t word_end = at + 1 + strlen(word);
    if (word_end > end || memcmp(name + at + 1, word, word_end - at - 1) != 0) {
        return false;
    }
    if (!kinds[row].has_detail) {
        return word_end == end;
    }
    return word_end + 1 < end && name[word_end] == '-' && end - word_end - 1 <= detail_max_bytes;
}

bool bp_name_parse_report(const char *name, bp_report_name *ret_parsed) {
    size_t length = strlen(name);
    const size_t extension_bytes = sizeof extension - 1;
    if (length <= extension_bytes || strcmp(name + length - extension_bytes, extension) != 0) {
        return false;
    }
    length -= extension_bytes;
    bp_report_name parsed = {.number = take_number(name, &length)};
    if (length <= time_bytes + 1 || name[0] == '.' || name[0] == '-' ||
        name[length - time_bytes - 1] != '-' ||
        !read_time(name + length - time_bytes, &parsed.wall_secs)) {
        return false;
    }
    size_t end = length - time_bytes - 1;
    unsigned readings = 0;
    for (size_t at = 0; at < end; at++) {
        if (!is_plain(name[at])) {
            return false;
        }
        for (size_t row = 0; row < sizeof kinds / sizeof kinds[0]; row++) {
            if (name[at] == '-' && at > 0 && at < BP_NAME_APP_BYTES &&
                is_kind_at(name, at, end, row)) {
                parsed.app_bytes = at;
                parsed.kind = kinds[row].kind;
                readings++;
            }
        }
    }
    if (readings != 1) {
        return false;
    }
    *ret_parsed = parsed;
    return true;
}
