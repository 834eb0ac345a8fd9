#include "model/condition.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/utf8.h"
#include "model/fields.h"
#include "redact/rule_set.h"

/* The words that may follow a subject. */
enum { COMPARES = 1, GROWS = 2, EQUALS = 4, MATCHES = 8, LASTS = 16 };

typedef struct subject subject;

/* The value of a sample: false where it is not known. */
typedef bool measure(const bp_condition *condition, const bp_condition_sample *sample,
                     double *ret_value);

struct subject {
    const char *name;
    unsigned forms, needs;
    const char *unit; /* NULL: it has no number */
    measure *measure;
    size_t number; /* of a bp_condition_sample: the offset of what measure_known gives */
    const char *usage;
};

/* The lowest value of a part of the time in which a value may grow. */
typedef struct point {
    uint64_t began_ns, taken_ns;
    double value;
} point;

enum { point_count = 64 };

/* An idle process may still have a timer. CPU time is counted in ticks of 10 ms, so two looks must
 * not be too close. */
static const double idle_percent_max = 1;
static const uint64_t look_min_ns = 250 * BP_NS_PER_MS;

static const uint64_t time_max_ns = 7 * 24 * 3600 * BP_NS_PER_SEC;
static const double value_max = 1e15; /* exact in a double, with room for a suffix */

struct bp_condition {
    char text[BUGPACK_CONDITION_MAX_BYTES + 1];
    const subject *subject;
    unsigned form;
    bool is_below;
    double value;
    char state;
    uint64_t for_ns, in_ns;
    bp_rule_set *pattern;
    bp_matcher *matcher;

    bool has_looked, did_hold, is_true;
    bp_condition_sample last;
    uint64_t passed_ns; /* since then, as far as it counts */
    uint64_t held_ns;
    size_t first, count;
    point *points; /* of one that grows */
};

/* --- the subjects ----------------------------------------------------------------------------- */

static bool measure_cpu(const bp_condition *condition, const bp_condition_sample *sample,
                        double *ret_value) {
    const bp_condition_sample *last = &condition->last;
    if (!condition->has_looked || sample->is_shared || sample->cpu_ns < last->cpu_ns) {
        return false;
    }
    *ret_value = 100.0 * (double)(sample->cpu_ns - last->cpu_ns) /
                 (double)(sample->taken_ns - last->taken_ns);
    return true;
}

static bool measure_known(const bp_condition *condition, const bp_condition_sample *sample,
                          double *ret_value) {
    const bp_known_uint *number = (const void *)((const char *)sample + condition->subject->number);
    *ret_value = (double)number->value;
    return number->known;
}

static bool measure_state(const bp_condition *condition, const bp_condition_sample *sample,
                          double *ret_value) {
    *ret_value = sample->state == condition->state;
    return sample->state != 0;
}

static const char percent[] = "percent", bytes[] = "bytes", counted[] = "count";

/* clang-format off */
static const subject subjects[] = {
    {"cpu", COMPARES, BP_CONDITION_NEEDS_SAMPLES, percent, measure_cpu, 0,
     "cpu > 90 or cpu < 5, also with for 10s"},
    {"rss", COMPARES | GROWS, BP_CONDITION_NEEDS_SAMPLES, bytes, measure_known,
     offsetof(bp_condition_sample, rss_bytes), "rss > 2G, rss < 10M or rss grows 100M in 1min"},
    {"threads", COMPARES | GROWS, BP_CONDITION_NEEDS_SAMPLES, counted, measure_known,
     offsetof(bp_condition_sample, thread_count),
     "threads > 500, threads < 2 or threads grows 50 in 1min"},
    {"fds", COMPARES | GROWS, BP_CONDITION_NEEDS_SAMPLES | BP_CONDITION_NEEDS_FILES, counted,
     measure_known, offsetof(bp_condition_sample, file_count),
     "fds > 900, fds < 3 or fds grows 100 in 1min"},
    {"state", EQUALS, BP_CONDITION_NEEDS_SAMPLES | BP_CONDITION_NEEDS_STATE, NULL, measure_state, 0,
     "state = D for 30s, with a letter of R S D T t Z I"},
    {"log", MATCHES, BP_CONDITION_NEEDS_LOG, NULL, NULL, 0, "log /PATTERN/"},
    {"idle", LASTS, BP_CONDITION_NEEDS_SAMPLES | BP_CONDITION_NEEDS_LOG, percent, measure_cpu, 0,
     "idle for 30s"}};
