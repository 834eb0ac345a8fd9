#include "ring/anchor.h"

#include <stddef.h>
#include <stdio.h>

/* Hidden and not static, so that the linker computes the note's distance to it. */
extern bp_anchor bp_anchor_of_process;

__attribute__((used)) bp_anchor bp_anchor_of_process = {.magic = BP_ANCHOR_MAGIC,
                                                        .version = BP_ANCHOR_VERSION,
                                                        .entry_bytes = sizeof(bp_anchor_entry),
                                                        .entry_count = BP_ANCHOR_ENTRY_COUNT};

_Static_assert(sizeof(bp_anchor_entry) == 64 && sizeof(((bp_anchor_entry *)NULL)->session_id) == 33,
               "readers of this version depend on the layout");

#ifdef __ELF__
/* Name size, descriptor size and type; the name, padded to 4; the descriptor. See elf(5). */
__asm__(".pushsection .note.bugpack,\"a\",%note\n"
        ".balign 4\n"
        ".long 8, 8, 1\n"
        ".asciz \"bugpack\"\n"
        "1: .quad bp_anchor_of_process - 1b\n"
        ".popsection");
#endif

bp_anchor_entry *bp_anchor_add(const void *address, uint64_t mapped_bytes, const char *session_id,
                               uint32_t kind, uint32_t number) {
    for (size_t i = 0; i < BP_ANCHOR_ENTRY_COUNT; i++) {
        bp_anchor_entry *entry = &bp_anchor_of_process.entries[i];
        uint32_t sequence = atomic_load_explicit(&entry->sequence, memory_order_relaxed);
        if (sequence % 2 != 0 || atomic_load_explicit(&entry->address, memory_order_relaxed) != 0 ||
            !atomic_compare_exchange_strong_explicit(&entry->sequence, &sequence, sequence + 1,
                                                     memory_order_acquire, memory_order_relaxed)) {
            continue;
        }
        entry->kind = kind;
        entry->mapped_bytes = mapped_bytes;
        entry->number = number;
        (void)snprintf(entry->session_id, sizeof entry->session_id, "%s", session_id);
        atomic_store_explicit(&entry->address, (uintptr_t)address, memory_order_relaxed);
        atomic_store_explicit(&entry->sequence, sequence + 2, memory_order_release);
        return entry;
    }
    return NULL;
}

void bp_anchor_remove(bp_anchor_entry *entry) {
    if (entry != NULL) {
        atomic_fetch_add_explicit(&entry->sequence, 1, memory_order_acquire);
        atomic_store_explicit(&entry->address, 0, memory_order_relaxed);
        atomic_fetch_add_explicit(&entry->sequence, 1, memory_order_release);
    }
}
