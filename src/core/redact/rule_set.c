#define PCRE2_CODE_UNIT_WIDTH 8
#include "redact/rule_set.h"

#include <ctype.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/pages.h"
#include "base/status.h"
#include "redact/codes.h"

struct bp_rule_let {
    char *name, *text;
    bool is_group; /* compiled once in a pattern, which calls it */
};

struct parser {
    bp_rule_list *list;
    const char *name;
    unsigned line;
    bp_rule rule; /* being read; its id is empty before the first */
    bugpack_error *error;
};

static bugpack_status refuse(const struct parser *parser, const char *why) {
    return bp_fail(parser->error, BUGPACK_ERR_INVALID, "%s, line %u: %s", parser->name,
                   parser->line, why);
}

static void release_rule(bp_rule *rule) {
    free(rule->keywords);
    free(rule->pattern);
    free(rule->until);
    *rule = (bp_rule){.id = ""};
}

static bool is_id(const char *text) {
    size_t length = strlen(text);
    return length > 0 && length < BP_RULE_ID_BYTES &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

static const struct bp_rule_let *find_let(const bp_rule_list *list, const char *name,
                                          size_t length) {
    for (size_t i = list->let_count; i-- > 0;) {
        if (strncmp(list->lets[i].name, name, length) == 0 && list->lets[i].name[length] == '\0') {
            return &list->lets[i];
        }
    }
    return NULL;
}

/* Defines the groups that a pattern calls, those that a group calls too: they are defined above it.
 */
static void define_groups(const bp_rule_list *list, bp_buffer *out) {
    char call[BP_RULE_ID_BYTES + 8];
    for (size_t i = list->let_count; i-- > 0;) {
        const struct bp_rule_let *group = &list->lets[i];
        (void)snprintf(call, sizeof call, "(?&%s)", group->name);
        if (group->is_group && strstr(bp_buffer_text(out), call) != NULL &&
            find_let(list, group->name, strlen(group->name)) == group) {
            (void)bp_buffer_printf(out, "(?(DEFINE)(?<%s>%s))", group->name, group->text);
        }
    }
}

/* Copies a pattern with what it includes. Texts are expanded where they are defined, so that one
 * pass does. */
static bugpack_status expand(const struct parser *parser, const char *text, bool is_pattern,
                             char **ret_text) {
    bp_buffer out;
    const char *open;
    bp_buffer_init(&out, BP_RULE_PATTERN_MAX);
    while ((open = strstr(text, "%{")) != NULL) {
        const char *name = open + 2, *end = strchr(name, '}');
        const struct bp_rule_let *included =
            end != NULL ? find_let(parser->list, name, (size_t)(end - name)) : NULL;
        if (included == NULL) {
            bp_buffer_release(&out);
            return refuse(parser, "%{...} names nothing that is defined above");
        }
        (void)bp_buffer_append(&out, text, (size_t)(open - text));
        if (included->is_group) {
            (void)bp_buffer_printf(&out, "(?&%s)", included->name);
        } else {
            (void)bp_buffer_append_text(&out, included->text);
        }
        text = end + 1;
    }
    (void)bp_buffer_append_text(&out, text);
    if (is_pattern) {
        define_groups(parser->list, &out);
    }
    char *copy = out.status == BUGPACK_OK ? strdup(bp_buffer_text(&out)) : NULL;
    bugpack_status status = out.status;
    bp_buffer_release(&out);
    if (status == BUGPACK_ERR_LIMIT) {
        return refuse(parser, "the pattern is too long");
    }
    if (copy == NULL) {
        return bp_fail_memory(parser->error, "read redaction rules");
    }
    *ret_text = copy;
    return BUGPACK_OK;
}

static bugpack_status set_text(const struct parser *parser, char **text, const char *value) {
    if (*text != NULL || *value == '\0') {
        return refuse(parser, "this key was there before, or has no value");
    }
    *text = strdup(value);
    return *text != NULL ? BUGPACK_OK : bp_fail_memory(parser->error, "read redaction rules");
}

static bugpack_status add_let(struct parser *parser, const char *name, const char *value,
                              bool is_group) {
    bp_rule_list *list = parser->list;
    char *text = NULL;
    if (is_group && !is_id(name)) {
        return refuse(parser, "a group is called as a rule is");
    }
    bugpack_status status = expand(parser, value, false, &text);
    if (status != BUGPACK_OK) {
        return status;
    }
    char *own_name = strdup(name);
    if (own_name == NULL || !bp_array_reserve(&list->lets, list->let_count, &list->let_capacity)) {
        free(own_name);
        free(text);
        return bp_fail_memory(parser->error, "read redaction rules");
    }
    list->lets[list->let_count++] =
        (struct bp_rule_let){.name = own_name, .text = text, .is_group = is_group};
    return BUGPACK_OK;
}

/* The rule is complete. */
static bugpack_status end_rule(struct parser *parser) {
    bp_rule_list *list = parser->list;
    if (parser->rule.id[0] == '\0') {
        return BUGPACK_OK;
    }
    if (parser->rule.pattern == NULL) {
        return refuse(parser, "the rule above has no pattern");
    }
    if (parser->rule.before_bytes > 0 && parser->rule.keywords == NULL) {
        return refuse(parser, "the rule above has \"before\" and no keyword");
    }
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->rules[i].id, parser->rule.id) == 0) {
            release_rule(&list->rules[i]);
            list->rules[i] = parser->rule;
            parser->rule = (bp_rule){.id = ""};
            return BUGPACK_OK;
        }
    }
    if (list->count == BP_RULE_MAX_COUNT) {
        return bp_fail(parser->error, BUGPACK_ERR_LIMIT, "there are more than %d redaction rules",
                       BP_RULE_MAX_COUNT);
    }
    if (!bp_array_reserve(&list->rules, list->count, &list->capacity)) {
        return bp_fail_memory(parser->error, "read redaction rules");
    }
    list->rules[list->count++] = parser->rule;
    parser->rule = (bp_rule){.id = ""};
    return BUGPACK_OK;
}

