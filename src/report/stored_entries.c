#include "report/stored_entries.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* XXH3, inlined; no library is linked. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/file.h"
#include "base/status.h"
#include "model/entry.h"
#include "json/json.h"

#define FILE_NAME "stored-entries"
enum { entry_max = 64, name_max_bytes = 255 };

static const char process_name[] = "process.json";
static const char file_magic[8] = "bpstore";

typedef struct file_header {
    char magic[8];
    uint32_t version, entry_count;
    uint64_t byte_count; /* of what follows */
    uint64_t check;      /* a hash of it */
} file_header;

/* Followed by the name and the content. */
typedef struct entry_header {
    uint32_t name_bytes, is_reason; /* the content says why there is none */
    uint64_t wall_ns, byte_count;
} entry_header;

static const uint32_t file_version = 1;

static bool is_wanted(const bp_report_context *context, const bp_provider *provider,
                      bool has_hosts) {
    const char *list = context->settings->without_entries;
    const char *name = bp_provider_name(provider);
    if (strcmp(name, process_name) == 0) {
        return list == NULL || !bp_entry_is_in_list(list, name);
    }
    return has_hosts && bp_provider_spec_of(provider)->form != BP_CONTENT_BYTES &&
           bp_entry_refuse(name) == NULL;
}

static bool append(bp_buffer *out, const char *name, bool is_reason, uint64_t wall_ns,
                   const void *bytes, size_t byte_count) {
    entry_header header = {(uint32_t)strlen(name), is_reason, wall_ns, byte_count};
    size_t before = out->size;
    bool is_kept = bp_buffer_append(out, &header, sizeof header) == BUGPACK_OK &&
                   bp_buffer_append(out, name, header.name_bytes) == BUGPACK_OK &&
                   bp_buffer_append(out, bytes, byte_count) == BUGPACK_OK;
    if (!is_kept) {
        out->size = before;
        out->status = BUGPACK_OK;
    }
    return is_kept;
}

static void ask(bp_runner *runner, bp_provider *provider, bp_buffer *out, uint32_t *count) {
    static const char too_long[] = "it was over the limit of what is kept for a crash";
    const char *name = bp_provider_name(provider);
    bugpack_writer writer;
    bp_writer_init(&writer, BP_STORED_MAX_BYTES);
    if (bp_runner_call(runner, provider, NULL, &writer)) {
        const bp_manifest_line *line = &writer.line;
        bool is_there = line->status == BP_ARTEFACT_OK || line->status == BP_ARTEFACT_TRUNCATED;
        const char *reason = is_there ? too_long : line->reason;
        if ((is_there && append(out, name, false, line->captured_wall_ns, writer.content.data,
                                writer.content.size)) ||
            append(out, name, true, line->captured_wall_ns, reason, strlen(reason))) {
            ++*count;
        }
    }
    bp_writer_release(&writer);
}

void bp_stored_entries_write(const bp_report_context *context, bp_runner *runner, bool has_hosts) {
    bp_provider **providers = NULL;
    size_t provider_count = 0;
    file_header header = {.version = file_version};
    bp_buffer out;
    bp_buffer_init(&out, BP_STORED_MAX_BYTES);
    memcpy(header.magic, file_magic, sizeof header.magic);
    (void)bp_buffer_append(&out, &header, sizeof header);
    (void)bp_provider_list_get(context->providers, &providers, &provider_count, NULL);
    for (size_t i = 0; i < provider_count && header.entry_count < entry_max; i++) {
        if (is_wanted(context, providers[i], has_hosts)) {
            ask(runner, providers[i], &out, &header.entry_count);
        }
    }
    bp_provider_list_drop(providers, provider_count);
    if (out.size >= sizeof header) {
        header.byte_count = out.size - sizeof header;
        header.check = XXH3_64bits(out.data + sizeof header, (size_t)header.byte_count);
        memcpy(out.data, &header, sizeof header);
        (void)bp_recorder_replace_file(context->recorder, FILE_NAME, out.data, out.size);
    }
    bp_buffer_release(&out);
}

/* What was not yet read of the file. */
typedef struct reading {
    const char *next;
    size_t left_bytes;
    uint32_t left_count;
    char names[entry_max][name_max_bytes + 1];
    size_t name_count;
} reading;

static bool take(reading *it, void *out, size_t byte_count) {
    if (byte_count > it->left_bytes) {
        return false;
    }
    memcpy(out, it->next, byte_count);
    it->next += byte_count;
    it->left_bytes -= byte_count;
    return true;
}

