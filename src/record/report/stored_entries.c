#include "report/stored_entries.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "json/json.h"
#include "model/entry.h"

#define FILE_NAME "stored-entries"
enum { entry_max = 64 + BUGPACK_TAGS_MAX, name_max_bytes = 255, session_max_bytes = 256 << 10 };

static const char process_name[] = "process.json";
static const char file_magic[8] = "bpstore";

typedef struct file_header {
    char magic[8];
    uint32_t version, entry_count;
    uint64_t byte_count; /* of what follows */
    uint64_t check;      /* a hash of it */
} file_header;

/* The kinds of content. */
enum { kind_entry, kind_reason, kind_tag, kind_count };

/* Followed by the name, which of a tag is its key, and the content. */
typedef struct entry_header {
    uint32_t name_bytes, kind;
    uint64_t wall_ns, byte_count;
} entry_header;

static const uint32_t file_version = 2;

static bool is_wanted(const bp_report_context *context, const bp_provider *provider,
                      bp_stored_scope scope) {
    const char *name = provider->spec.name;
    if (strcmp(name, process_name) == 0) {
        return scope.has_process && !bp_config_leaves_out(context->config, name);
    }
    bool is_session = strcmp(name, bp_entries[BP_ENTRY_SESSION].name) == 0;
    return (scope.has_hosts || (scope.has_session && is_session)) &&
           provider->spec.form != BUGPACK_PROVIDE_BYTES && bp_entry_refuse(name) == NULL;
}

bool bp_stored_entries_are_there(const bp_report_context *context, bp_stored_scope scope) {
    bp_provider **providers = NULL;
    size_t provider_count = 0;
    bp_tag_set *tags = scope.has_session ? bp_tags_hold(context->tags) : NULL;
    bool is_any = tags != NULL && tags->count > 0;
    bp_tag_set_drop(tags);
    (void)bp_provider_list_get(context->providers, &providers, &provider_count, NULL);
    for (size_t i = 0; i < provider_count && !is_any; i++) {
        is_any = is_wanted(context, providers[i], scope);
    }
    bp_provider_list_drop(providers, provider_count);
    return is_any;
}

/* The file while it is composed. */
typedef struct writing {
    const bp_report_context *context;
    bp_runner *runner;
    bp_stored_scope scope;
    bp_redactor *redactor; /* NULL: secrets are left to the report */
    bp_buffer out, clean;
    file_header header;
} writing;

static bool append(writing *to, const char *name, uint32_t kind, uint64_t wall_ns,
                   const void *bytes, size_t byte_count) {
    entry_header header = {(uint32_t)strlen(name), kind, wall_ns, byte_count};
    bp_buffer *out = &to->out;
    size_t before = out->size;
    bool is_kept = bp_buffer_append(out, &header, sizeof header) == BUGPACK_OK &&
                   bp_buffer_append(out, name, header.name_bytes) == BUGPACK_OK &&
                   bp_buffer_append(out, bytes, byte_count) == BUGPACK_OK;
    if (is_kept) {
        to->header.entry_count++;
    } else {
        out->size = before;
        out->status = BUGPACK_OK;
    }
    return is_kept;
}

/* The content of an entry as it may be stored, in `content` or in `to->clean`; NULL where there is
 * no memory to take its secrets out. */
static const bp_buffer *clean(writing *to, const char *name, const bp_buffer *content) {
    if (to->redactor == NULL) {
        return content;
    }
    bp_buffer_clear(&to->clean);
    bp_redactor_begin(to->redactor, bp_redact_form_of(name));
    return bp_redactor_write(to->redactor, content->data, content->size, bp_buffer_sink,
                             &to->clean) == BUGPACK_OK &&
                   bp_redactor_write(to->redactor, NULL, 0, bp_buffer_sink, &to->clean) ==
                       BUGPACK_OK
               ? &to->clean
               : NULL;
}