/* clang-format on */
enum { subject_count = sizeof subjects / sizeof subjects[0] };

/* --- reading a text --------------------------------------------------------------------------- */

static const char *skip_spaces(const char *at) {
    return at + strspn(at, " ");
}

/* Takes a word that is there as a whole. */
static bool take_word(const char **at, const char *word) {
    size_t length = strlen(word);
    const char *from = skip_spaces(*at);
    if (strncmp(from, word, length) != 0 || strchr(" ", from[length]) == NULL) {
        return false;
    }
    *at = skip_spaces(from + length);
    return true;
}

BUGPACK_PRINTF(3, 4)
static bugpack_status refuse(const bp_condition *condition, bugpack_error *error,
                             const char *format, ...) {
    char what[160];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return bp_fail(error, BUGPACK_ERR_INVALID, "condition '%.80s': %s; write it as %s",
                   condition->text, what, condition->subject->usage);
}

typedef struct suffix {
    const char *text;
    double factor;
} suffix;

/* The length of a number with one of the suffixes, which end with a factor of 0; 0: it is none. */
static size_t read_number(const char *text, const suffix *suffixes, double *ret_value) {
    size_t whole = strspn(text, "0123456789"), length = whole;
    double value = 0, digit = 1;
    for (size_t i = 0; i < whole; i++) {
        value = value * 10 + (text[i] - '0');
    }
    if (whole > 0 && text[length] == '.') {
        length++;
        for (; text[length] >= '0' && text[length] <= '9'; length++) {
            digit /= 10;
            value += digit * (text[length] - '0');
        }
        whole = text[length - 1] == '.' ? 0 : whole;
    }
    size_t word = strcspn(text + length, " ");
    for (; whole > 0 && suffixes->factor > 0; suffixes++) {
        if (strlen(suffixes->text) == word && strncmp(text + length, suffixes->text, word) == 0 &&
            value <= value_max / suffixes->factor) {
            *ret_value = value * suffixes->factor;
            return length + word;
        }
    }
    return 0;
}

static bool take_time(const char **at, uint64_t *ret_ns) {
    static const suffix units[] = {
        {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {"h", 3600e9}, {NULL, 0}};
    double ns = 0;
    size_t length = read_number(*at, units, &ns);
    *at = skip_spaces(*at + length);
    *ret_ns = (uint64_t)ns;
    return length > 0 && ns >= (double)BP_NS_PER_MS && ns <= (double)time_max_ns;
}

static bool take_value(bp_condition *condition, const char **at) {
    static const suffix sizes[] = {{"", 1},       {"K", 0x1p10}, {"M", 0x1p20},
                                   {"G", 0x1p30}, {"T", 0x1p40}, {NULL, 0}},
                        shares[] = {{"", 1}, {"%", 1}, {NULL, 0}}, counts[] = {{"", 1}, {NULL, 0}};
    const char *unit = condition->subject->unit;
    const suffix *suffixes = counts;
    if (unit == bytes) {
        suffixes = sizes;
    } else if (unit == percent) {
        suffixes = shares;
    }
    size_t length = read_number(*at, suffixes, &condition->value);
    *at = skip_spaces(*at + length);
    return length > 0 &&
           (unit != counted || condition->value == (double)(uint64_t)condition->value);
}

/* The pattern between the first '/' and the last one. */
static bugpack_status take_pattern(bp_condition *condition, const char **at, bugpack_error *error) {
    const char *from = *at + 1, *to = strrchr(*at, '/');
    bugpack_error reason = BUGPACK_ERROR_INIT;
    if (to <= from) {
        return refuse(condition, error, "the pattern is empty or has no second /");
    }
    bp_rule_list list = {.rules = calloc(1, sizeof *list.rules), .capacity = 1};
    if (list.rules == NULL) {
        return bp_fail_memory(error, "compile a pattern");
    }
    list.count = 1;
    list.rules[0].pattern = strndup(from, (size_t)(to - from));
    if (list.rules[0].pattern == NULL) {
        bp_rule_list_release(&list);
        return bp_fail_memory(error, "compile a pattern");
    }
    bugpack_status status = bp_rule_set_new(&list, &condition->pattern, &reason);
    if (status == BUGPACK_ERR_INVALID) {
        return refuse(condition, error, "%s", reason.message);
    }
    if (status == BUGPACK_OK) {
        condition->matcher = bp_matcher_new(condition->pattern);
    }
    *at = skip_spaces(to + 1);
    return condition->matcher != NULL ? BUGPACK_OK : bp_fail_memory(error, "compile a pattern");
}

static unsigned take_form(const char **at) {
    static const struct {
        const char *word;
        unsigned form;
    } words[] = {{"grows", GROWS}, {"for", LASTS}};
    static const char marks[] = "><=";
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (take_word(at, words[i].word)) {
            return words[i].form;
        }
    }
    if (**at == '/') {
        return MATCHES;
    }
    const char *mark = **at != '\0' ? strchr(marks, **at) : NULL;
    if (mark == NULL || strchr(marks, (*at)[1]) == mark) {
        return 0;
    }
    *at = skip_spaces(*at + 1);
    return *mark == '=' ? EQUALS : COMPARES;
}

