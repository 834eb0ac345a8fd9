#include "heap/jemalloc_find.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "heap/calibration.h"
#include "platform/linux/files.h"
#include "platform/linux/mapped_files.h"

/* The usual ones; jemalloc's configure calls it --with-jemalloc-prefix. */
static const char *const prefixes[] = {"", "je_", "_rjem_", "jemalloc_"};

static void refuse(bp_known_object *object, bp_heap_failure failure, const char *path,
                   const char *what) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    (void)bp_fail(&error, BUGPACK_ERR_UNSUPPORTED, "\"%s\": %s", path, what);
    object->failure = failure;
    memcpy(object->reason, error.message, sizeof object->reason);
}

/* The prefix under which the object exports mallctl, or NULL. */
static const char *find_prefix(bp_elf_object *elf) {
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        char name[32];
        Elf64_Sym symbol;
        (void)snprintf(name, sizeof name, "%smallctl", prefixes[i]);
        if (bp_elf_find_symbol(elf, name, &symbol) && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC) {
            return prefixes[i];
        }
    }
    return NULL;
}

static void take_calibration(bp_known_object *object, const bp_calibration *calibration) {
    object->is_calibrated = true;
    object->allocated_place = calibration->allocated_place;
    object->deallocated_place = calibration->deallocated_place;
}

static void calibrate(const bp_heap_prober_options *options, int fd, const char *path,
                      const char *prefix, bp_known_object *object) {
    struct stat mapped, named;
    bp_calibration calibration;
    char clause[256];
    char sentence[320];
    const char *refusal = "it could not be looked at";
    errno = 0;
    if (fstat(fd, &mapped) == 0) {
        bool is_named = stat(path, &named) == 0;
        const bp_calibration_facts facts = {.mapped = &mapped,
                                            .named = is_named ? &named : NULL,
                                            .user = geteuid(),
                                            .has_own_root = object->has_own_root,
                                            .owners_count = bp_calibration_owners_count(fd)};
        refusal = bp_calibration_refusal(&facts);
    }
    if (refusal != NULL) {
        object->read_errno = bp_errno_is_trouble(errno) ? errno : object->read_errno;
        (void)snprintf(sentence, sizeof sentence,
                       "this stripped jemalloc is not run to learn its layout, because %s",
                       refusal);
        refuse(object, BP_HEAP_FAILURE_CALIBRATION_REFUSED, path, sentence);
        return;
    }
    if (options->calibrator_path == NULL) {
        refuse(object, BP_HEAP_FAILURE_CALIBRATION, path,
               "this stripped jemalloc has to be calibrated, and no calibrator is configured");
        return;
    }
    if (!bp_calibration_run(options->calibrator_path, fd, object->slot, prefix,
                            options->calibration_timeout_ms, &calibration, clause, sizeof clause)) {
        object->read_errno = bp_errno_is_trouble(errno) ? errno : 0;
        (void)snprintf(sentence, sizeof sentence,
                       "this stripped jemalloc could not be calibrated: %s", clause);
        refuse(object, BP_HEAP_FAILURE_CALIBRATION, path, sentence);
        return;
    }
    take_calibration(object, &calibration);
}

/* A library: its slot, and then debug data or a calibration. */
static void examine_library(const bp_heap_prober_options *options, bp_elf_object *elf,
                            const char *path, const char *prefix, bp_known_object *object) {
    int64_t addend;
    bp_calibration calibration;
    bp_jemalloc_layout layout;
    char clause[256];
    if (!bp_elf_find_tls_slot(elf, &object->slot, &addend)) {
        refuse(object, BP_HEAP_FAILURE_TLS_ARITHMETIC, path,
               "this jemalloc keeps its counters in dynamic thread-local storage, without a slot "
               "that tells where");
        return;
    }
    object->has_slot = true;
    bp_dwarf_status status = bp_jemalloc_dwarf_read(elf->fd, path, &layout, clause, sizeof clause);
    int dwarf_errno = status == BP_DWARF_UNREADABLE ? errno : 0;
    if (status == BP_DWARF_FOUND) {
        calibration.allocated_place =
            (int64_t)(layout.block + layout.allocated_place - (uint64_t)addend);
        calibration.deallocated_place =
            (int64_t)(layout.block + layout.deallocated_place - (uint64_t)addend);
        if (bp_calibration_is_plausible(&calibration)) {
            take_calibration(object, &calibration);
            object->is_calibrated = false;
            return;
        }
    }
    calibrate(options, elf->fd, path, prefix, object);
    if (!object->is_calibrated && object->read_errno == 0) {
        object->read_errno = dwarf_errno;
    }
}