static void ask(writing *to, bp_provider *provider) {
    static const char too_long[] = "it was over the limit of what is kept for a crash";
    const char *name = provider->spec.name;
    bool is_bounded = !to->scope.has_hosts && strcmp(name, process_name) != 0;
    bugpack_writer writer;
    bp_writer_init(&writer, BP_STORED_MAX_BYTES);
    if (bp_runner_call(to->runner, provider, NULL, &writer)) {
        const bp_manifest_line *line = &writer.line;
        bool is_there = line->status == BP_ARTEFACT_OK || line->status == BP_ARTEFACT_TRUNCATED;
        const bp_buffer *content =
            !is_there || (is_bounded && writer.content.size > session_max_bytes)
                ? NULL
                : clean(to, name, &writer.content);
        const char *reason = is_there ? too_long : line->reason;
        if (content == NULL ||
            !append(to, name, kind_entry, line->captured_wall_ns, content->data, content->size)) {
            (void)append(to, name, kind_reason, line->captured_wall_ns, reason, strlen(reason));
        }
    }
    bp_writer_release(&writer);
}

/* Where it is redacted, a rule is to see its key. */
static void add_tag(writing *to, const bp_tag *tag) {
    size_t key_bytes = strlen(tag->key);
    const char *value = tag->value;
    if (to->redactor != NULL) {
        bp_buffer text;
        bp_buffer_init(&text, sizeof *tag + 1);
        bp_buffer_clear(&to->clean);
        (void)bp_buffer_printf(&text, "%s=%s", tag->key, tag->value);
        bool is_clean = bp_redactor_text(to->redactor, bp_buffer_text(&text), text.size,
                                         &to->clean) == BUGPACK_OK;
        bp_buffer_release(&text);
        value = is_clean ? bp_buffer_text(&to->clean) : "";
        value +=
            strncmp(value, tag->key, key_bytes) == 0 && value[key_bytes] == '=' ? key_bytes + 1 : 0;
    }
    (void)append(to, tag->key, kind_tag, 0, value, strlen(value));
}

/* False where secrets are to be taken out and there is no memory for that: nothing is stored. */
static bool open_redactor(writing *to, bp_rule_set **ret_rules) {
    const bp_redaction *redaction = to->context->redaction;
    const bp_tag_key *key = bp_redaction_key(redaction);
    if (key == NULL) {
        return true;
    }
    to->redactor = bp_redaction_hold(to->context->redaction, ret_rules, NULL) == BUGPACK_OK
                       ? bp_redactor_new(*ret_rules)
                       : NULL;
    if (to->redactor != NULL) {
        bp_redactor_set_key(to->redactor, key);
    }
    return to->redactor != NULL;
}

void bp_stored_entries_write(const bp_report_context *context, bp_runner *runner,
                             bp_stored_scope scope) {
    const bp_session_dir *dir = context->recorder->rings->dir;
    bp_rule_set *rules = NULL;
    writing to = {
        .context = context, .runner = runner, .scope = scope, .header = {.version = file_version}};
    bp_buffer_init(&to.out, BP_STORED_MAX_BYTES);
    bp_buffer_init(&to.clean, BP_STORED_MAX_BYTES);
    memcpy(to.header.magic, file_magic, sizeof file_magic);
    if (dir != NULL && bp_buffer_append(&to.out, &to.header, sizeof to.header) == BUGPACK_OK &&
        open_redactor(&to, &rules)) {
        bp_tag_set *tags = scope.has_session ? bp_tags_hold(context->tags) : NULL;
        for (size_t i = 0; tags != NULL && i < tags->count; i++) {
            add_tag(&to, &tags->tags[i]);
        }
        bp_tag_set_drop(tags);
        bp_provider **providers = NULL;
        size_t provider_count = 0;
        (void)bp_provider_list_get(context->providers, &providers, &provider_count, NULL);
        for (size_t i = 0; i < provider_count && to.header.entry_count < entry_max; i++) {
            if (is_wanted(context, providers[i], scope)) {
                ask(&to, providers[i]);
            }
        }
        bp_provider_list_drop(providers, provider_count);
        to.header.byte_count = to.out.size - sizeof to.header;
        to.header.check = XXH3_64bits(to.out.data + sizeof to.header, (size_t)to.header.byte_count);
        memcpy(to.out.data, &to.header, sizeof to.header);
        bp_session_dir_replace_file(dir, FILE_NAME, to.out.data, to.out.size);
    }
    bp_redactor_free(to.redactor);
    bp_rule_set_drop(rules);
    bp_buffer_release(&to.clean);
    bp_buffer_release(&to.out);
}