/* The words behind the subject, up to an optional `for`. */
static bugpack_status read_form(bp_condition *condition, const char **at, bugpack_error *error) {
    const char *from = *at;
    condition->form = take_form(at);
    if ((condition->form & condition->subject->forms) == 0) {
        return refuse(condition, error, "'%.32s' is not understood after %s", from,
                      condition->subject->name);
    }
    condition->is_below = *from == '<';
    from = *at;
    switch (condition->form) {
    case MATCHES:
        return take_pattern(condition, at, error);
    case EQUALS:
        condition->state = **at;
        if (**at == '\0' || strchr("RSDTtZI", **at) == NULL || strchr(" ", (*at)[1]) == NULL) {
            return refuse(condition, error, "'%.32s' is no state", from);
        }
        *at = skip_spaces(*at + 1);
        return BUGPACK_OK;
    case LASTS:
        return take_time(at, &condition->for_ns)
                   ? BUGPACK_OK
                   : refuse(condition, error, "'%.32s' is no time from 1ms to 168h", from);
    default:
        if (!take_value(condition, at)) {
            return refuse(condition, error, "'%.32s' is no number of %s", from,
                          condition->subject->unit == counted ? condition->subject->name
                                                              : condition->subject->unit);
        }
    }
    from = *at;
    if (condition->form == GROWS && (!take_word(at, "in") || !take_time(at, &condition->in_ns))) {
        return refuse(condition, error, "'%.32s' is no time in which it grows", from);
    }
    return BUGPACK_OK;
}

static bugpack_status read_condition(bp_condition *condition, bugpack_error *error) {
    const char *at = skip_spaces(condition->text);
    size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz");
    for (size_t i = 0; i < subject_count && condition->subject == NULL; i++) {
        bool is_it =
            strlen(subjects[i].name) == length && strncmp(at, subjects[i].name, length) == 0;
        condition->subject = is_it ? &subjects[i] : NULL;
    }
    if (condition->subject == NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "condition '%.80s' does not begin with cpu, rss (resident memory), threads, "
                       "fds (open descriptors), state, log or idle",
                       condition->text);
    }
    at = skip_spaces(at + length);
    bugpack_status status = read_form(condition, &at, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bool may_last = (condition->form & (COMPARES | EQUALS)) != 0;
    const char *from = at;
    if (may_last && take_word(&at, "for") && !take_time(&at, &condition->for_ns)) {
        return refuse(condition, error, "'%.32s' has no time from 1ms to 168h", from);
    }
    return *at == '\0' ? BUGPACK_OK : refuse(condition, error, "'%.32s' is too much", at);
}

