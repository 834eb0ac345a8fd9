#include "process/thread_pointers.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "process/remote_memory.h"

/* Offsets inside glibc's structures are far below this. */
static const uint32_t offset_max = 1u << 20;

/* One constant: {bits, elements, offset}. */
static bool read_field(bp_elf_object *libc, const char *name, uint32_t bits, uint64_t *ret_offset) {
    Elf64_Sym symbol;
    uint32_t field[3];
    if (!bp_elf_find_symbol(libc, name, &symbol) ||
        !bp_elf_read_at(libc, symbol.st_value, field, sizeof field) ||
        (bits != 0 && field[0] != bits) || field[2] >= offset_max) {
        return false;
    }
    *ret_offset = field[2];
    return true;
}

bool bp_libc_layout_read(bp_elf_object *libc, bp_libc_layout *ret_layout) {
    bp_libc_layout layout;
    Elf64_Sym rtld;
    Elf64_Sym size;
    uint32_t descriptor_bytes;
    if (!bp_elf_find_symbol(libc, "__nptl_rtld_global", &rtld) ||
        !bp_elf_find_symbol(libc, "_thread_db_sizeof_pthread", &size) ||
        !bp_elf_read_at(libc, size.st_value, &descriptor_bytes, sizeof descriptor_bytes) ||
        descriptor_bytes >= offset_max ||
        !read_field(libc, "_thread_db_rtld_global__dl_stack_user", 0, &layout.lists[0]) ||
        !read_field(libc, "_thread_db_rtld_global__dl_stack_used", 0, &layout.lists[1]) ||
        !read_field(libc, "_thread_db_list_t_next", 64, &layout.link_next) ||
        !read_field(libc, "_thread_db_pthread_list", 0, &layout.descriptor_link) ||
        !read_field(libc, "_thread_db_pthread_tid", 32, &layout.descriptor_tid)) {
        return false;
    }
    layout.rtld_pointer = rtld.st_value;
    layout.descriptor_bytes = descriptor_bytes;
    *ret_layout = layout;
    return true;
}

struct walk {
    pid_t pid;
    const bp_libc_layout *layout;
    bp_thread_pointer *pointers;
    size_t count, capacity;
    size_t steps_left;
};

/*
 * Reads a descriptor's id and its link to the next. On x86-64 the third word of a descriptor points
 * to itself (tcbhead_t in sysdeps/x86_64/nptl/tls.h): what does not is no descriptor any more.
 */
static int visit(struct walk *walk, uint64_t link, uint64_t *ret_next) {
    uint64_t descriptor = link - walk->layout->descriptor_link;
    int32_t tid = 0;
    uint64_t self = descriptor;
    const bp_remote_piece pieces[] = {{descriptor + walk->layout->descriptor_tid, &tid, sizeof tid},
                                      {link + walk->layout->link_next, ret_next, sizeof *ret_next},
                                      {descriptor + 2 * sizeof self, &self, sizeof self}};
    size_t piece_count = BP_ELF_OWN_MACHINE == EM_X86_64 ? 3 : 2;
    int result = bp_remote_read(walk->pid, pieces, piece_count);
    if (result != 0 || tid <= 0 || self != descriptor) {
        return result; /* a starting or ended thread has no id */
    }
    bp_thread_pointer found = {.tid = ((uint64_t)tid),
                               .tid_address = descriptor + walk->layout->descriptor_tid};
    if (!bp_tls_thread_pointer(BP_ELF_OWN_MACHINE, descriptor, walk->layout->descriptor_bytes,
                               &found.pointer)) {
        return EFAULT;
    }
    if (!bp_array_reserve(&walk->pointers, walk->count, &walk->capacity)) {
        return ENOMEM;
    }
    walk->pointers[walk->count++] = found;
    return 0;
}

/* A list that changes meanwhile can mislead the walk; then what was found so far is used. */
static int walk_list(struct walk *walk, uint64_t head) {
    uint64_t link;
    int result = bp_remote_read_one(walk->pid, head + walk->layout->link_next, &link, sizeof link);
    while (result == 0 && link != head && link != 0 && walk->steps_left > 0) {
        walk->steps_left--;
        result = visit(walk, link, &link);
    }
    return result == EFAULT && walk->count > 0 ? 0 : result;
}