/* The part of the file that was not yet read. */
typedef struct reading {
    const char *next;
    size_t left_bytes;
    char names[entry_max + 1][name_max_bytes + 1]; /* the last one is the one just taken */
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

static bool has_name(const reading *it, const char *name) {
    bool is_there = false;
    for (size_t i = 0; i < it->name_count; i++) {
        is_there = is_there || bp_entry_is_same(it->names[i], name);
    }
    return is_there;
}

/* Keeps the name that was taken, if it may be of an entry and is new. */
static bool keep_name(reading *it) {
    const char *name = it->names[it->name_count];
    bool is_new = !has_name(it, name);
    it->name_count += is_new;
    return is_new && (strcmp(name, process_name) == 0 || bp_entry_refuse(name) == NULL);
}

static bugpack_status add_entry(const char *name, const entry_header *header, const char *bytes,
                                uint64_t end_wall_ns, bp_bundle *bundle, bugpack_error *error) {
    bugpack_writer writer;
    size_t name_bytes = strlen(name);
    bool is_json = name_bytes > 5 && strcmp(name + name_bytes - 5, ".json") == 0;
    bp_writer_init(&writer, 4 * BP_STORED_MAX_BYTES);
    bugpack_status status = BUGPACK_OK;
    if (header->kind == kind_reason) {
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
    if (header->kind == kind_entry && header->wall_ns <= end_wall_ns) {
        (void)snprintf(writer.line.note, sizeof writer.line.note, "as it was %.1f s before the end",
                       (double)(end_wall_ns - header->wall_ns) / (double)BP_NS_PER_SEC);
    } else if (header->kind == kind_entry) {
        (void)snprintf(writer.line.note, sizeof writer.line.note,
                       "as it was at captured_at, before the end");
    }
    return bp_bundle_put(bundle, name, status, &writer, error);
}

static bugpack_status add_all(const bp_buffer *text, uint64_t end_wall_ns, bp_tags *tags,
                              bp_bundle *bundle, bugpack_error *error) {
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
        char *name = it->names[it->name_count];
        memset(name, 0, sizeof it->names[0]);
        is_sound = take(it, &entry, sizeof entry) && entry.name_bytes > 0 &&
                   entry.name_bytes <= name_max_bytes && take(it, name, entry.name_bytes) &&
                   strlen(name) == entry.name_bytes && entry.byte_count <= it->left_bytes &&
                   entry.kind < kind_count;
        if (is_sound && entry.kind == kind_tag) {
            /* bp_tags_set checks the key, and cuts the value. */
            char value[4 * BUGPACK_TAG_VALUE_MAX_BYTES];
            (void)snprintf(
                value, sizeof value, "%.*s",
                (int)(entry.byte_count < sizeof value ? entry.byte_count : sizeof value - 1),
                it->next);
            is_sound = bp_tags_set(tags, name, value, NULL) == BUGPACK_OK;
        } else if (is_sound && (is_sound = keep_name(it))) {
            status = add_entry(name, &entry, it->next, end_wall_ns, bundle, error);
        }
        if (is_sound) {
            it->next += entry.byte_count;
            it->left_bytes -= (size_t)entry.byte_count;
        }
    }
    if (status == BUGPACK_OK && !is_sound && !has_name(it, process_name)) { /* it was in there */
        bugpack_writer writer;
        bp_writer_init(&writer, 0);
        bp_writer_refuse(&writer, BP_ARTEFACT_FAILED, "what was stored before the end is damaged");
        status = bp_bundle_put(bundle, process_name, BUGPACK_OK, &writer, error);
    }
    free(it);
    return status;
}

bugpack_status bp_stored_entries_add(int session_dir_fd, uint64_t end_wall_ns, bp_tags *tags,
                                     bp_bundle *bundle, bugpack_error *error) {
    int fd = openat(session_dir_fd, FILE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return BUGPACK_OK;
    }
    bp_buffer text;
    bp_buffer_init(&text, BP_STORED_MAX_BYTES + 1);
    bugpack_status status = bp_file_read_fd(fd, FILE_NAME, &text, error);
    bp_file_close(fd);
    if (status == BUGPACK_OK) {
        status = add_all(&text, end_wall_ns, tags, bundle, error);
    } else if (status == BUGPACK_ERR_LIMIT) {
        status = BUGPACK_OK; /* not what we write */
    }
    bp_buffer_release(&text);
    return status;
}