bugpack_status bp_condition_new(const char *text, bp_condition **ret_condition,
                                bugpack_error *error) {
    size_t length = text == NULL ? 0 : strnlen(text, BUGPACK_CONDITION_MAX_BYTES + 1);
    bool is_text = length > 0 && bp_utf8_is_valid(text, length);
    for (size_t i = 0; i < length; i++) {
        is_text = is_text && (unsigned char)text[i] >= ' ' && text[i] != 0x7f;
    }
    if (!is_text || length > BUGPACK_CONDITION_MAX_BYTES) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "a condition must have 1 to %d bytes of UTF-8, without control characters",
                       BUGPACK_CONDITION_MAX_BYTES);
    }
    bp_condition *condition = calloc(1, sizeof *condition);
    if (condition == NULL) {
        return bp_fail_memory(error, "read a condition");
    }
    memcpy(condition->text, text, length);
    bugpack_status status = read_condition(condition, error);
    if (status == BUGPACK_OK && condition->form == GROWS) {
        condition->points = calloc(point_count, sizeof *condition->points);
        status = condition->points == NULL ? bp_fail_memory(error, "read a condition") : BUGPACK_OK;
    }
    if (status != BUGPACK_OK) {
        bp_condition_free(condition);
        return status;
    }
    *ret_condition = condition;
    return BUGPACK_OK;
}

void bp_condition_free(bp_condition *condition) {
    if (condition != NULL) {
        bp_matcher_free(condition->matcher);
        bp_rule_set_drop(condition->pattern);
        free(condition->points);
        free(condition);
    }
}

unsigned bp_condition_needs(const bp_condition *condition) {
    return condition->subject->needs;
}

const char *bp_condition_text(const bp_condition *condition) {
    return condition->text;
}

const char *bp_condition_subject(const bp_condition *condition) {
    return condition->subject->name;
}

/* --- judging ---------------------------------------------------------------------------------- */

static point *point_at(bp_condition *condition, size_t index) {
    return &condition->points[(condition->first + index) % point_count];
}

/* Adds a value, and gives by how much it is above the lowest of the last `in_ns`. */
static double grow(bp_condition *condition, uint64_t now_ns, double value) {
    uint64_t part_ns = condition->in_ns / (point_count - 2);
    const point now = {now_ns, now_ns, value};
    point *newest = condition->count > 0 ? point_at(condition, condition->count - 1) : NULL;
    while (condition->count > 0 && now_ns - point_at(condition, 0)->taken_ns > condition->in_ns) {
        condition->first = (condition->first + 1) % point_count;
        condition->count--;
    }
    if (condition->count == 0 || now_ns - newest->began_ns >= part_ns) {
        if (condition->count == point_count) {
            condition->first = (condition->first + 1) % point_count;
            condition->count--;
        }
        *point_at(condition, condition->count++) = now;
    } else if (value <= newest->value) {
        newest->taken_ns = now_ns;
        newest->value = value;
    }
    double lowest = value;
    for (size_t i = 0; i < condition->count; i++) {
        double before = point_at(condition, i)->value;
        lowest = before < lowest ? before : lowest;
    }
    return value - lowest;
}

/* Since the last look, at most a quarter more than it was to be. */
static uint64_t count_time(const bp_condition *condition, const bp_condition_sample *sample) {
    uint64_t last_ns = condition->last.taken_ns;
    uint64_t passed_ns = sample->taken_ns - last_ns;
    uint64_t meant_ns = sample->due_ns > last_ns ? sample->due_ns - last_ns : 0;
    uint64_t most_ns = (meant_ns > look_min_ns ? meant_ns : look_min_ns) / 4 * 5;
    return passed_ns < most_ns ? passed_ns : most_ns;
}

static bool holds(const bp_condition *condition, const bp_condition_sample *sample, double value) {
    switch (condition->form) {
    case EQUALS:
        return value > 0;
    case LASTS:
        return value < idle_percent_max && !sample->is_active;
    case GROWS:
        return value > 0 && value >= condition->value;
    default:
        return condition->is_below ? value < condition->value : value > condition->value;
    }
}

static void describe(const bp_condition *condition, bp_condition_truth *ret_truth) {
    *ret_truth = (bp_condition_truth){.unit = condition->subject->unit,
                                      .grows = condition->form == GROWS,
                                      .lasted_ns = condition->form == GROWS ? condition->in_ns
                                                                            : condition->held_ns};
    memcpy(ret_truth->text, condition->text, sizeof ret_truth->text);
}

/* True if it is true now, from what was found at a sample. */
static bool judge(bp_condition *condition, bool is_now, bool is_of_interval) {
    if (!is_now) {
        condition->held_ns = 0;
        condition->did_hold = false;
        return false;
    }
    /* A value that is read at an instant says nothing of the time before the first reading. */
    if (condition->did_hold || is_of_interval) {
        condition->held_ns += condition->passed_ns;
    }
    condition->did_hold = true;
    return condition->held_ns >= condition->for_ns;
}