/* Every jemalloc has messages that begin with this, except for the first letter: else this program
 * had it, too. */
static bool has_messages(bp_elf_object *elf) {
    char mark[] = "?jemalloc>: ";
    mark[0] = '<';
    return bp_elf_has_text(elf, mark);
}

/* The executable: its block has a fixed place. */
static void examine_executable(bp_elf_object *elf, const char *path, const char *prefix,
                               bp_known_object *object) {
    bp_jemalloc_layout layout;
    const Elf64_Phdr *segment = bp_elf_tls_segment(elf);
    char clause[256];
    bp_dwarf_status status = bp_jemalloc_dwarf_read(elf->fd, path, &layout, clause, sizeof clause);
    if (status == BP_DWARF_UNREADABLE) {
        object->read_errno = errno;
    }
    if (status == BP_DWARF_NO_JEMALLOC && prefix == NULL && has_messages(elf)) {
        (void)snprintf(clause, sizeof clause,
                       "its jemalloc has no symbols, which say where the counters are");
        status = BP_DWARF_NO_LAYOUT;
    } else if ((status == BP_DWARF_NO_JEMALLOC || status == BP_DWARF_UNREADABLE) &&
               prefix == NULL) {
        return;
    }
    if ((status == BP_DWARF_NO_LIBRARY || status == BP_DWARF_TOO_MUCH) && prefix == NULL) {
        /* Unknown whether there is one; the sentence of a process without a jemalloc includes this
         * clause. */
        (void)snprintf(object->reason, sizeof object->reason, "%s", clause);
        return;
    }
    object->kind = BP_OBJECT_JEMALLOC;
    if (status != BP_DWARF_FOUND) {
        refuse(object, BP_HEAP_FAILURE_DWARF_PARSE, path, clause);
        return;
    }
    /* Symbol and members are checked together: the block ends after its last counter. */
    uint64_t end = layout.allocated_place > layout.deallocated_place ? layout.allocated_place
                                                                     : layout.deallocated_place;
    int64_t block;
    if (end > layout.block_bytes || layout.block_bytes - end < sizeof(uint64_t) ||
        segment == NULL ||
        !bp_tls_executable_offset(BP_ELF_OWN_MACHINE, segment, layout.block, layout.block_bytes,
                                  &block)) {
        refuse(object, BP_HEAP_FAILURE_TLS_ARITHMETIC, path,
               "its debug data and its thread-local segment contradict each other");
        return;
    }
    object->allocated_place = block + (int64_t)layout.allocated_place;
    object->deallocated_place = block + (int64_t)layout.deallocated_place;
}

/* Examines the file `fd`, which a process has mapped as `path`. Fills everything from `kind` on;
 * the caller has set the members before it. */
static void examine_elf(const bp_heap_prober_options *options, bp_elf_status status,
                        bp_elf_object *elf, const char *path, bp_known_object *object) {
    const bool is_executable = object->is_executable;
    if (status == BP_ELF_OTHER_MACHINE && is_executable) {
        refuse(object, BP_HEAP_FAILURE_ARCH_MISMATCH, path,
               "it is a program of another architecture than this bugpack");
        return;
    }
    if (status != BP_ELF_OK || !bp_elf_code_address(elf, &object->code_address)) {
        return;
    }
    object->read_errno = bp_read_build_id(elf->fd, object->build_id);
    if (bp_libc_layout_read(elf, &object->libc)) {
        object->kind = BP_OBJECT_LIBC;
        return;
    }
    const char *prefix = find_prefix(elf);
    if (is_executable) {
        examine_executable(elf, path, prefix, object);
    } else if (prefix != NULL) {
        object->kind = BP_OBJECT_JEMALLOC;
        examine_library(options, elf, path, prefix, object);
    }
}

bugpack_status bp_heap_prober_new(const bp_heap_prober_options *options,
                                  bp_heap_prober **ret_prober, bugpack_error *error) {
    bp_heap_prober *prober = calloc(1, sizeof *prober);
    if (prober == NULL) {
        return bp_fail_memory(error, "prepare a probe");
    }
    prober->options = *options;
    if (options->calibrator_path != NULL) {
        prober->options.calibrator_path = strdup(options->calibrator_path);
        if (prober->options.calibrator_path == NULL) {
            bp_heap_prober_free(prober);
            return bp_fail_memory(error, "prepare a probe");
        }
    }
    *ret_prober = prober;
    return BUGPACK_OK;
}

