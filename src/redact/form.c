#include <string.h>
#include <strings.h>

#include "redact/redactor_private.h"

enum { look_bytes = 8 * 1024, log_nul_share = 8 };

bp_redact_form bp_redact_form_of(const char *entry) {
    static const struct {
        const char *ending;
        bp_redact_form form;
    } forms[] = {
        {".json", BP_REDACT_JSON},  {".jsonl", BP_REDACT_JSON_LINES}, {".png", BP_REDACT_BINARY},
        {".pcap", BP_REDACT_PCAP},  {".pcapng", BP_REDACT_PCAP},      {".jpg", BP_REDACT_BINARY},
        {".gz", BP_REDACT_BINARY},  {".xz", BP_REDACT_BINARY},        {".zst", BP_REDACT_BINARY},
        {".zip", BP_REDACT_BINARY}, {".log", BP_REDACT_LOG},          {".txt", BP_REDACT_LOG},
    };
    size_t length = strlen(entry);
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        size_t ending = strlen(forms[i].ending);
        if (length > ending && strcasecmp(entry + length - ending, forms[i].ending) == 0) {
            return forms[i].form;
        }
    }
    return BP_REDACT_TEXT;
}

bool bp_redact_form_is_binary(bp_redact_form form, const void *bytes, size_t byte_count) {
    const char *text = bytes;
    size_t size = byte_count < look_bytes ? byte_count : look_bytes, nul_count = 0;
    for (size_t i = 0; i < size; i++) {
        nul_count += text[i] == '\0';
    }
    /* A log may have holes where it was torn or preallocated. UTF-16 has a NUL in every other byte,
     * and no rule would find anything in it. */
    return (form == BP_REDACT_TEXT && nul_count > 0) ||
           (form == BP_REDACT_LOG && nul_count > size / log_nul_share);
}
