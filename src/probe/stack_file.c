/*
 * How libdwfl gets the files of a process.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/linux/files.h"
#include "probe/elf_bounds.h"
#include "probe/elf_object.h"
#include "probe/remote_memory.h"
#include "probe/stack_modules.h"

/* What libdw reads into memory: symbols, and debug data where lines of source are wanted. */
static const uint64_t symbols_max_bytes = (uint64_t)256 << 20;
static const uint64_t debug_max_bytes = (uint64_t)96 << 20;
static const uint64_t unwind_max_bytes = (uint64_t)16 << 20;
enum { vdso_max_bytes = 32768 }; /* 4 to 8 KiB today */
static const off_t file_max_bytes = (off_t)4 << 30;

static void refuse(bp_stack_file *file, const char *reason) {
    (void)snprintf(file->facts.trouble, sizeof file->facts.trouble, "%s", reason);
}

static void refuse_errno(bp_stack_file *file, int system_errno, bool is_there) {
    char message[BP_ERRNO_BYTES];
    if (!is_there && !bp_errno_is_trouble(system_errno)) {
        refuse(file, "it was removed or replaced since it was loaded");
        return;
    }
    bp_describe_errno(system_errno, message);
    (void)snprintf(file->facts.trouble, sizeof file->facts.trouble, "it cannot be read: %s",
                   message);
}

/* Where the code is must agree with where the file begins, or every offset would be wrong. */
static bool is_loaded_as_usual(bp_stack_file *file, int fd) {
    bp_elf_object object;
    uint64_t code;
    uint64_t page_mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
    if (bp_elf_object_read(fd, &object) != BP_ELF_OK || !bp_elf_code_address(&object, &code)) {
        return false;
    }
    for (size_t i = 0; i < object.segment_count; i++) {
        if (object.segments[i].p_type == PT_LOAD) {
            file->facts.file_start = object.segments[i].p_vaddr & ~page_mask;
            return file->mapped.code_start - file->facts.start == code - file->facts.file_start;
        }
    }
    return false;
}

static bool is_only_ours(const struct stat *info) {
    return (info->st_uid == 0 || info->st_uid == geteuid()) && (info->st_mode & 022) == 0;
}

/* The size of all sections whose names begin so; 0 also where they cannot be read. */
static uint64_t section_bytes(const bp_libdw *dw, Elf *elf, const char *prefix) {
    Elf_Scn *section = NULL;
    size_t names;
    uint64_t bytes = 0;
    if (dw->elf_getshdrstrndx(elf, &names) != 0) {
        return 0;
    }
    while ((section = dw->elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr header;
        const char *name = dw->gelf_getshdr(section, &header) != NULL
                               ? dw->elf_strptr(elf, names, header.sh_name)
                               : NULL;
        if (name != NULL && strncmp(name, prefix, strlen(prefix)) == 0 &&
            header.sh_size <= UINT64_MAX - bytes) {
            bytes += header.sh_size;
        }
    }
    return bytes;
}

/* What bp_elf_is_within cannot see. ".gnu_debugdata" is compressed, and libdw expands it without a
 * limit. */
static const char *trouble_of(const bp_stack_file *file, Elf *elf) {
    const bp_libdw *dw = file->all->dw;
    return elf == NULL ? "it is no ELF file"
           : section_bytes(dw, elf, ".eh_frame") > unwind_max_bytes
               ? "its unwind tables take over 16 MiB"
           : !file->is_trusted && section_bytes(dw, elf, ".gnu_debugdata") > 0
               ? "another user could have packed anything into its table of symbols"
               : NULL;
}

/*
 * Reads the build id, and tells whether the file is what a dead process ran. That is known from
 * memory; else the file must not have been changed since.
 */
static bool is_what_ran(bp_stack_file *file, int fd, const struct stat *info) {
    const bp_crash_page *dead = file->all->dead;
    char build_id[sizeof file->facts.build_id] = "";
    (void)bp_read_build_id(fd, build_id);
    if (file->facts.build_id[0] != '\0') {
        return strcmp(file->facts.build_id, build_id) == 0;
    }
    memcpy(file->facts.build_id, build_id, sizeof build_id);
    return dead == NULL || (uint64_t)info->st_ctime < dead->at.wall_ns / BP_NS_PER_SEC;
}

/* ELF_C_READ, not its mapped form: a file that shrinks meanwhile must not raise SIGBUS. */
static Elf *open_elf(bp_stack_file *file, int fd) {
    const bp_libdw *dw = file->all->dw;
    struct stat info;
    if (fstat(fd, &info) != 0 || info.st_size > file_max_bytes ||
        !bp_elf_is_within(fd, symbols_max_bytes)) {
        refuse(file, "its symbols and debug data would take over 256 MiB of memory, "
                     "or its tables make no sense");
        return NULL;
    }
    if (!file->all->is_of_report && !is_loaded_as_usual(file, fd)) {
        refuse(file, "it is not loaded as its headers say");
        return NULL;
    }
    if (!is_what_ran(file, fd, &info)) {
        refuse(file, "it was changed since the process ran it");
        return NULL;
    }
    file->is_trusted = is_only_ours(&info);
    file->has_debug = file->is_trusted && bp_elf_is_within(fd, debug_max_bytes);
    Elf *elf = dw->elf_begin(fd, ELF_C_READ, NULL);
    const char *trouble = trouble_of(file, elf);
    if (trouble != NULL) {
        refuse(file, trouble);
        (void)dw->elf_end(elf);
        return NULL;
    }
    return elf;
}

/*
 * By the path that a report names, or as the debug file of its build id. That path is from outside:
 * one that could make an automounter ask a machine of its choice, or that is no file of a disk, is
 * not opened. -1 with errno.
 */
static int open_reported(const bp_stack_file *file) {
    static const char *const foreign[] = {"/net/", "/proc/", "/dev/", "/sys/"};
    const char *id = file->facts.build_id;
    char found[sizeof file->facts.build_id] = "", path[128];
    bool may_open = file->mapped.path[0] == '/' && strstr(file->mapped.path, "/../") == NULL;
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        may_open = may_open && strncmp(file->mapped.path, foreign[i], strlen(foreign[i])) != 0;
    }
    int fd = may_open ? bp_open_regular(file->mapped.path) : -1;
    if (fd >= 0 && bp_read_build_id(fd, found) == 0 && strcmp(found, id) == 0) {
        return fd;
    }
    bp_file_close(fd);
    (void)snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s.debug", id,
                   strlen(id) > 2 ? id + 2 : "");
    return bp_open_regular(path);
}