static bugpack_status begin_rule(struct parser *parser, char *line) {
    size_t length = strlen(line);
    bugpack_status status = end_rule(parser);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (line[length - 1] != ']') {
        return refuse(parser, "expected [id]");
    }
    line[length - 1] = '\0';
    if (!is_id(line + 1)) {
        return refuse(parser, "an id has up to 31 lower case letters, digits and '-'");
    }
    memcpy(parser->rule.id, line + 1, length - 1);
    return BUGPACK_OK;
}

static bugpack_status set_number(const struct parser *parser, unsigned *ret_number,
                                 const char *value, unsigned long max, const char *why) {
    char *end = NULL;
    unsigned long number = strtoul(value, &end, 10);
    if (!isdigit((unsigned char)*value) || *end != '\0' || number == 0 || number > max) {
        return refuse(parser, why);
    }
    *ret_number = (unsigned)number;
    return BUGPACK_OK;
}

static bugpack_status set_flag(const struct parser *parser, bool *flag, const char *value,
                               const char *only) {
    if (strcmp(value, only) != 0) {
        return refuse(parser, "the only value of \"default\" is \"off\", and of "
                              "\"only\" \"traffic\"");
    }
    *flag = true;
    return BUGPACK_OK;
}

/* Turns rules on that are off by default. */
static bugpack_status use_rules(const struct parser *parser, const char *ids) {
    while (*(ids += strspn(ids, " ")) != '\0') {
        size_t length = strcspn(ids, " "), i = 0;
        bp_rule_list *list = parser->list;
        while (i < list->count && (strncmp(list->rules[i].id, ids, length) != 0 ||
                                   list->rules[i].id[length] != '\0')) {
            i++;
        }
        if (i == list->count) {
            return refuse(parser, "\"use\" names a rule that is not there");
        }
        list->rules[i].is_off = false;
        ids += length;
    }
    return BUGPACK_OK;
}