bool bp_condition_look(bp_condition *condition, const bp_condition_sample *sample,
                       bp_condition_truth *ret_truth) {
    double value = 0;
    if (condition->subject->measure == NULL ||
        (condition->has_looked && (sample->taken_ns < condition->last.taken_ns ||
                                   sample->taken_ns - condition->last.taken_ns < look_min_ns))) {
        condition->last.is_active |= sample->is_active;
        condition->last.is_shared |= sample->is_shared;
        return false;
    }
    bp_condition_sample now = *sample;
    now.is_active |= condition->last.is_active; /* of a sample that was passed over */
    now.is_shared |= condition->last.is_shared;
    condition->passed_ns = condition->has_looked ? count_time(condition, sample) : 0;
    bool is_known = condition->subject->measure(condition, &now, &value);
    if (is_known && condition->form == GROWS) {
        value = grow(condition, now.taken_ns, value);
    }
    bool was_true = condition->is_true;
    if (is_known) {
        condition->is_true = judge(condition, holds(condition, &now, value),
                                   condition->subject->measure == measure_cpu);
    }
    condition->last = now;
    condition->last.is_active = condition->last.is_shared = false;
    condition->has_looked = true;
    if (!condition->is_true || was_true) {
        return false;
    }
    describe(condition, ret_truth);
    ret_truth->value = value;
    return true;
}

bool bp_condition_look_at_line(bp_condition *condition, const char *line, size_t line_bytes,
                               uint64_t sequence, bp_condition_truth *ret_truth) {
    bp_match match;
    if (condition->form != MATCHES ||
        bp_matcher_match(condition->matcher, 0, (const unsigned char *)line, line_bytes, 0,
                         &match) != BP_MATCH_FOUND) {
        return false;
    }
    describe(condition, ret_truth);
    ret_truth->log_sequence = sequence;
    return true;
}

/* --- saying it -------------------------------------------------------------------------------- */

static void print_number(const bp_condition_truth *truth, char *out, size_t out_bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = truth->value;
    size_t unit = 0;
    if (truth->unit == percent) {
        (void)snprintf(out, out_bytes, "%.1f %% of a CPU", value);
    } else if (truth->unit == counted) {
        (void)snprintf(out, out_bytes, "%.0f", value);
    } else {
        for (; value >= 1024 && unit + 1 < sizeof units / sizeof units[0]; unit++) {
            value /= 1024;
        }
        (void)snprintf(out, out_bytes, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    }
}

void bp_condition_print_value(const bp_condition_truth *truth, char out[BP_CONDITION_VALUE_BYTES]) {
    char number[40] = "", lasted[32] = "";
    if (truth->log_sequence != 0) {
        (void)snprintf(out, BP_CONDITION_VALUE_BYTES, "log record %" PRIu64, truth->log_sequence);
        return;
    }
    if (truth->unit != NULL) {
        print_number(truth, number, sizeof number);
    }
    if (truth->lasted_ns > 0) {
        (void)snprintf(lasted, sizeof lasted, "%s%s %.1f s",
                       number[0] == '\0' || truth->grows ? "" : "; ",
                       truth->grows ? " more within" : "true for",
                       (double)truth->lasted_ns / (double)BP_NS_PER_SEC);
    }
    (void)snprintf(out, BP_CONDITION_VALUE_BYTES, "%s%s", number, lasted);
}

void bp_condition_add(bp_json *json, const bp_condition_truth *truth) {
    if (truth == NULL) {
        return;
    }
    char found[BP_CONDITION_VALUE_BYTES];
    bp_condition_print_value(truth, found);
    bp_json_object_begin(json, "condition");
    bp_json_add_text(json, "text", truth->text);
    bp_json_add_text(json, "found", found);
    if (truth->unit != NULL) {
        bp_json_add_number(json, "value", truth->value, truth->unit == percent ? 1 : 0);
        bp_json_add_text(json, "unit", truth->unit);
    }
    bp_model_add_known_ms(json, truth->grows ? "within_ms" : "lasted_ms", truth->lasted_ns > 0,
                          truth->lasted_ns);
    bp_model_add_known_uint(json, "log_seq", truth->log_sequence != 0, truth->log_sequence);
    bp_json_object_end(json);
}