void bp_heap_prober_free(bp_heap_prober *prober) {
    if (prober == NULL) {
        return;
    }
    for (size_t i = 0; i < BP_KNOWN_OBJECT_BUCKETS; i++) {
        for (bp_known_object *object = prober->buckets[i], *next; object != NULL; object = next) {
            next = object->next;
            free(object);
        }
    }
    free((char *)(uintptr_t)prober->options.calibrator_path);
    free(prober);
}

/* One process and its search. */
struct search {
    bp_heap_prober *prober;
    int process_fd;
    uint64_t executable_inode;
    bool has_own_root;
    bp_jemalloc_found *found;
};

static bp_known_object *recall(const struct search *search, bp_mapped_file *mapped,
                               bool is_executable) {
    bp_known_object *object = search->prober->buckets[mapped->inode % BP_KNOWN_OBJECT_BUCKETS];
    while (object != NULL &&
           (object->inode != mapped->inode || object->device_major != mapped->device_major ||
            object->device_minor != mapped->device_minor ||
            object->is_executable != is_executable ||
            object->has_own_root != search->has_own_root)) {
        object = object->next;
    }
    return object;
}

/* 0, or the errno for which nothing can be said about the file. */
static int examine(struct search *search, bp_mapped_file *mapped, bp_known_object *object) {
    bool is_there;
    int fd = bp_mapped_file_open(search->process_fd, mapped, &is_there);
    int open_errno = errno;
    (void)bp_mapped_file_cut_deleted(mapped);
    if (fd < 0) {
        bugpack_error error = BUGPACK_ERROR_INIT;
        (void)bp_fail_process_errno(&error, open_errno, "cannot open \"%s\"", mapped->path);
        memcpy(object->reason, error.message, sizeof object->reason);
        return bp_mapped_file_is_unknown(open_errno, is_there) ? open_errno : 0;
    }
    bp_elf_object elf;
    bp_elf_status status = bp_elf_object_read(fd, &elf);
    examine_elf(&search->prober->options, status, &elf, mapped->path, object);
    (void)close(fd);
    object->read_errno = object->read_errno != 0 ? object->read_errno : elf.read_errno;
    return object->read_errno;
}

/* Examines a file that is not known yet. */
static bugpack_status learn(struct search *search, bp_mapped_file *mapped, bool is_executable,
                            bp_known_object **ret_object, bugpack_error *error) {
    bp_heap_prober *prober = search->prober;
    bp_known_object *object = calloc(1, sizeof *object);
    if (object == NULL) {
        return bp_fail_memory(error, "look at the files of a process");
    }
    object->device_major = mapped->device_major;
    object->device_minor = mapped->device_minor;
    object->inode = mapped->inode;
    object->is_executable = is_executable;
    object->has_own_root = search->has_own_root;
    int result = examine(search, mapped, object);
    if (result != 0) {
        free(object);
        return bp_fail_errno(error, result, "cannot look for a jemalloc in \"%s\"", mapped->path);
    }
    object->next = prober->buckets[object->inode % BP_KNOWN_OBJECT_BUCKETS];
    prober->buckets[object->inode % BP_KNOWN_OBJECT_BUCKETS] = object;
    *ret_object = object;
    return BUGPACK_OK;
}

static bugpack_status fail_found(struct search *search, bp_heap_failure failure,
                                 const char *reason) {
    search->found->failure = failure;
    (void)snprintf(search->found->reason, sizeof search->found->reason, "%s", reason);
    return BUGPACK_OK;
}

