#include "model/open_files.h"

#include <stdlib.h>
#include <string.h>

#include "model/fields.h"

/*
 * How many bytes at the start of a component are the app's word in the name of a session's
 * directory, `<app>-<pid>-<32 digits>`; 0 for any other name.
 */
static size_t app_bytes_of(const char *component, size_t length) {
    static const char hex[] = "0123456789abcdef", digits[] = "0123456789";
    enum { id_bytes = 32 };
    if (length <= id_bytes + 2 || strspn(component + length - id_bytes, hex) < id_bytes ||
        component[length - id_bytes - 1] != '-') {
        return 0;
    }
    size_t at = length - id_bytes - 1, end = at;
    while (at > 0 && strchr(digits, component[at - 1]) != NULL) {
        at--;
    }
    return at < end && at > 1 && component[at - 1] == '-' ? at - 1 : 0;
}

void bp_model_add_path(bp_json *json, const char *key, const char *target) {
    for (const char *at = target; at != NULL && *at != '\0'; at = strchr(at, '/')) {
        at += *at == '/';
        size_t length = strcspn(at, "/"), app_bytes = app_bytes_of(at, length);
        if (app_bytes > 0) {
            bp_buffer text;
            bp_buffer_init(&text, (size_t)1 << 20);
            (void)bp_buffer_append(&text, target, (size_t)(at - target));
            (void)bp_buffer_printf(&text, "APP%s", at + app_bytes);
            bp_json_add_text(json, key, bp_buffer_text(&text));
            bp_buffer_release(&text);
            return;
        }
    }
    bp_json_add_text(json, key, target);
}

static void add_address(bp_json *json, const char *key, const char *address) {
    if (address[0] != '\0') {
        bp_model_add_path(json, key, address);
    }
}

void bp_open_files_release(bp_open_files *process) {
    for (size_t i = 0; i < process->file_count; i++) {
        free(process->files[i].target);
        free(process->files[i].socket);
        free(process->files[i].holders);
    }
    free(process->files);
    *process = (bp_open_files){.pid = 0};
}

/* The position of other kinds is always 0. */
static bool has_position(bp_open_file_kind kind) {
    return kind <= BP_OPEN_FILE_BLOCK_DEVICE || kind == BP_OPEN_FILE_MEMFD;
}

static void add_info(const bp_open_file *file, bp_json *json) {
    const bp_fd_info *info = &file->info;
    if (info->has_flags) {
        bp_json_add_text(json, "access", bp_fd_access(info->flags));
    }
    bp_model_add_known_uint(json, "position", info->has_position && has_position(file->kind),
                            info->position);
}

static void add_socket(const bp_socket *socket, bp_json *json) {
    bool counts_connections = socket->is_listening;
    bp_json_object_begin(json, "socket");
    bp_model_add_known_text(json, "protocol", socket->protocol);
    bp_json_add_text(json, "type", socket->type);
    bp_json_add_text(json, "state", socket->state);
    add_address(json, "local", socket->local);
    add_address(json, "remote", socket->remote);
    bp_model_add_known_uint(json,
                            counts_connections ? "waiting_connections" : "receive_queue_bytes",
                            socket->has_queues, socket->receive_queue);
    bp_model_add_known_uint(json, counts_connections ? "backlog" : "send_queue_bytes",
                            socket->has_queues && socket->has_send_queue, socket->send_queue);
    bp_model_add_known_uint(json, "retransmits", socket->has_retransmits, socket->retransmits);
    bp_model_add_known_uint(json, "drops", socket->has_drops, socket->drops);
    bp_model_add_known_uint(json, "peer_inode", socket->peer_inode != 0, socket->peer_inode);
    bp_model_add_known_uint(json, "listener_inode", socket->listener_inode != 0,
                            socket->listener_inode);
    if (socket->is_accepted || socket->has_connected) {
        bp_json_add_bool(json, "accepted", socket->is_accepted);
    }
    bp_model_add_known_uint(json, "peer_unread_bytes", socket->has_peer_queue, socket->peer_queue);
    bool is_client = socket->has_times && socket->has_connected;
    bool owes_answer = socket->has_times && socket->is_accepted && socket->has_received &&
                       (!socket->has_sent || socket->received_ms < socket->sent_ms);
    bp_model_add_known_uint(json, "sent_ms_ago", is_client, socket->sent_ms);
    bp_model_add_known_uint(json, "received_ms_ago", is_client && socket->has_received,
                            socket->received_ms);
    bp_model_add_known_uint(json, "unanswered_ms", owes_answer, socket->received_ms);
    bp_json_object_end(json);
}

