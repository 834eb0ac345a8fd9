#include "probe/jemalloc_examine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "platform/linux/files.h"
#include "probe/calibration.h"
#include "probe/jemalloc_dwarf.h"

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
    if (options->use_cache && object->build_id[0] != '\0') {
        bp_calibration_cache_store(object->build_id, object->slot, &calibration);
    }
}

/* A library: its slot, and then the cache, debug data, or a calibration. */
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
    if (options->use_cache && object->build_id[0] != '\0' &&
        bp_calibration_cache_load(object->build_id, object->slot, &calibration)) {
        take_calibration(object, &calibration);
        return;
    }
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

/* The executable: its block has a fixed place. */
static void examine_executable(bp_elf_object *elf, const char *path, const char *prefix,
                               bp_known_object *object) {
    bp_jemalloc_layout layout;
    bp_tls_segment segment;
    char clause[256];
    bp_dwarf_status status = bp_jemalloc_dwarf_read(elf->fd, path, &layout, clause, sizeof clause);
    if (status == BP_DWARF_UNREADABLE) {
        object->read_errno = errno;
    }
    if ((status == BP_DWARF_NO_JEMALLOC || status == BP_DWARF_UNREADABLE) && prefix == NULL) {
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
        !bp_elf_tls_segment(elf, &segment) ||
        !bp_tls_executable_offset(BP_TLS_OWN_ARCH, &segment, layout.block, layout.block_bytes,
                                  &block)) {
        refuse(object, BP_HEAP_FAILURE_TLS_ARITHMETIC, path,
               "its debug data and its thread-local segment contradict each other");
        return;
    }
    object->allocated_place = block + (int64_t)layout.allocated_place;
    object->deallocated_place = block + (int64_t)layout.deallocated_place;
}

static void examine(const bp_heap_prober_options *options, bp_elf_status status, bp_elf_object *elf,
                    const char *path, bp_known_object *object) {
    const bool is_executable = object->is_executable;
    if (status == BP_ELF_OTHER_MACHINE && is_executable) {
        object->kind = BP_OBJECT_UNREADABLE;
        refuse(object, BP_HEAP_FAILURE_ARCH_MISMATCH, path,
               "it is a program of another architecture than this bugpack");
        return;
    }
    if (status != BP_ELF_OK || !bp_elf_code_address(elf, &object->code_address)) {
        object->kind = BP_OBJECT_OTHER;
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

void bp_jemalloc_examine(const bp_heap_prober_options *options, int fd, const char *path,
                         bp_known_object *object) {
    bp_elf_object elf;
    bp_elf_status status = bp_elf_object_read(fd, &elf);
    examine(options, status, &elf, path, object);
    object->read_errno = object->read_errno != 0 ? object->read_errno : elf.read_errno;
}
