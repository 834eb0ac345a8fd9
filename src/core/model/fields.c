#include "model/fields.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "model/metadata.h"

void bp_model_add_time(bp_json *json, const char *key, uint64_t wall_ns) {
    char text[BP_CLOCK_ISO_BYTES];
    bp_clock_format_iso(wall_ns, text);
    bp_json_add_text(json, key, wall_ns != 0 ? text : NULL);
}

void bp_model_add_ms(bp_json *json, const char *key, uint64_t duration_ns) {
    bp_json_add_number(json, key, (double)duration_ns / (double)BP_NS_PER_MS, 3);
}

void bp_model_add_known_ms(bp_json *json, const char *key, bool is_known, uint64_t duration_ns) {
    if (is_known) {
        bp_model_add_ms(json, key, duration_ns);
    }
}

void bp_model_add_hex(bp_json *json, const char *key, uint64_t value) {
    char text[24];
    (void)snprintf(text, sizeof text, "0x%" PRIx64, value);
    bp_json_add_text(json, key, text);
}

void bp_model_add_known(bp_json *json, const char *key, bp_known_uint number) {
    bp_model_add_known_uint(json, key, number.known, number.value);
}

void bp_model_add_known_uint(bp_json *json, const char *key, bool is_known, uint64_t value) {
    if (is_known) {
        bp_json_add_uint(json, key, value);
    }
}

void bp_model_add_switches(bp_json *json, bool are_known, uint64_t voluntary,
                           uint64_t involuntary) {
    bp_model_add_known_uint(json, "voluntary_switches", are_known, voluntary);
    bp_model_add_known_uint(json, "involuntary_switches", are_known, involuntary);
}

void bp_model_add_flag(bp_json *json, const char *key, bool is_set) {
    if (is_set) {
        bp_json_add_bool(json, key, true);
    }
}

void bp_model_add_limit(bp_json *json, const char *key, bool is_unlimited, uint64_t value) {
    if (is_unlimited) {
        bp_json_add_null(json, key);
    } else {
        bp_json_add_uint(json, key, value);
    }
}

void bp_model_add_name(bp_json *json, const char *key, const char *name, size_t capacity) {
    bp_json_add_bytes(json, key, name, strnlen(name, capacity));
}

void bp_model_add_known_text(bp_json *json, const char *key, const char *text) {
    bp_json_add_text(json, key, text != NULL && text[0] != '\0' ? text : NULL);
}

void bp_model_add_command_line(bp_json *json, const char *line, size_t line_bytes) {
    if (line_bytes == 0) {
        return;
    }
    bp_json_array_begin(json, "command_line");
    for (size_t at = 0, length; at < line_bytes; at += length + 1) {
        length = strnlen(line + at, line_bytes - at);
        bp_json_add_bytes(json, NULL, line + at, length);
    }
    bp_json_array_end(json);
}

bugpack_status bp_model_print_tree(const void *items, size_t item_bytes, size_t count,
                                   bp_model_add_item *add, bp_model_add_item *add_more,
                                   const void *more, bp_buffer *out, bugpack_error *error) {
    bp_json json;
    bp_json_begin(&json, out);
    bp_json_add_int(&json, "schema", BP_SCHEMA_NUMBER);
    add(items, &json);
    if (add_more != NULL) {
        add_more(more, &json);
    }
    if (count > 1) {
        bp_json_array_begin(&json, "descendants");
        for (size_t i = 1; i < count; i++) {
            bp_json_object_begin(&json, NULL);
            add((const char *)items + i * item_bytes, &json);
            bp_json_object_end(&json);
        }
        bp_json_array_end(&json);
    }
    return bp_json_finish(&json, error);
}

void bp_model_add_app(bp_json *json, const char *name, const char *version, const char *build_id) {
    bp_json_object_begin(json, "app");
    bp_model_add_known_text(json, "name", name);
    bp_model_add_known_text(json, "version", version);
    bp_model_add_known_text(json, "build_id", build_id);
    bp_json_object_end(json);
}

void bp_model_add_scheduling(bp_json *json, const bp_proc_stat *stat) {
    static const char *const names[] = {"other", "fifo", "rr",       "batch",
                                        NULL,    "idle", "deadline", "ext"};
    char number[24];
    (void)snprintf(number, sizeof number, "%" PRIu64, stat->policy);
    bool has_name = stat->policy < sizeof names / sizeof names[0] && names[stat->policy] != NULL;
    bp_json_add_text(json, "policy", has_name ? names[stat->policy] : number);
    bp_json_add_int(json, "priority", stat->priority);
    bp_json_add_uint(json, "realtime_priority", stat->rt_priority);
    bp_json_add_int(json, "nice", stat->nice);
    bp_json_add_uint(json, "processor", stat->processor);
}

#define SIGNAL(name) [name] = #name

const char *bp_model_signal_name(int number) {
    static const char *const names[] = {
        SIGNAL(SIGHUP),    SIGNAL(SIGINT),  SIGNAL(SIGQUIT), SIGNAL(SIGILL),   SIGNAL(SIGTRAP),
        SIGNAL(SIGABRT),   SIGNAL(SIGBUS),  SIGNAL(SIGFPE),  SIGNAL(SIGKILL),  SIGNAL(SIGUSR1),
        SIGNAL(SIGSEGV),   SIGNAL(SIGUSR2), SIGNAL(SIGPIPE), SIGNAL(SIGALRM),  SIGNAL(SIGTERM),
        SIGNAL(SIGCHLD),   SIGNAL(SIGCONT), SIGNAL(SIGSTOP), SIGNAL(SIGTSTP),  SIGNAL(SIGTTIN),
        SIGNAL(SIGTTOU),   SIGNAL(SIGURG),  SIGNAL(SIGXCPU), SIGNAL(SIGXFSZ),  SIGNAL(SIGVTALRM),
        SIGNAL(SIGPROF),   SIGNAL(SIGIO),   SIGNAL(SIGSYS),  SIGNAL(SIGWINCH),
#ifdef SIGSTKFLT
        SIGNAL(SIGSTKFLT),
#endif
#ifdef SIGPWR
        SIGNAL(SIGPWR),
#endif
    };
    return number > 0 && (size_t)number < sizeof names / sizeof names[0] ? names[number] : NULL;
}

const char *bp_model_state_word(char letter) {
    static const struct {
        char letter;
        const char *word;
    } rows[] = {{'R', "running"},
                {'S', "sleeping"},
                {'D', "uninterruptible sleep"},
                {'T', "stopped"},
                {'t', "stopped by tracer"},
                {'Z', "zombie"},
                {'X', "dead"},
                {'I', "idle"},
                {'P', "parked"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].letter == letter) {
            return rows[i].word;
        }
    }
    return NULL;
}