/* The object stays open. */
static void begin_holder(const char *key, const bp_fd_holder *holder, bp_json *json) {
    bp_json_object_begin(json, key);
    bp_json_add_uint(json, "pid", holder->pid);
    bp_model_add_name(json, "name", holder->name, sizeof holder->name);
    bp_json_add_text(json, "state", bp_model_state_word(holder->state));
}

static void add_other_end(const bp_open_file *file, bp_json *json) {
    bp_json_array_begin(json, "other_end");
    for (size_t i = 0; i < file->holder_count; i++) {
        begin_holder(NULL, &file->holders[i], json);
        bp_json_add_uint(json, "number", file->holders[i].number);
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
    bp_model_add_flag(json, "other_end_has_more", file->has_more_holders);
}

void bp_open_file_add_ends(const bp_open_file *file, bp_json *json) {
    if (file->socket != NULL) {
        add_socket(file->socket, json);
    }
    if (file->has_other_end) {
        add_other_end(file, json);
    }
}

void bp_fd_search_add(const void *more, bp_json *json) {
    const bp_fd_search *search = more;
    if (search->was_needed) {
        bp_json_object_begin(json, "other_ends");
        bp_json_add_uint(json, "searched_processes", search->process_count);
        bp_json_add_uint(json, "denied_processes", search->denied_count);
        bp_json_add_bool(json, "complete", !search->is_cut && search->denied_count == 0);
        bp_model_add_flag(json, "cut", search->is_cut);
        bp_json_object_end(json);
    }
}

static void add_file(const bp_open_file *file, bp_json *json) {
    bp_json_object_begin(json, NULL);
    bp_json_add_uint(json, "number", file->number);
    bp_json_add_text(json, "kind", bp_open_file_kind_name(file->kind));
    bp_model_add_path(json, "target", file->target);
    bp_model_add_flag(json, "deleted", file->is_deleted);
    bp_model_add_known_uint(json, "inode", file->has_inode, file->inode);
    bp_model_add_known_uint(json, "size_bytes", file->has_size, file->size_bytes);
    add_info(file, json);
    bp_open_file_add_ends(file, json);
    bp_model_add_flag(json, "shared", file->is_shared);
    if (file->locked_by.pid != 0) {
        begin_holder("locked_by", &file->locked_by, json);
        bp_json_add_text(json, "lock", file->is_flock ? "flock" : "posix");
        bp_json_object_end(json);
    }
    bp_json_object_end(json);
}

static void add_process(const void *item, bp_json *json) {
    const bp_open_files *process = item;
    bp_json_add_uint(json, "pid", process->pid);
    bp_model_add_name(json, "name", process->name, sizeof process->name);
    bp_json_add_uint(json, "open", process->open_count);
    if (process->has_limit) {
        const bp_resource_limit *limit = &process->limit;
        bp_json_object_begin(json, "limit");
        bp_model_add_limit(json, "soft", limit->soft_unlimited, limit->soft);
        bp_model_add_limit(json, "hard", limit->hard_unlimited, limit->hard);
        if (!limit->soft_unlimited && limit->soft > 0) {
            bp_json_add_number(json, "used_percent",
                               (double)process->open_count * 100.0 / (double)limit->soft, 1);
        }
        bp_json_object_end(json);
    }
    bp_json_add_uint(json, "closed_meanwhile", process->vanished_count);
    if (process->inotify_count > 0) {
        bp_json_object_begin(json, "inotify");
        bp_json_add_uint(json, "instances", process->inotify_count);
        bp_model_add_known(json, "instances_max", process->inotify_max);
        bp_json_add_uint(json, "watches", process->watch_count);
        bp_model_add_known(json, "watches_max", process->watch_max);
        bp_json_object_end(json);
    }
    bp_json_array_begin(json, "files");
    for (size_t i = 0; i < process->file_count; i++) {
        add_file(&process->files[i], json);
    }
    bp_json_array_end(json);
}

bugpack_status bp_open_files_print(const bp_open_files *processes, size_t count,
                                   const bp_fd_search *search, bp_buffer *out,
                                   bugpack_error *error) {
    return bp_model_print_tree(processes, sizeof *processes, count, add_process, bp_fd_search_add,
                               search, out, error);
}
