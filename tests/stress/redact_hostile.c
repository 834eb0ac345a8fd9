/*
 * Texts made to cost time or memory: lines without an end, of keywords, escapes, quotes, keys
 * without an end, bytes that are not UTF-8. Redaction takes them at a steady rate in bounded
 * memory, and the secret behind them does not come out. Usage: redact_hostile [MEGABYTES], of the
 * line; 24.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "redact/redactor.h"
#include "support/check.h"

enum { piece_bytes = 65521, memory_max_kb = 16 * 1024, default_mb = 24, others_mb = 4 };

/* Of CPU time, in a Debug build; up to 260 were measured. What grows with the square of a line has
 * thousands. */
enum { ns_per_byte_max = 2000 };

static const char secret[] = "hunter2hunter2";

/* What is repeated, between a beginning and an end. */
static const struct {
    const char *name, *begin, *repeated, *end;
    bp_redact_form form;
} texts[] = {
    {"one line", "", "x", "", BP_REDACT_TEXT},
    {"one string", "{\"m\":\"", "x", "\"", BP_REDACT_JSON},
    {"keywords", "", "password", "", BP_REDACT_TEXT},
    {"keys without values", "", "token=", "", BP_REDACT_TEXT},
    {"all keywords", "", "eyJ AKIA ghp_ Bearer cookie secret= ://:@ AIza ", "", BP_REDACT_TEXT},
    {"command lines", "",
     "mysql sshpass -p redis-cli x mongo -u a --user= --pass --key create user IDENTIFIED ", "",
     BP_REDACT_TEXT},
    {"arguments", "{\"a\":[\"\"", ",\"mysql\",\"-u\",\"--auth\"", "", BP_REDACT_JSON},
    {"almost tokens", "", "eyJaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "",
     BP_REDACT_TEXT},
    {"escapes", "{\"m\":\"", "\\u0070\\\\u0061", "\"", BP_REDACT_JSON},
    {"backslashes", "{\"m\":\"", "\\\\", "\"", BP_REDACT_JSON_LINES},
    {"quotes", "{\"m\":\"", "\\\"password\\\":\\\"\\\",", "\"", BP_REDACT_JSON},
    {"members", "{\"m\":\"\"", ",\"password\":0", "", BP_REDACT_JSON},
    {"depth", "{\"m\":", "[{\"password\":", "0", BP_REDACT_JSON},
    {"depth below names", "{\"m\":", "{\"password\":[{\"token\":[1,", "0", BP_REDACT_JSON},
    {"names", "{\"m\":[0", ",{\"password\":[\"true\"]}", "]", BP_REDACT_JSON},
    {"names in a text", "", "{\"token\":[\"a\"]}", "", BP_REDACT_TEXT},
    {"depth in a text", "", "{\"token\":[{\"secret\":\\\"", "", BP_REDACT_TEXT},
    {"a key without end", "-----BEGIN RSA PRIVATE KEY-----\n", "MIIEvQIBADAN\n", "\n",
     BP_REDACT_TEXT},
    {"keys without end", "", "-----BEGIN RSA PRIVATE KEY-----", "", BP_REDACT_TEXT},
    {"keys without end nor line", "", "-----BEGIN RSA PRIVATE KEY-----!", "", BP_REDACT_TEXT},
    {"keys in a string", "{\"m\":\"", "-----BEGIN PRIVATE KEY-----!", "\"", BP_REDACT_JSON_LINES},
    {"keys of two kinds", "", "-----BEGIN PRIVATE KEY-----!Private-Lines: 1!", "", BP_REDACT_TEXT},
    {"ends of tokens", "", "_mmk=", "", BP_REDACT_TEXT},
    {"begins of hashes", "", "$2b$11111111", "", BP_REDACT_TEXT},
    {"begins of tokens", "", "_eyJ", "", BP_REDACT_TEXT},
    {"values of many names",
     "{\"password secret token api_key pwd\":{\"password secret token api_key pwd\":"
     "{\"password secret token api_key pwd\":{\"password secret token api_key pwd\":"
     "{\"password secret token api_key pwd\":{\"password secret token api_key pwd\":[0",
     ",\"no\"", "]", BP_REDACT_JSON},
    {"keys of JSON alone", "{\"a\":{", "\" key=\":", "", BP_REDACT_JSON},
    {"headers in a header", "", "Authorization: Bearer abcdef0123.x-y~z:", "", BP_REDACT_TEXT},
    {"empty keys", "{\"a\":{", "\"\":", "", BP_REDACT_JSON},
    {"coloured headers", "", "\033[1mauthorization=8c1f0a77b2\033[0m", "", BP_REDACT_TEXT},
    {"cookies in a cookie", "", "set-cookie: SID=31d", "", BP_REDACT_TEXT},
    {"names in short lines", "", "password for\n\n\n\n\n\n\n\n", "", BP_REDACT_TEXT},
    {"digits", "", "4111111111111111", "", BP_REDACT_TEXT},
    {"no UTF-8", "", "\xFE\xFF\xFD\xC3\xE2\x82", "", BP_REDACT_TEXT},
    {"sequences", "", "\033[1m", "", BP_REDACT_TEXT},
    {"sequences without end", "", "\033[1;\033]8;;", "", BP_REDACT_TEXT},
    {"titles", "", "\033]password=x\a", "", BP_REDACT_TEXT},
    {"titles, printed", "", "\\e]^[]#033]\\x1b[", "", BP_REDACT_TEXT},
    {"struck over", "", "a\b", "", BP_REDACT_TEXT},
    {"backslashes in a text", "", "\\", "", BP_REDACT_TEXT},
    {"percents", "", "%", "", BP_REDACT_TEXT},
    {"percents of percents", "", "%2525", "", BP_REDACT_TEXT},
    {"references", "", "&amp;#&quot;&#x", "", BP_REDACT_TEXT},
    {"references in a string", "{\"m\":\"", "&amp;\\u001b]&", "\"", BP_REDACT_JSON},
    {"coloured keywords", "", "\033[1mpass\033[0mword%3D", "", BP_REDACT_TEXT},
    {"undecided matches", "", "secret='x12secret=\"x12", "", BP_REDACT_TEXT},
    {"no UTF-8 in a string", "{\"m\":\"", "\xFE\xFF\xFD\xC3", "\"", BP_REDACT_JSON},
};