static bugpack_status set(struct parser *parser, const char *key, const char *value) {
    static const char *const for_people[] = {"category", "source", "match", "not", NULL};
    bp_rule *rule = &parser->rule;
    bool is_group = strncmp(key, "group ", 6) == 0;
    if ((is_group || strncmp(key, "let ", 4) == 0) && rule->id[0] == '\0') {
        return add_let(parser, strchr(key, ' ') + 1, value, is_group);
    }
    if (strcmp(key, "use") == 0 && rule->id[0] == '\0') {
        return use_rules(parser, value);
    }
    if (rule->id[0] == '\0') {
        return refuse(parser, "expected [id]");
    }
    if (strcmp(key, "pattern") == 0) {
        return rule->pattern != NULL ? refuse(parser, "a rule has one pattern")
                                     : expand(parser, value, true, &rule->pattern);
    }
    if (strcmp(key, "before") == 0) {
        return set_number(parser, &rule->before_bytes, value, 256, "\"before\" is 1 to 256");
    }
    if (strcmp(key, "lines") == 0) {
        return set_number(parser, &rule->line_count, value, 16, "\"lines\" is 1 to 16");
    }
    if (strcmp(key, "keyword") == 0) {
        return set_text(parser, &rule->keywords, value);
    }
    if (strcmp(key, "until") == 0) {
        return set_text(parser, &rule->until, value);
    }
    if (strcmp(key, "default") == 0) {
        return set_flag(parser, &rule->is_off, value, "off");
    }
    if (strcmp(key, "only") == 0) {
        return set_flag(parser, &rule->is_of_traffic, value, "traffic");
    }
    if (strcmp(key, "check") == 0) {
        rule->check = bp_check_find(value);
        return rule->check != NULL ? BUGPACK_OK : refuse(parser, "there is no such check");
    }
    return bp_array_has_text(for_people, key) ? BUGPACK_OK
                                              : refuse(parser, "this key is not known");
}

static bugpack_status parse_line(struct parser *parser, char *line) {
    size_t length = strlen(line);
    while (length > 0 && isspace((unsigned char)line[length - 1])) {
        line[--length] = '\0';
    }
    if (length == 0 || line[0] == '#') {
        return BUGPACK_OK;
    }
    char *equals = line[0] == '[' ? NULL : strstr(line, " =");
    if (line[0] == '[') {
        return begin_rule(parser, line);
    }
    if (equals == NULL) {
        return refuse(parser, "expected \"key = value\"");
    }
    *equals = '\0';
    return set(parser, line, equals + 2 + strspn(equals + 2, " "));
}

bugpack_status bp_rule_list_parse(bp_rule_list *list, const char *name, const char *text,
                                  size_t byte_count, bugpack_error *error) {
    struct parser parser = {.list = list, .name = name, .error = error};
    if (byte_count > BP_RULE_TEXT_MAX || memchr(text, '\0', byte_count) != NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "%s: longer than 1 MiB, or not a text", name);
    }
    char *copy = strndup(text, byte_count);
    if (copy == NULL) {
        return bp_fail_memory(error, "read redaction rules");
    }
    bugpack_status status = BUGPACK_OK;
    for (char *line = copy, *next = copy; status == BUGPACK_OK && line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL) {
            *next++ = '\0';
        }
        parser.line++;
        status = parse_line(&parser, line);
    }
    status = status == BUGPACK_OK ? end_rule(&parser) : status;
    release_rule(&parser.rule);
    free(copy);
    return status;
}

bugpack_status bp_rule_list_add_builtin(bp_rule_list *list, bugpack_error *error) {
    return bp_rule_list_parse(list, "the built-in rules", (const char *)bp_builtin_rules,
                              bp_builtin_rules_bytes, error);
}

