/*
 * files.json: the descriptors of a process, its sockets, and who has the other end.
 */
#ifndef BP_MODEL_OPEN_FILES_H
#define BP_MODEL_OPEN_FILES_H

#include <bugpack/error.h>

#include "base/buffer.h"
#include "json/json.h"
#include "platform/linux/open_file_text.h"
#include "platform/process_facts.h"

/* A descriptor of some process. */
typedef struct bp_fd_holder {
    uint64_t pid;
    char name[64]; /* of the process; any bytes */
    char state;    /* of its first thread, as in proc(5); 0: not known */
    uint32_t number;
} bp_fd_holder;

/* More descriptors than these of one other end are not listed. */
#define BP_FD_HOLDER_MAX 16

typedef struct bp_open_file {
    uint32_t number;
    bp_open_file_kind kind;
    char *target; /* any bytes but NUL; owned */
    bool is_deleted;
    bp_fd_info info;
    bool has_inode;
    uint64_t device, inode;
    bool has_size; /* only a regular file */
    uint64_t size_bytes;
    bp_socket *socket; /* owned; NULL: it is none */
    /* The processes at the other end of a pipe, a FIFO, a connected unix socket or a TCP connection
     * within the machine, as far as they were found. */
    bool has_other_end;
    bp_fd_holder *holders; /* owned */
    size_t holder_count;
    bool has_more_holders;
    bp_fd_holder locked_by; /* has an exclusive lock of the file; pid 0: none is known */
    bool is_flock;          /* by flock(2); else by fcntl(2) */
    bool is_shared;         /* a socket with something to read, that another process has, too */
} bp_open_file;

/* The descriptors of one process. Starts zeroed. */
typedef struct bp_open_files {
    uint64_t pid;
    uint64_t birth;      /* as in platform/task.h */
    char name[64];       /* any bytes */
    bp_open_file *files; /* ascending by number; owned */
    size_t file_count;
    size_t open_count;        /* how many there were, also those that are not listed */
    size_t vanished_count;    /* closed meanwhile */
    size_t passed_over_count; /* over the limit, or without time */
    bool has_limit;
    bp_resource_limit limit; /* of open files */
    /* Its inotify instances and their watches, and what all processes of its user may have. */
    uint64_t inotify_count, watch_count;
    bp_known_uint inotify_max, watch_max;
    size_t unread_count;  /* of which nothing could be read */
    int unread_errno;     /* the last reason */
    int sockets_errno;    /* why nothing is known of sockets; or 0 */
    bool are_sockets_cut; /* there was no time to read all tables */
} bp_open_files;

void bp_open_files_release(bp_open_files *process);

/* The search for the other ends. */
typedef struct bp_fd_search {
    bool was_needed;
    size_t process_count; /* of which all descriptors were seen */
    size_t denied_count;  /* that may not be read */
    bool is_cut;          /* a bound was met before the end */
} bp_fd_search;

/*
 * Adds the path of a descriptor. The name of the program may be a secret, which the rules find in
 * it, but not in the word that it becomes in the name of a session's directory: there it is left
 * out.
 */
void bp_model_add_path(bp_json *json, const char *key, const char *target);

/* Adds `socket` and `other_end` to an object, as far as they are known. */
void bp_open_file_add_ends(const bp_open_file *file, bp_json *json);

/* Adds `other_ends`, if there was a search: a bp_model_add_item of a bp_fd_search. */
void bp_fd_search_add(const void *search, bp_json *json);

/* Appends files.json of a process and its descendants, as bp_threads_print does. */
bugpack_status bp_open_files_print(const bp_open_files *processes, size_t count,
                                   const bp_fd_search *search, bp_buffer *out,
                                   bugpack_error *error);

#endif