static bool take_name(reading *it, size_t byte_count) {
    char *name = it->names[it->name_count];
    if (byte_count == 0 || byte_count > name_max_bytes || !take(it, name, byte_count)) {
        return false;
    }
    name[byte_count] = '\0';
    for (size_t i = 0; i < it->name_count; i++) {
        if (bp_entry_is_same(it->names[i], name)) {
            return false;
        }
    }
    it->name_count++;
    return strlen(name) == byte_count &&
           (strcmp(name, process_name) == 0 || bp_entry_refuse(name) == NULL);
}

static bugpack_status add_entry(const char *name, const entry_header *header, const char *bytes,
                                bp_bundle *bundle, bugpack_error *error) {
    bugpack_writer writer;
    size_t name_bytes = strlen(name);
    bool is_json = name_bytes > 5 && strcmp(name + name_bytes - 5, ".json") == 0;
    bp_writer_init(&writer, 4 * BP_STORED_MAX_BYTES);
    bugpack_status status = BUGPACK_OK;
    if (header->is_reason != 0) {
        bp_writer_refuse(&writer, BP_ARTEFACT_OMITTED, "%.*s",
                         (int)(header->byte_count < 400 ? header->byte_count : 400), bytes);
        writer.line.is_missing = false;
    } else if (is_json && bp_json_reformat(bytes, (size_t)header->byte_count, &writer.content,
                                           NULL) != BUGPACK_OK) {
        bp_writer_refuse(&writer, BP_ARTEFACT_FAILED, "what was kept is not valid JSON");
    } else if (!is_json) {
        status = bp_buffer_append(&writer.content, bytes, (size_t)header->byte_count);
    }
    writer.line.captured_wall_ns = header->wall_ns;
    (void)snprintf(writer.line.note, sizeof writer.line.note, "%s",
                   header->is_reason != 0 ? "" : "as it was at captured_at, before the end");
    return bp_bundle_put(bundle, name, status, &writer, error);
}

/* Where the file is damaged: process.json was in it. */
static bugpack_status add_loss(const reading *it, bp_bundle *bundle, bugpack_error *error) {
    bugpack_writer writer;
    for (size_t i = 0; i < it->name_count; i++) {
        if (bp_entry_is_same(it->names[i], process_name)) {
            return BUGPACK_OK;
        }
    }
    bp_writer_init(&writer, 0);
    bp_writer_refuse(&writer, BP_ARTEFACT_FAILED, "what was stored before the end is damaged");
    return bp_bundle_put(bundle, process_name, BUGPACK_OK, &writer, error);
}

static bugpack_status add_all(const bp_buffer *text, bp_bundle *bundle, bugpack_error *error) {
    file_header header;
    reading *it = calloc(1, sizeof *it);
    if (it == NULL) {
        return bp_fail_memory(error, "read what was kept");
    }
    it->next = text->data;
    it->left_bytes = text->size;
    bugpack_status status = BUGPACK_OK;
    bool is_sound = take(it, &header, sizeof header) &&
                    memcmp(header.magic, file_magic, sizeof header.magic) == 0 &&
                    header.version == file_version && header.entry_count <= entry_max &&
                    header.byte_count == it->left_bytes &&
                    header.check == XXH3_64bits(it->next, it->left_bytes);
    for (uint32_t i = 0; is_sound && status == BUGPACK_OK && i < header.entry_count; i++) {
        entry_header entry;
        is_sound = take(it, &entry, sizeof entry) && take_name(it, entry.name_bytes) &&
                   entry.byte_count <= it->left_bytes;
        if (is_sound) {
            status = add_entry(it->names[it->name_count - 1], &entry, it->next, bundle, error);
            it->next += entry.byte_count;
            it->left_bytes -= (size_t)entry.byte_count;
        }
    }
    if (status == BUGPACK_OK && !is_sound) {
        status = add_loss(it, bundle, error);
    }
    free(it);
    return status;
}

bugpack_status bp_stored_entries_add(int session_dir_fd, bp_bundle *bundle, bugpack_error *error) {
    int fd = openat(session_dir_fd, FILE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return BUGPACK_OK;
    }
    bp_buffer text;
    bp_buffer_init(&text, BP_STORED_MAX_BYTES + 1);
    bugpack_status status = bp_file_read_fd(fd, FILE_NAME, &text, error);
    bp_file_close(fd);
    if (status == BUGPACK_OK) {
        status = add_all(&text, bundle, error);
    } else if (status == BUGPACK_ERR_LIMIT) {
        status = BUGPACK_OK; /* not what we write */
    }
    bp_buffer_release(&text);
    return status;
}