void bp_rule_list_release(bp_rule_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        release_rule(&list->rules[i]);
    }
    for (size_t i = 0; i < list->let_count; i++) {
        free(list->lets[i].name);
        free(list->lets[i].text);
    }
    free(list->rules);
    free(list->lets);
    *list = (bp_rule_list){.rules = NULL};
}

/* The limit of one match, in PCRE2's units: about a millisecond with JIT. */
enum { match_limit = 100000, depth_limit = 10000, heap_limit_kib = 4096 };
enum { jit_stack_min = 32 * 1024, jit_stack_max = 512 * 1024 };

/* Memory for the compiler when there is no other; a rule takes some 100 KiB. Until it is touched,
 * it is not resident. */
enum { reserve_bytes = 1024 * 1024, alignment = 16 };

/* The keys of a log record whose text is not a line by itself (docs/REPORT_FORMAT.md). */
static const char part_keywords[] = "\"truncated\":true \"continues\":true \"unfinished\":true";

struct bp_matcher {
    const bp_rule_set *set;
    pcre2_match_context *context;
    pcre2_match_data *data;
    pcre2_jit_stack *stack;
};

/*
 * The JIT compiler of PCRE2 10.42 uses some memory without asking whether it got any. So it always
 * gets some while a set is compiled, and the set then fails.
 */
static void *allocate(size_t byte_count, void *context) {
    bp_rule_set *set = context;
    void *made = malloc(byte_count);
    if (made == NULL && set->reserve != NULL && byte_count < reserve_bytes - set->reserve_used) {
        made = set->reserve + set->reserve_used;
        set->reserve_used += (byte_count + alignment - 1) / alignment * alignment;
    }
    return made;
}

static void release(void *bytes, void *context) {
    const bp_rule_set *set = context;
    if (set->reserve == NULL || (uintptr_t)bytes - (uintptr_t)set->reserve >= reserve_bytes) {
        free(bytes);
    }
}

bp_rule_set *bp_rule_set_retain(bp_rule_set *set) {
    (void)atomic_fetch_add_explicit(&set->reference_count, 1, memory_order_relaxed);
    return set;
}