/* Examines one file of the process and records the result in `found`. */
static bugpack_status look_at(struct search *search, bp_mapped_file *mapped, bugpack_error *error) {
    bp_jemalloc_found *found = search->found;
    bool is_executable = mapped->inode == search->executable_inode;
    bp_known_object *known = recall(search, mapped, is_executable);
    bugpack_status status =
        known != NULL ? BUGPACK_OK : learn(search, mapped, is_executable, &known, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (known->kind == BP_OBJECT_LIBC && !found->has_libc) {
        found->has_libc = true;
        found->libc = known->libc;
        found->libc_base = mapped->code_start - known->code_address;
    } else if (known->kind == BP_OBJECT_JEMALLOC && found->path == NULL) {
        (void)bp_mapped_file_cut_deleted(mapped); /* where the file was known already */
        found->path = strdup(mapped->path);
        if (found->path == NULL) {
            return bp_fail_memory(error, "look at the files of a process");
        }
        found->jemalloc = *known;
        found->jemalloc_base = mapped->code_start - known->code_address;
        return known->failure == BP_HEAP_FAILURE_NONE
                   ? BUGPACK_OK
                   : fail_found(search, known->failure, known->reason);
    } else if (known->failure == BP_HEAP_FAILURE_ARCH_MISMATCH) {
        return fail_found(search, known->failure, known->reason);
    } else if (known->reason[0] != '\0' && found->reason[0] == '\0') {
        /* The reason to give if no jemalloc is found: this file was not examined. */
        (void)snprintf(found->reason, sizeof found->reason, "%s", known->reason);
    }
    return BUGPACK_OK;
}

/* True if the last component of its path holds this word. */
static bool is_called(const bp_mapped_file *mapped, const char *word) {
    return strstr(bp_file_base_name(mapped->path), word) != NULL;
}

static unsigned pass_of(const struct search *search, const bp_mapped_file *file) {
    if (file->inode == search->executable_inode) {
        return 1;
    }
    return is_called(file, "jemalloc") || is_called(file, "libc.so") ? 0 : 2;
}

/* Examines the likeliest files first. Goes on until libc is known, which is never the last. */
static bugpack_status look_at_all(struct search *search, const bp_mapped_files *files,
                                  bugpack_error *error) {
    bp_jemalloc_found *found = search->found;
    bugpack_status status = BUGPACK_OK;
    uint64_t deadline_ns =
        bp_clock_monotonic_ns() + search->prober->options.search_timeout_ms * BP_NS_PER_MS;
    for (unsigned pass = 0; pass < 3 && status == BUGPACK_OK; pass++) {
        for (size_t i = 0; i < files->count && status == BUGPACK_OK; i++) {
            bp_mapped_file *file = &files->items[i];
            bool is_enough = pass == 2 && found->path != NULL;
            if (pass_of(search, file) != pass || is_enough ||
                found->failure != BP_HEAP_FAILURE_NONE) {
                continue;
            }
            if (bp_clock_monotonic_ns() >= deadline_ns) {
                (void)snprintf(found->reason, sizeof found->reason,
                               "looking through its %zu files took too long", files->count);
                return BUGPACK_OK;
            }
            status = look_at(search, file, error);
        }
    }
    return status;
}

/* 0, or the errno for which the root of the process is unknown. */
static int compare_roots(int process_fd, bool *ret_has_own_root) {
    struct stat theirs, ours;
    if (fstatat(process_fd, "root", &theirs, 0) != 0 || stat("/", &ours) != 0) {
        *ret_has_own_root = false;
        return bp_errno_is_trouble(errno) ? errno : 0;
    }
    *ret_has_own_root = theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
    return 0;
}

bugpack_status bp_jemalloc_find(bp_heap_prober *prober, int process_fd,
                                bp_jemalloc_found *ret_found, bugpack_error *error) {
    bp_jemalloc_found found = {0};
    struct search search = {.prober = prober, .process_fd = process_fd, .found = &found};
    bp_mapped_files files = {0};
    char link[1];
    struct stat executable;
    bugpack_status status = BUGPACK_OK;
    int result;
    if (readlinkat(process_fd, "exe", link, sizeof link) < 0 ||
        fstatat(process_fd, "exe", &executable, 0) != 0) {
        found.failure = BP_HEAP_FAILURE_READLINK;
        found.system_errno = errno;
        goto out;
    }
    search.executable_inode = executable.st_ino;
    result = compare_roots(process_fd, &search.has_own_root);
    if (result != 0) {
        status = bp_fail_errno(error, result, "cannot find the root directory of a process");
        goto out;
    }
    found.system_errno = bp_mapped_files_read(process_fd, false, &files);
    if (found.system_errno == ENOMEM) {
        status = bp_fail_memory(error, "look at the files of a process");
        goto out;
    }
    if (found.system_errno != 0) {
        found.failure = BP_HEAP_FAILURE_MAPS_READ;
        goto out;
    }
    status = look_at_all(&search, &files, error);
    if (status == BUGPACK_OK && found.path == NULL && found.failure == BP_HEAP_FAILURE_NONE) {
        found.failure = BP_HEAP_FAILURE_JEMALLOC_NOT_FOUND;
    }
out:
    bp_mapped_files_release(&files);
    if (status != BUGPACK_OK) {
        free(found.path);
        return status;
    }
    *ret_found = found;
    return BUGPACK_OK;
}
