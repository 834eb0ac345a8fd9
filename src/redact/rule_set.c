#define PCRE2_CODE_UNIT_WIDTH 8
#include "redact/rule_set.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "redact/codes.h"

/* What one match may cost, in PCRE2's units: about a millisecond with JIT. */
enum { match_limit = 100000, depth_limit = 10000, heap_limit_kib = 4096 };
enum { jit_stack_min = 32 * 1024, jit_stack_max = 512 * 1024 };

/* What the compiler gets when there is no memory; it takes some 100 KiB for a rule. Never touched,
 * it is not resident. */
enum { reserve_bytes = 1024 * 1024, alignment = 16 };

/* What a log record says that is not a line by itself (docs/REPORT_FORMAT.md). */
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
    free(set->reserve);
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
    }
    set->codes[index] = pcre2_compile((PCRE2_SPTR)rule->pattern, PCRE2_ZERO_TERMINATED, options,
                                      &code, &offset, context);
    if (set->codes[index] == NULL) {
        PCRE2_UCHAR message[128] = "";
        if (code == PCRE2_ERROR_HEAP_FAILED) {
            return bp_fail_memory(error, "compile a redaction rule");
        }
        (void)pcre2_get_error_message(code, message, sizeof message);
        return bp_fail(error, BUGPACK_ERR_INVALID, "redaction rule \"%s\", at byte %zu: %s",
                       rule->id, offset, (const char *)message);
    }
    /* Where no page may be made executable, this fails and PCRE2 interprets. */
    (void)pcre2_jit_compile(set->codes[index], PCRE2_JIT_COMPLETE);
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
    set->reserve = malloc(reserve_bytes);
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
        free(set->reserve);
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
    bugpack_status status = set->codes != NULL && set->keywords != NULL
                                ? BUGPACK_OK
                                : bp_fail_memory(error, "compile redaction rules");
    status = status == BUGPACK_OK ? compile_all(set, error) : status;
    if (status == BUGPACK_OK) {
        status = bp_keywords_add(set->keywords, bp_code_keywords, BP_KEYWORD_NO_OWNER, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_keywords_add(set->keywords, part_keywords, BP_KEYWORD_NO_OWNER, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_keywords_compile(set->keywords, error);
    }
    if (status != BUGPACK_OK) {
        bp_rule_set_drop(set);
        return status;
    }
    *ret_set = set;
    return BUGPACK_OK;
}

size_t bp_rule_set_count(const bp_rule_set *set) {
    return set->list.count;
}

const bp_rule *bp_rule_set_rule(const bp_rule_set *set, size_t index) {
    return &set->list.rules[index];
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

bool bp_matcher_is_undecided(bp_matcher *matcher, size_t rule, const unsigned char *text,
                             size_t byte_count, size_t offset, size_t *ret_from,
                             bool *ret_is_whole) {
    size_t before = matcher->set->list.rules[rule].before_bytes;
    size_t from = offset > before ? offset - before : 0;
    const pcre2_code *code = matcher->set->codes[rule];
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
    size_t from = offset > before ? offset - before : 0;
    int result = pcre2_match(matcher->set->codes[rule], text, byte_count, from, PCRE2_NOTEMPTY,
                             matcher->data, matcher->context);
    if (result == PCRE2_ERROR_NOMATCH) {
        return BP_MATCH_NONE;
    }
    if (result < 0) {
        return BP_MATCH_GAVE_UP;
    }
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(matcher->data);
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