/* The vDSO is no file: a copy of it is. -1 with errno. */
static int copy_vdso(const bp_stack_file *file) {
    unsigned char image[vdso_max_bytes];
    uint64_t mapped_bytes = file->end - file->facts.start;
    size_t bytes = (size_t)mapped_bytes;
    int result = mapped_bytes > sizeof image
                     ? EFBIG
                     : bp_remote_read_one(file->all->pid, file->facts.start, image, bytes);
    int fd = result == 0 ? memfd_create("bugpack", MFD_CLOEXEC) : -1;
    if (fd >= 0 && (result = bp_file_write_all(fd, image, bytes)) != 0) {
        bp_file_close(fd);
        fd = -1;
    }
    errno = result != 0 ? result : errno;
    return fd;
}

static int find_elf(Dwfl_Module *module, void **context, const char *name, Dwarf_Addr base,
                    char **ret_name, Elf **ret_elf) {
    bp_stack_file *file = *context;
    bool is_there = false;
    (void)module;
    (void)name;
    (void)base;
    (void)ret_name;
    if (file == NULL || file->was_opened) {
        return -1;
    }
    file->was_opened = true;
    bp_stack_files_note_errno(file->all); /* before calls of ours change it */
    int fd = file->all->is_of_report ? open_reported(file)
             : file->mapped.inode == 0
                 ? copy_vdso(file)
                 : bp_mapped_file_open(file->all->process_fd, &file->mapped, &is_there);
    if (fd < 0) {
        refuse_errno(file, errno, is_there);
        return -1;
    }
    file->elf = open_elf(file, fd);
    bp_stack_files_note_errno(file->all);
    if (file->elf == NULL) {
        bp_file_close(fd);
        return -1;
    }
    *ret_elf = file->elf;
    return fd;
}

/*
 * libdwfl maps the descriptor that it gets, so the file must be one that nobody shortens: packages
 * install debug files as root. Its second call is about the file that dwz shares among several.
 */
static int find_debug(Dwfl_Module *module, void **context, const char *name, Dwarf_Addr base,
                      const char *file_name, const char *link, GElf_Word checksum,
                      char **ret_name) {
    bp_stack_file *file = *context;
    bp_debug_file found = {.fd = -1};
    struct stat info;
    int found_errno;
    (void)module;
    (void)name;
    (void)base;
    (void)file_name;
    (void)link;
    (void)checksum;
    (void)ret_name;
    if (file == NULL || file->was_debug_sought || file->elf == NULL || !file->is_trusted ||
        (file->all->is_host && !file->has_debug_frames)) {
        return -1;
    }
    file->was_debug_sought = true;
    bp_stack_files_note_errno(file->all);
    if (!bp_debug_file_open_separate(file->all->dw, file->elf, file->mapped.path, &found,
                                     &found_errno)) {
        file->all->lacked_memory = file->all->lacked_memory || found_errno == ENOMEM;
        return -1;
    }
    int fd = fstat(found.fd, &info) == 0 && info.st_uid == 0 && (info.st_mode & 022) == 0 &&
                     bp_elf_is_within(found.fd, debug_max_bytes)
                 ? dup(found.fd)
                 : -1;
    bp_debug_file_close(file->all->dw, &found);
    return fd;
}

static int no_section_address(Dwfl_Module *module, void **context, const char *name,
                              Dwarf_Addr base, const char *section, GElf_Word number,
                              const GElf_Shdr *header, Dwarf_Addr *ret_address) {
    (void)module, (void)context, (void)name, (void)base;
    (void)section, (void)number, (void)header, (void)ret_address;
    return -1;
}

const Dwfl_Callbacks bp_stack_file_callbacks = {
    .find_elf = find_elf, .find_debuginfo = find_debug, .section_address = no_section_address};