void bp_rule_set_drop(bp_rule_set *set) {
    if (set == NULL ||
        atomic_fetch_sub_explicit(&set->reference_count, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; set->codes != NULL && i < set->list.count; i++) {
        pcre2_code_free(set->codes[i]);
    }
    free(set->codes);
    bp_pages_free(set->reserve);
    bp_keywords_free(set->keywords);
    bp_rule_list_release(&set->list);
    free(set);
}

static bugpack_status compile(bp_rule_set *set, size_t index, pcre2_compile_context *context,
                              bugpack_error *error) {
    const bp_rule *rule = &set->list.rules[index];
    int code = 0;
    PCRE2_SIZE offset = 0;
    /* Bytes, not characters: a text may be invalid UTF-8. */
    uint32_t options = PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C;
    if (rule->keywords != NULL && rule->before_bytes == 0) {
        /* Else PCRE2 looks up to 5,000 bytes ahead for a byte that each match has to contain. */
        options |= PCRE2_ANCHORED | PCRE2_NO_START_OPTIMIZE;
    } else if (rule->keywords != NULL) {
        options |= PCRE2_USE_OFFSET_LIMIT; /* or it looks for a match to the end of the text */
    }
    set->codes[index] = pcre2_compile((PCRE2_SPTR)rule->pattern, PCRE2_ZERO_TERMINATED, options,
                                      &code, &offset, context);
    if (set->codes[index] == NULL) {
        PCRE2_UCHAR message[128] = "";
        if (code == PCRE2_ERROR_HEAP_FAILED) {
            return bp_fail_memory(error, "compile a redaction rule");
        }
        (void)pcre2_get_error_message(code, message, sizeof message);
        return rule->id[0] != '\0'
                   ? bp_fail(error, BUGPACK_ERR_INVALID, "redaction rule \"%s\", at byte %zu: %s",
                             rule->id, offset, (const char *)message)
                   : bp_fail(error, BUGPACK_ERR_INVALID, "at byte %zu: %s", offset,
                             (const char *)message);
    }
#ifndef BP_WITHOUT_PCRE2_JIT
    /* Where no page may be made executable, this fails and PCRE2 interprets. */
    (void)pcre2_jit_compile(set->codes[index], PCRE2_JIT_COMPLETE);
#endif
    if (set->reserve_used > 0) {
        return bp_fail_memory(error, "compile a redaction rule");
    }
    if (rule->keywords == NULL) {
        set->searches_all = true;
        return BUGPACK_OK;
    }
    return bp_keywords_add(set->keywords, rule->keywords, (uint16_t)index, error);
}

static bugpack_status compile_all(bp_rule_set *set, bugpack_error *error) {
    set->reserve = bp_pages_new(reserve_bytes);
    pcre2_general_context *general = pcre2_general_context_create(allocate, release, set);
    pcre2_compile_context *context = general != NULL ? pcre2_compile_context_create(general) : NULL;
    bugpack_status status = set->reserve != NULL && context != NULL
                                ? BUGPACK_OK
                                : bp_fail_memory(error, "compile redaction rules");
    for (size_t i = 0; status == BUGPACK_OK && i < set->list.count; i++) {
        if (!set->list.rules[i].is_off) {
            status = compile(set, i, context, error);
        }
    }
    pcre2_compile_context_free(context);
    pcre2_general_context_free(general);
    if (status == BUGPACK_OK) { /* else some of it is in use */
        bp_pages_free(set->reserve);
        set->reserve = NULL;
    }
    return status;
}

bugpack_status bp_rule_set_new(bp_rule_list *list, bp_rule_set **ret_set, bugpack_error *error) {
    bp_rule_set *set = calloc(1, sizeof *set);
    if (set == NULL) {
        bp_rule_list_release(list);
        return bp_fail_memory(error, "compile redaction rules");
    }
    atomic_init(&set->reference_count, 1);
    set->list = *list;
    *list = (bp_rule_list){.rules = NULL};
    set->codes = calloc(set->list.count + 1, sizeof *set->codes);
    set->keywords = bp_keywords_new();
    static const char *const built_in[] = {bp_code_keywords, part_keywords};
    bugpack_status status = set->codes != NULL && set->keywords != NULL
                                ? compile_all(set, error)
                                : bp_fail_memory(error, "compile redaction rules");
    for (size_t i = 0; status == BUGPACK_OK && i < 2; i++) {
        status = bp_keywords_add(set->keywords, built_in[i], BP_KEYWORD_NO_OWNER, error);
    }
    status = status == BUGPACK_OK ? bp_keywords_compile(set->keywords, error) : status;
    if (status != BUGPACK_OK) {
        bp_rule_set_drop(set);
        return status;
    }
    *ret_set = set;
    return BUGPACK_OK;
}

bugpack_status bp_rule_set_of_texts(const char *name, char *const *texts, size_t count,
                                    bp_rule_set **ret_set, bugpack_error *error) {
    bp_rule_list list = {.rules = NULL};
    bugpack_status status = bp_rule_list_add_builtin(&list, error);
    for (size_t i = 0; status == BUGPACK_OK && i < count; i++) {
        status = bp_rule_list_parse(&list, name, texts[i], strlen(texts[i]), error);
    }
    if (status == BUGPACK_OK) {
        return bp_rule_set_new(&list, ret_set, error);
    }
    bp_rule_list_release(&list);
    return status;
}

bp_matcher *bp_matcher_new(const bp_rule_set *set) {
    bp_matcher *matcher = calloc(1, sizeof *matcher);
    if (matcher == NULL) {
        return NULL;
    }
    matcher->set = set;
    matcher->context = pcre2_match_context_create(NULL);
    matcher->data = pcre2_match_data_create(2, NULL);
    if (matcher->context == NULL || matcher->data == NULL) {
        bp_matcher_free(matcher);
        return NULL;
    }
    (void)pcre2_set_match_limit(matcher->context, match_limit);
    (void)pcre2_set_depth_limit(matcher->context, depth_limit);
    (void)pcre2_set_heap_limit(matcher->context, heap_limit_kib);
    /* Without it JIT has 32 KiB of the thread's stack, which does for most. */
    matcher->stack = pcre2_jit_stack_create(jit_stack_min, jit_stack_max, NULL);
    if (matcher->stack != NULL) {
        pcre2_jit_stack_assign(matcher->context, NULL, matcher->stack);
    }
    return matcher;
}

void bp_matcher_free(bp_matcher *matcher) {
    if (matcher != NULL) {
        pcre2_match_context_free(matcher->context);
        pcre2_match_data_free(matcher->data);
        pcre2_jit_stack_free(matcher->stack);
        free(matcher);
    }
}

/* Where a match may begin whose keyword is at `offset`; it begins there at the latest. */
static size_t find_from(bp_matcher *matcher, size_t rule, size_t offset) {
    size_t before = matcher->set->list.rules[rule].before_bytes;
    (void)pcre2_set_offset_limit(matcher->context, before > 0 ? offset : PCRE2_UNSET);
    return offset > before ? offset - before : 0;
}

bool bp_matcher_is_undecided(bp_matcher *matcher, size_t rule, const unsigned char *text,
                             size_t byte_count, size_t offset, size_t *ret_from,
                             bool *ret_is_whole) {
    const pcre2_code *code = matcher->set->codes[rule];
    size_t from = find_from(matcher, rule, offset);
    uint32_t group_count = 0;
    /* By the interpreter: it is rare, and JIT would have to compile each pattern once more. */
    int result = pcre2_match(code, text, byte_count, from,
                             PCRE2_NOTEMPTY | PCRE2_PARTIAL_HARD | PCRE2_NO_JIT, matcher->data,
                             matcher->context);
    if (result >= 0 || result == PCRE2_ERROR_NOMATCH) {
        return false;
    }
    (void)pcre2_pattern_info(code, PCRE2_INFO_CAPTURECOUNT, &group_count);
    *ret_from = result == PCRE2_ERROR_PARTIAL ? pcre2_get_ovector_pointer(matcher->data)[0] : from;
    *ret_is_whole = group_count == 0;
    return true;
}

bp_match_result bp_matcher_match(bp_matcher *matcher, size_t rule, const unsigned char *text,
                                 size_t byte_count, size_t offset, bp_match *ret_match) {
    size_t before = matcher->set->list.rules[rule].before_bytes;
    size_t from = find_from(matcher, rule, offset);
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(matcher->data);
    int result;
    do { /* until one that does not end before its keyword */
        result = pcre2_match(matcher->set->codes[rule], text, byte_count, from, PCRE2_NOTEMPTY,
                             matcher->data, matcher->context);
        if (result == PCRE2_ERROR_NOMATCH) {
            return BP_MATCH_NONE;
        }
        if (result < 0) {
            return BP_MATCH_GAVE_UP;
        }
        from = ends[1] > from ? ends[1] : from + 1;
    } while (before > 0 && ends[1] <= offset && from <= offset);
    /* With \K a match may begin behind its end. */
    if (ends[0] > ends[1] || (before > 0 && (ends[0] > offset || ends[1] <= offset))) {
        return BP_MATCH_NONE;
    }
    bool has_group = (result == 0 || result > 1) && ends[2] != PCRE2_UNSET && ends[2] <= ends[3];
    *ret_match = (bp_match){.from = ends[0],
                            .to = ends[1],
                            .secret_from = has_group ? ends[2] : ends[0],
                            .secret_to = has_group ? ends[3] : ends[1]};
    return BP_MATCH_FOUND;
}
