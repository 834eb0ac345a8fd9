#include "heap/jemalloc_find.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "process/debug_file.h"
#include "process/elf_object.h"

/* No jemalloc has more debug data: limits against files made to keep us busy. */
static const unsigned unit_max = 200000;
static const unsigned entry_max = 20000000;
static const uint64_t search_max_ns = 10 * BP_NS_PER_SEC;

/* "tsd_tls" after any prefix; a compiler may have appended ".llvm.4711". */
static bool is_block_name(const char *name) {
    static const char word[] = "tsd_tls";
    const char *found = name;
    while ((found = strstr(found, word)) != NULL) {
        const char *rest = found + sizeof word - 1;
        if ((found == name || found[-1] == '_') && (*rest == '\0' || *rest == '.')) {
            return true;
        }
        found = rest;
    }
    return false;
}

/*
 * libelf and libdw do not say that a read failed. Only the errno of a call that failed can show it:
 * dwarf_begin_elf leaves EINVAL of an inner realpath where it succeeds.
 */
static bool find_in_table(const bp_libdw *dw, Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
                          bp_jemalloc_layout *layout, int *ret_errno) {
    errno = 0;
    Elf_Data *data = dw->elf_getdata(section, NULL);
    if (data == NULL || header->sh_entsize == 0) {
        *ret_errno = data == NULL ? errno : *ret_errno;
        return false;
    }
    uint64_t count = header->sh_size / header->sh_entsize;
    for (uint64_t i = 0; i < count && i < INT_MAX; i++) {
        GElf_Sym symbol;
        if (dw->gelf_getsym(data, (int)i, &symbol) == NULL) {
            return false;
        }
        if (GELF_ST_TYPE(symbol.st_info) != STT_TLS || symbol.st_shndx == SHN_UNDEF) {
            continue;
        }
        const char *name = dw->elf_strptr(elf, header->sh_link, symbol.st_name);
        if (name != NULL && is_block_name(name)) {
            layout->block = symbol.st_value;
            layout->block_bytes = symbol.st_size;
            return true;
        }
    }
    return false;
}