int bp_thread_pointers_list(pid_t pid, const bp_libc_layout *layout, uint64_t libc_base,
                            size_t thread_max, bp_thread_pointer **ret_pointers,
                            size_t *ret_count) {
    struct walk walk = {.pid = pid, .layout = layout, .steps_left = thread_max};
    uint64_t rtld = 0;
    int result = bp_remote_read_one(pid, libc_base + layout->rtld_pointer, &rtld, sizeof rtld);
    if (result == 0 && rtld == 0) {
        result = EFAULT; /* the loader has not set it yet */
    }
    for (size_t i = 0; i < 2 && result == 0; i++) {
        result = walk_list(&walk, rtld + layout->lists[i]);
    }
    if (result != 0) {
        free(walk.pointers);
        return result;
    }
    if (walk.count > 1) {
        qsort(walk.pointers, walk.count, sizeof *walk.pointers, bp_array_compare_u64);
    }
    *ret_pointers = walk.pointers;
    *ret_count = walk.count;
    return 0;
}

/* --- thread-local variables ------------------------------------------------------------------ */

/* No thread's segment or distance is larger. */
static const uint64_t far_bytes = (uint64_t)1 << 30;

/* User space is below this on both architectures, five-level page tables included. */
static const uint64_t address_end = (uint64_t)1 << 56;

static const uint64_t control_block_bytes = 16;

static bool is_segment_plausible(const Elf64_Phdr *segment) {
    uint64_t alignment = segment->p_align;
    return segment->p_memsz <= far_bytes && alignment <= far_bytes &&
           (alignment & (alignment - (alignment != 0))) == 0;
}

bool bp_tls_executable_offset(unsigned machine, const Elf64_Phdr *segment, uint64_t value,
                              uint64_t symbol_bytes, int64_t *ret_offset) {
    if (!is_segment_plausible(segment) || value > segment->p_memsz ||
        symbol_bytes > segment->p_memsz - value) {
        return false;
    }
    uint64_t mask = segment->p_align > 1 ? segment->p_align - 1 : 0;
    if (machine == EM_AARCH64) {
        /* The block starts at the first place after the TCB that is congruent to p_vaddr. */
        uint64_t start = control_block_bytes + ((segment->p_vaddr - control_block_bytes) & mask);
        *ret_offset = (int64_t)(start + value);
    } else {
        uint64_t below = segment->p_memsz + ((0 - segment->p_vaddr - segment->p_memsz) & mask);
        *ret_offset = (int64_t)value - (int64_t)below;
    }
    return true;
}

bool bp_tls_thread_pointer(unsigned machine, uint64_t descriptor, uint64_t descriptor_bytes,
                           uint64_t *ret_thread_pointer) {
    uint64_t distance = machine == EM_AARCH64 ? descriptor_bytes : 0;
    if (descriptor == 0 || descriptor >= address_end || distance > far_bytes) {
        return false;
    }
    *ret_thread_pointer = descriptor + distance;
    return true;
}

bool bp_tls_counter_address(unsigned machine, uint64_t thread_pointer, int64_t slot, bool has_slot,
                            int64_t offset, uint64_t *ret_address) {
    const int64_t far = (int64_t)far_bytes;
    if (has_slot) {
        bool is_right_side =
            machine == EM_AARCH64 ? slot >= (int64_t)control_block_bytes : slot < 0;
        if (!is_right_side || slot < -far || slot > far) {
            return false;
        }
    }
    if (offset < -far || offset > far || thread_pointer == 0 || thread_pointer >= address_end) {
        return false;
    }
    uint64_t address = thread_pointer + (uint64_t)(has_slot ? slot : 0) + (uint64_t)offset;
    if (address == 0 || address >= address_end || address % sizeof(uint64_t) != 0) {
        return false;
    }
    *ret_address = address;
    return true;
}