/* What comes out is only searched. */
struct searched {
    char tail[sizeof secret + piece_bytes];
    size_t tail_bytes;
    uint64_t byte_count;
    bool has_secret;
};

static bugpack_status search(void *context, const void *bytes, size_t byte_count) {
    struct searched *searched = context;
    for (const char *at = bytes, *end = at + byte_count; at < end;) {
        size_t count = (size_t)(end - at) < piece_bytes ? (size_t)(end - at) : piece_bytes;
        memcpy(searched->tail + searched->tail_bytes, at, count);
        size_t size = searched->tail_bytes + count;
        searched->has_secret =
            searched->has_secret || memmem(searched->tail, size, secret, strlen(secret)) != NULL;
        searched->tail_bytes = size < strlen(secret) ? size : strlen(secret);
        memmove(searched->tail, searched->tail + size - searched->tail_bytes, searched->tail_bytes);
        at += count;
    }
    searched->byte_count += byte_count;
    return BUGPACK_OK;
}

static double cpu_seconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static long peak_kb(void) {
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* A piece of the line: the text again and again. Returns its size, a multiple of the text's. */
static size_t fill(const char *repeated, char *piece) {
    size_t length = strlen(repeated), size = 0;
    for (; size + length <= piece_bytes; size += length) {
        memcpy(piece + size, repeated, length);
    }
    return size;
}

static void write_text(bp_redactor *redactor, const char *text, struct searched *out) {
    CHECK(bp_redactor_write(redactor, text, strlen(text), search, out) == BUGPACK_OK);
}

static void try_text(bp_redactor *redactor, size_t i, uint64_t byte_count) {
    static char piece[piece_bytes];
    static struct searched out;
    size_t size = fill(texts[i].repeated, piece);
    double began = cpu_seconds();
    long before_kb = peak_kb();
    out = (struct searched){.byte_count = 0};
    bp_redactor_begin(redactor, texts[i].form);
    write_text(redactor, texts[i].begin, &out);
    for (uint64_t at = 0; at < byte_count; at += size) {
        CHECK(bp_redactor_write(redactor, piece, size, search, &out) == BUGPACK_OK);
    }
    write_text(redactor, texts[i].end, &out);
    write_text(redactor,
               texts[i].form == BP_REDACT_TEXT ? " password=hunter2hunter2 \nnext\n"
                                               : ",\"password\":\"hunter2hunter2\"}\n",
               &out);
    CHECK(bp_redactor_write(redactor, NULL, 0, search, &out) == BUGPACK_OK);
    double seconds = cpu_seconds() - began;
    (void)printf("%-22s %5llu MB %7.2f s %6.1f ns a byte %6ld KB more\n", texts[i].name,
                 (unsigned long long)(byte_count >> 20), seconds,
                 seconds * 1e9 / (double)byte_count, peak_kb() - before_kb);
    (void)fflush(stdout);
    CHECK(!out.has_secret);
    CHECK(out.byte_count > 0);
    CHECK(peak_kb() - before_kb < memory_max_kb);
    CHECK(seconds < ns_per_byte_max * 1e-9 * (double)byte_count + 1);
}

int main(int argument_count, char **arguments) {
    bp_rule_set *set = NULL;
    bool is_given = argument_count > 1;
    uint64_t given_mb = is_given ? strtoull(arguments[1], NULL, 10) : default_mb;
    CHECK(bp_rule_set_of_texts("rules", NULL, 0, &set, NULL) == BUGPACK_OK);
    bp_redactor *redactor = bp_redactor_new(set);
    CHECK(redactor != NULL);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        try_text(redactor, i, (is_given || i < 2 ? given_mb : others_mb) << 20);
    }
    bp_redactor_free(redactor);
    bp_rule_set_drop(set);
    return 0;
}