static bool find_block(const bp_libdw *dw, Elf *elf, bp_jemalloc_layout *layout, int *ret_errno) {
    for (Elf_Scn *section = NULL; (section = dw->elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        if (dw->gelf_getshdr(section, &header) != NULL &&
            (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM) &&
            find_in_table(dw, elf, section, &header, layout, ret_errno)) {
            return true;
        }
    }
    return false;
}

/*
 * The members of tsd_s have mangled names that end with the plain name (TSD_MANGLE in tsd.h):
 * "cant_access_tsd_items_directly_…_thread_allocated". Another member,
 * thread_allocated_next_event_fast, does not end so.
 */
static bool is_member(const char *name, const char *plain) {
    size_t name_bytes = strlen(name);
    size_t plain_bytes = strlen(plain);
    return name_bytes >= plain_bytes && strcmp(name + name_bytes - plain_bytes, plain) == 0 &&
           (name_bytes == plain_bytes || name[name_bytes - plain_bytes - 1] == '_');
}

/* thread_deallocated ends in "_…allocated" too, but never in "_thread_allocated". */
static bool read_members(const bp_libdw *dw, Dwarf_Die *structure, bp_jemalloc_layout *layout) {
    Dwarf_Die member;
    bool has_allocated = false;
    bool has_deallocated = false;
    unsigned count = 0;
    int more = dw->dwarf_child(structure, &member);
    for (; more == 0 && count < 4096; more = dw->dwarf_siblingof(&member, &member), count++) {
        Dwarf_Attribute attribute;
        Dwarf_Word place;
        const char *name = dw->dwarf_diename(&member);
        if (dw->dwarf_tag(&member) != DW_TAG_member || name == NULL ||
            dw->dwarf_attr(&member, DW_AT_data_member_location, &attribute) == NULL ||
            dw->dwarf_formudata(&attribute, &place) != 0) {
            continue;
        }
        if (!has_allocated && is_member(name, "thread_allocated")) {
            layout->allocated_place = place;
            has_allocated = true;
        } else if (!has_deallocated && is_member(name, "thread_deallocated")) {
            layout->deallocated_place = place;
            has_deallocated = true;
        }
    }
    return has_allocated && has_deallocated;
}

/* The rest of a search's budget. Moving to an entry's sibling can take libdw over all entries below
 * it, so a count alone is no limit. */
struct allowance {
    unsigned entries_left;
    uint64_t deadline_ns;
};

static bool may_go_on(struct allowance *allowance) {
    return allowance->entries_left > 0 && allowance->entries_left-- > 0 &&
           bp_clock_monotonic_ns() < allowance->deadline_ns;
}

/* The structure is at the top level of each compilation unit of jemalloc. */
static bool find_in_unit(const bp_libdw *dw, Dwarf_Die *unit, struct allowance *allowance,
                         bp_jemalloc_layout *layout) {
    Dwarf_Die entry;
    int more = dw->dwarf_child(unit, &entry);
    for (; more == 0 && may_go_on(allowance); more = dw->dwarf_siblingof(&entry, &entry)) {
        if (dw->dwarf_tag(&entry) != DW_TAG_structure_type ||
            dw->dwarf_hasattr(&entry, DW_AT_declaration)) {
            continue;
        }
        const char *name = dw->dwarf_diename(&entry);
        if (name != NULL && strcmp(name, "tsd_s") == 0 && read_members(dw, &entry, layout)) {
            return true;
        }
    }
    return false;
}

/* Reads all debug data into memory, so it is called only for a file with the symbol. */
static bool find_structure(const bp_libdw *dw, bp_debug_file *file, bp_jemalloc_layout *layout,
                           int *ret_errno) {
    struct allowance allowance = {entry_max, bp_clock_monotonic_ns() + search_max_ns};
    Dwarf_Off offset = 0;
    Dwarf_Off next;
    size_t header_bytes;
    errno = 0;
    file->dwarf = dw->dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
    *ret_errno = file->dwarf == NULL ? errno : *ret_errno;
    for (unsigned i = 0; file->dwarf != NULL && i < unit_max && may_go_on(&allowance);
         i++, offset = next) {
        Dwarf_Die unit;
        errno = 0;
        int more = dw->dwarf_nextcu(file->dwarf, offset, &next, &header_bytes, NULL, NULL, NULL);
        if (more != 0 || next <= offset) {
            *ret_errno = more < 0 ? errno : *ret_errno;
            return false;
        }
        if (dw->dwarf_offdie(file->dwarf, offset + header_bytes, &unit) != NULL &&
            find_in_unit(dw, &unit, &allowance, layout)) {
            return true;
        }
    }
    return false;
}

/* Symbol and structure may be in different files: strip can remove one of them. */
static bp_dwarf_status search(const bp_libdw *dw, bp_debug_file *own, const char *path,
                              bp_jemalloc_layout *layout) {
    bp_debug_file separate = {.fd = -1};
    int own_errno = 0, separate_errno = 0;
    bool has_block = find_block(dw, own->elf, layout, &own_errno);
    bool has_structure = has_block && find_structure(dw, own, layout, &own_errno);
    if (!has_structure && bp_errno_is_trouble(own_errno)) {
        errno = own_errno;
        return BP_DWARF_UNREADABLE;
    }
    if (!has_structure &&
        bp_debug_file_open_separate(dw, own->elf, path, &separate, &separate_errno)) {
        separate_errno = 0;
        has_block = has_block || find_block(dw, separate.elf, layout, &separate_errno);
        has_structure = has_block && find_structure(dw, &separate, layout, &separate_errno);
        bp_debug_file_close(dw, &separate);
    }
    if (has_structure) {
        return BP_DWARF_FOUND;
    }
    if (bp_errno_is_trouble(separate_errno)) {
        errno = separate_errno;
        return BP_DWARF_UNREADABLE;
    }
    return has_block ? BP_DWARF_NO_LAYOUT : BP_DWARF_NO_JEMALLOC;
}

/* With errno, which it keeps. */
static bp_dwarf_status fail_read(char *reason, size_t reason_bytes) {
    int read_errno = errno;
    char message[BP_ERRNO_BYTES];
    bp_describe_errno(read_errno, message);
    (void)snprintf(reason, reason_bytes, "it cannot be read: %s", message);
    errno = read_errno;
    return BP_DWARF_UNREADABLE;
}

bp_dwarf_status bp_jemalloc_dwarf_read(int fd, const char *path, bp_jemalloc_layout *ret_layout,
                                       char *reason, size_t reason_bytes) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    const bp_libdw *dw = bp_libdw_get(&error);
    bp_jemalloc_layout layout = {0};
    bp_debug_file file;
    if (dw == NULL) {
        (void)snprintf(reason, reason_bytes, "%s", error.message);
        return BP_DWARF_NO_LIBRARY;
    }
    errno = 0;
    if (bp_elf_memory_bytes(fd) > BP_DEBUG_FILE_MAX_BYTES) {
        if (bp_errno_is_trouble(errno)) {
            return fail_read(reason, reason_bytes);
        }
        (void)snprintf(reason, reason_bytes,
                       "its symbols and debug data would take over 1 GiB of memory, "
                       "or its tables make no sense");
        return BP_DWARF_TOO_MUCH;
    }
    bool is_open = bp_debug_file_open(dw, fcntl(fd, F_DUPFD_CLOEXEC, 3), &file);
    bp_dwarf_status status =
        bp_errno_is_trouble(errno) ? BP_DWARF_UNREADABLE : BP_DWARF_NO_JEMALLOC;
    if (is_open) {
        status = search(dw, &file, path, &layout);
    }
    int search_errno = errno;
    bp_debug_file_close(dw, &file);
    if (status == BP_DWARF_FOUND) {
        *ret_layout = layout;
    } else if (status == BP_DWARF_UNREADABLE) {
        errno = search_errno;
        return fail_read(reason, reason_bytes);
    } else {
        (void)snprintf(
            reason, reason_bytes, "%s",
            status == BP_DWARF_NO_LAYOUT
                ? "it has jemalloc's symbol tsd_tls, but neither it nor a separate debug "
                  "file describes struct tsd_s"
                : "it has no symbol called tsd_tls");
    }
    return status;
}
