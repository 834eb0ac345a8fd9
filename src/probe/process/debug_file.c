#include "process/debug_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/file.h"
#include "base/status.h"
#include "base/utf8.h"
#include "platform/linux/files.h"
#include "process/elf_object.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bp_libdw functions;
static bool is_loaded;
static bugpack_status status = BUGPACK_ERR_UNSUPPORTED;
static const char *why_not = "libdw.so.1 cannot be loaded; Debian has it as libdw1";

/* A pointer to an object is copied into one to a function, as POSIX has it for dlsym. */
static bool load(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

/* A library would bring a second libc, which glibc does not support in a program without a dynamic
 * linker: its constructors crash. Such a program has no interpreter (elf(5)). */
static bool is_linked_statically(void) {
    const ElfW(Phdr) *header = (const void *)getauxval(AT_PHDR);
    unsigned long left = header != NULL ? getauxval(AT_PHNUM) : 0;
    while (left > 0 && header->p_type != PT_INTERP) {
        header++;
        left--;
    }
    return left == 0;
}

static void load_all(void) {
    if (sizeof(void *) < sizeof(uint64_t)) {
        why_not = "stacks are not read in programs of 32 bits";
        return;
    }
    if (is_linked_statically()) {
        why_not = "libdw.so.1 cannot be loaded into a statically linked program";
        return;
    }
    /* libelf's functions are found through it as well: it is what libdw itself is linked with. */
    void *library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *text = dlerror(); /* dlopen(3) has no errno */
        if (text == NULL || strstr(text, strerror(ENOMEM)) != NULL) {
            status = BUGPACK_ERR_NO_MEMORY;
            why_not = "there was not enough memory to load libdw.so.1 when it was first needed";
        }
        return;
    }
    is_loaded = true;
#define BP_LIBDW_LOAD(name) is_loaded = load(library, #name, &functions.name) && is_loaded;
    BP_LIBDW_FUNCTIONS(BP_LIBDW_LOAD)
#undef BP_LIBDW_LOAD
    if (is_loaded) {
        (void)functions.elf_version(EV_CURRENT);
    }
}

const bp_libdw *bp_libdw_get(bugpack_error *error) {
    (void)pthread_once(&once, load_all);
    if (is_loaded) {
        return &functions;
    }
    (void)bp_fail(error, status, "%s", why_not);
    return NULL;
}

void bp_debug_file_close(const bp_libdw *dw, bp_debug_file *file) {
    (void)dw->dwarf_end(file->dwarf);
    (void)dw->elf_end(file->elf);
    bp_file_close(file->fd);
    *file = (bp_debug_file){.fd = -1};
}

/* ELF_C_READ, not its mapped form: a file that shrinks meanwhile must not raise SIGBUS. */
bool bp_debug_file_open(const bp_libdw *dw, int fd, bp_debug_file *file) {
    *file = (bp_debug_file){.fd = fd};
    file->elf = bp_elf_memory_bytes(fd) <= BP_DEBUG_FILE_MAX_BYTES
                    ? dw->elf_begin(fd, ELF_C_READ, NULL)
                    : NULL;
    return file->elf != NULL;
}

/* Takes a separate file when it is of the same build; the caller closes it. */
static bool try_separate(const bp_libdw *dw, Elf *elf, const char *path, bp_debug_file *ret_file,
                         int *ret_errno) {
    const void *wanted;
    const void *found;
    ssize_t wanted_bytes = dw->dwelf_elf_gnu_build_id(elf, &wanted);
    if (wanted_bytes <= 0) {
        return false;
    }
    errno = 0; /* libelf does not say that a read failed */
    int fd = bp_open_regular(path);
    if (fd >= 0 && bp_debug_file_open(dw, fd, ret_file) &&
        dw->dwelf_elf_gnu_build_id(ret_file->elf, &found) == wanted_bytes &&
        memcmp(wanted, found, (size_t)wanted_bytes) == 0) {
        return true;
    }
    *ret_errno = bp_errno_is_trouble(errno) ? errno : *ret_errno;
    if (fd >= 0) {
        bp_debug_file_close(dw, ret_file);
    }
    return false;
}

void bp_debug_file_path(const char *build_id, char out[BP_DEBUG_FILE_PATH_BYTES]) {
    (void)snprintf(out, BP_DEBUG_FILE_PATH_BYTES, "/usr/lib/debug/.build-id/%.2s/%s.debug",
                   build_id, strlen(build_id) > 2 ? build_id + 2 : "");
}

static bool open_by_build_id(const bp_libdw *dw, Elf *elf, bp_debug_file *ret_file,
                             int *ret_errno) {
    const void *bits;
    char build_id[65], path[BP_DEBUG_FILE_PATH_BYTES];
    ssize_t byte_count = dw->dwelf_elf_gnu_build_id(elf, &bits);
    if (byte_count < 2 || byte_count > 32) {
        return false;
    }
    bp_hex_print(bits, (size_t)byte_count, build_id);
    bp_debug_file_path(build_id, path);
    return try_separate(dw, elf, path, ret_file, ret_errno);
}

/* The three places of gdb's manual, "Debugging Information in Separate Files". */
static bool open_by_link(const bp_libdw *dw, Elf *elf, const char *object_path,
                         bp_debug_file *ret_file, int *ret_errno) {
    static const char *const places[][2] = {{"", ""}, {"", ".debug/"}, {"/usr/lib/debug", ""}};
    GElf_Word checksum;
    const char *name = dw->dwelf_elf_gnu_debuglink(elf, &checksum);
    const char *slash = strrchr(object_path, '/');
    if (name == NULL || slash == NULL || strchr(name, '/') != NULL) {
        return false;
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char path[PATH_MAX];
        int length = snprintf(path, sizeof path, "%s%.*s%s%s", places[i][0],
                              (int)(slash - object_path + 1), object_path, places[i][1], name);
        if (length > 0 && (size_t)length < sizeof path &&
            try_separate(dw, elf, path, ret_file, ret_errno)) {
            return true;
        }
    }
    return false;
}

bool bp_debug_file_open_separate(const bp_libdw *dw, Elf *elf, const char *path,
                                 bp_debug_file *ret_file, int *ret_errno) {
    *ret_errno = 0;
    return open_by_build_id(dw, elf, ret_file, ret_errno) ||
           open_by_link(dw, elf, path, ret_file, ret_errno);
}
