#include "entries/content.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "entries/call_tree.h"
#include "image/png.h"
#include "json/parts.h"
#include "model/entry.h"

/*
 * Checks the structure of traffic.pcap while it is read: the header that bugpack writes, and
 * records that end where the file ends.
 */

/* All zero is the begin of a file. */
typedef struct pcap_check {
    unsigned char header[24]; /* of the file or a record, as far as it is there */
    size_t header_bytes;
    uint64_t payload_left;
    uint64_t record_count; /* begun */
    bool has_file_header;
} pcap_check;

/* https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-03.html, little-endian, in nanoseconds. */
enum { file_header_bytes = 24, record_header_bytes = 16 };
static const uint32_t magic_nanoseconds = 0xa1b23c4d;
static const uint32_t version = 2 | 4 << 16;
static const uint32_t snap_bytes = 262144;
static const uint32_t link_ethernet = 1;

static uint32_t read_u32(const unsigned char *at) {
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static const char *check_file_header(const unsigned char *header) {
    if (read_u32(header) != magic_nanoseconds || read_u32(header + 4) != version) {
        return "it is no pcap as bugpack writes it";
    }
    if (read_u32(header + 16) != snap_bytes || read_u32(header + 20) != link_ethernet) {
        return "it has another snap length or link type";
    }
    return NULL;
}

static const char *check_record(pcap_check *check) {
    const unsigned char *header = check->header;
    uint32_t kept_bytes = read_u32(header + 8), original_bytes = read_u32(header + 12);
    if (read_u32(header + 4) >= 1000000000) {
        return "a time has over a second of nanoseconds";
    }
    if (kept_bytes > snap_bytes || kept_bytes > original_bytes) {
        return "a record has more bytes than it may";
    }
    check->record_count++;
    check->payload_left = kept_bytes;
    return NULL;
}

/* NULL, or what is wrong; then it is final. */
static const char *pcap_check_write(pcap_check *check, const void *bytes, size_t byte_count) {
    const unsigned char *at = bytes;
    const char *wrong = NULL;
    while (byte_count > 0 && wrong == NULL) {
        size_t needed = (size_t)(check->has_file_header ? record_header_bytes : file_header_bytes);
        uint64_t wanted =
            check->payload_left > 0 ? check->payload_left : needed - check->header_bytes;
        size_t taken = wanted < byte_count ? (size_t)wanted : byte_count;
        if (check->payload_left > 0) {
            check->payload_left -= taken;
        } else {
            memcpy(check->header + check->header_bytes, at, taken);
            check->header_bytes += taken;
            if (check->header_bytes == needed) {
                wrong =
                    check->has_file_header ? check_record(check) : check_file_header(check->header);
                check->has_file_header = true;
                check->header_bytes = 0;
            }
        }
        at += taken;
        byte_count -= taken;
    }
    return wrong;
}

/* The lines of a profile, and the begin of one that is not whole. */
typedef struct profile_check {
    bp_buffer line;
    uint64_t line_number;
} profile_check;

/* With `bytes` NULL the entry ends. */
static bugpack_status write_profile(profile_check *check, const char *bytes, size_t byte_count,
                                    bugpack_error *error) {
    const char *wrong = bytes == NULL && check->line.size > 0 ? "its end is missing" : NULL;
    size_t stack_bytes;
    uint64_t samples;
    while (byte_count > 0 && wrong == NULL) {
        const char *newline = memchr(bytes, '\n', byte_count);
        size_t taken = newline != NULL ? (size_t)(newline - bytes) : byte_count;
        (void)bp_buffer_append(&check->line, bytes, taken);
        if (check->line.status == BUGPACK_ERR_NO_MEMORY) {
            return bp_fail_memory(error, "check a profile");
        }
        if (check->line.status != BUGPACK_OK) {
            wrong = "it is too long";
        } else if (newline != NULL) {
            wrong = bp_call_tree_divide(bp_buffer_text(&check->line), check->line.size,
                                        &stack_bytes, &samples);
            bp_buffer_clear(&check->line);
            check->line_number += wrong == NULL;
        }
        bytes += taken + (newline != NULL);
        byte_count -= taken + (newline != NULL);
    }
    return wrong == NULL ? BUGPACK_OK
                         : bp_fail(error, BUGPACK_ERR_CORRUPT, "line %llu: %s",
                                   (unsigned long long)check->line_number + 1, wrong);
}

/* Keys that a processor's cache does not hold cost more to compare. */
enum { steps_per_token = 6, steps_per_far_key = 32, key_count_cached = 4096 };

struct bp_content {
    bp_content_budget *budget;
    bp_entry_form form;
    bool is_open, is_profile;
    bp_json_parts json;
    profile_check profile;
    pcap_check pcap;
    bp_png_check *png;
};

bp_content *bp_content_new(bp_content_budget *budget) {
    bp_content *content = calloc(1, sizeof *content);
    if (content != NULL) {
        content->budget = budget;
    }
    return content;
}

static void take_off(uint64_t *budget, uint64_t used) {
    *budget -= used < *budget ? used : *budget;
}

static bool is_json(const bp_content *content) {
    return content->form == BP_ENTRY_JSON || content->form == BP_ENTRY_JSON_LINES;
}

static void close_entry(bp_content *content) {
    if (content->is_open && is_json(content)) {
        bp_json_parts_release(&content->json);
    }
    bp_png_check_free(content->png);
    content->png = NULL;
    bp_buffer_release(&content->profile.line);
    content->is_open = false;
}

void bp_content_free(bp_content *content) {
    if (content != NULL) {
        close_entry(content);
        free(content);
    }
}

static bugpack_status count_token(void *context, const bp_json_token *token, bugpack_error *error) {
    bp_content *content = context;
    bool is_far = content->json.scanner.keys.count > key_count_cached;
    (void)token;
    take_off(&content->budget->json_steps, steps_per_token + (is_far ? steps_per_far_key : 0));
    return content->budget->json_steps > 0
               ? BUGPACK_OK
               : bp_fail(error, BUGPACK_ERR_LIMIT, "it has more values than are checked");
}

bugpack_status bp_content_begin(bp_content *content, const char *name, bugpack_error *error) {
    close_entry(content);
    /* Names of other entries are free: an attached file called x.json may be anything. */
    bp_entry_id id = bp_entry_find(name);
    content->form = id < BP_ENTRY_COUNT ? bp_entries[id].form : BP_ENTRY_ANY;
    content->is_profile = id == BP_ENTRY_PROFILE;
    if (is_json(content) && content->budget->json_steps == 0) {
        content->form = BP_ENTRY_ANY; /* the entry before it was too much, which was said */
    }
    if (content->form == BP_ENTRY_PNG) {
        content->png = bp_png_check_new(content->budget->picture_bytes);
        return content->png != NULL ? BUGPACK_OK : bp_fail_memory(error, "check a PNG");
    }
    if (content->is_profile) {
        content->profile.line_number = 0;
        bp_buffer_init(&content->profile.line, BP_CALL_TREE_LINE_BYTES);
    }
    if (content->form == BP_ENTRY_PCAP) {
        content->pcap = (pcap_check){.header_bytes = 0};
    }
    if (is_json(content)) {
        content->is_open = true;
        bp_json_parts_init(&content->json, count_token, content);
        content->json.scanner.is_lines = content->form == BP_ENTRY_JSON_LINES;
    }
    return BUGPACK_OK;
}

/* With `bytes` NULL the entry ends. */
static bugpack_status write_pcap(bp_content *content, const void *bytes, size_t byte_count,
                                 bugpack_error *error) {
    const pcap_check *check = &content->pcap;
    const char *wrong = NULL;
    if (bytes != NULL) {
        wrong = pcap_check_write(&content->pcap, bytes, byte_count);
    } else if (!check->has_file_header) {
        wrong = "it has no header";
    } else if (check->header_bytes > 0 || check->payload_left > 0) {
        wrong = "its last record is cut";
    }
    return wrong == NULL ? BUGPACK_OK
                         : bp_fail(error, BUGPACK_ERR_CORRUPT, "record %llu: %s",
                                   (unsigned long long)content->pcap.record_count, wrong);
}

bugpack_status bp_content_write(bp_content *content, const void *bytes, size_t byte_count,
                                bugpack_error *error) {
    switch (content->form) {
    case BP_ENTRY_JSON:
    case BP_ENTRY_JSON_LINES:
        return bp_json_parts_write(&content->json, bytes, byte_count, error);
    case BP_ENTRY_PCAP:
        return write_pcap(content, bytes, byte_count, error);
    case BP_ENTRY_PNG:
        return bp_png_check_write(content->png, bytes, byte_count, error);
    case BP_ENTRY_ANY:
    case BP_ENTRY_TEXT:
        break;
    }
    return content->is_profile ? write_profile(&content->profile, bytes, byte_count, error)
                               : BUGPACK_OK;
}

bugpack_status bp_content_end(bp_content *content, bugpack_error *error) {
    uint64_t picture_bytes = 0;
    bugpack_status status = BUGPACK_OK;
    if (is_json(content)) {
        status = bp_json_parts_end(&content->json, error);
    } else if (content->form == BP_ENTRY_PCAP) {
        status = write_pcap(content, NULL, 0, error);
    } else if (content->is_profile) {
        status = write_profile(&content->profile, NULL, 0, error);
    } else if (content->form == BP_ENTRY_PNG) {
        status = bp_png_check_end(content->png, &picture_bytes, error);
        take_off(&content->budget->picture_bytes, picture_bytes);
    }
    close_entry(content);
    return status;
}
