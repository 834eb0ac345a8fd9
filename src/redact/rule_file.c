#include "redact/rule_file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/status.h"

/* Made of rules.conf by CMake. */
extern const unsigned char bp_builtin_rules[];
extern const size_t bp_builtin_rules_bytes;

struct bp_rule_let {
    char *name, *text;
    bool is_group; /* compiled once in a pattern, which calls it */
};

struct parser {
    bp_rule_list *list;
    const char *name;
    unsigned line;
    bp_rule rule; /* being read; its id is empty before the first */
    bp_rule_example *example;
    void *context;
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

static bugpack_status set_category(struct parser *parser, const char *value) {
    if (!is_id(value)) {
        return refuse(parser, "a category has up to 31 lower case letters, digits and '-'");
    }
    memcpy(parser->rule.category, value, strlen(value) + 1);
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
        return refuse(parser,
                      "the only value of \"default\" is \"off\", and of \"only\" \"traffic\"");
    }
    *flag = true;
    return BUGPACK_OK;
}

static bugpack_status set_check(struct parser *parser, const char *name) {
    parser->rule.check = bp_check_find(name);
    return parser->rule.check != NULL ? BUGPACK_OK : refuse(parser, "there is no such check");
}

/* Turns rules on that are off by default. */
static bugpack_status use_rules(const struct parser *parser, const char *ids) {
    while (*(ids += strspn(ids, " ")) != '\0') {
        size_t length = strcspn(ids, " "), i = 0;
        bp_rule_list *list = parser->list;
        if (length == strlen("base64") && strncmp(ids, "base64", length) == 0) {
            list->reads_base64 = true;
            ids += length;
            continue;
        }
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
    if (strcmp(key, "match") == 0 || strcmp(key, "not") == 0) {
        if (parser->example != NULL) {
            parser->example(parser->context, rule, key[0] == 'm', value);
        }
        return BUGPACK_OK;
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
    return strcmp(key, "keyword") == 0    ? set_text(parser, &rule->keywords, value)
           : strcmp(key, "until") == 0    ? set_text(parser, &rule->until, value)
           : strcmp(key, "category") == 0 ? set_category(parser, value)
           : strcmp(key, "default") == 0  ? set_flag(parser, &rule->is_off, value, "off")
           : strcmp(key, "only") == 0     ? set_flag(parser, &rule->is_of_traffic, value, "traffic")
           : strcmp(key, "check") == 0    ? set_check(parser, value)
           : strcmp(key, "source") == 0   ? BUGPACK_OK
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
                                  size_t byte_count, bp_rule_example *example, void *context,
                                  bugpack_error *error) {
    struct parser parser = {
        .list = list, .name = name, .example = example, .context = context, .error = error};
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

bugpack_status bp_rule_list_add_builtin(bp_rule_list *list, bp_rule_example *example, void *context,
                                        bugpack_error *error) {
    return bp_rule_list_parse(list, "the built-in rules", (const char *)bp_builtin_rules,
                              bp_builtin_rules_bytes, example, context, error);
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
