#include "ring/anchor.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Hidden and not static, so that the linker computes the note's distance to it. */
extern bp_anchor bp_anchor_of_process;

__attribute__((used)) bp_anchor bp_anchor_of_process = {.magic = BP_ANCHOR_MAGIC,
                                                        .version = BP_ANCHOR_VERSION,
                                                        .entry_bytes = sizeof(bp_anchor_entry),
                                                        .entry_count = BP_ANCHOR_ENTRY_COUNT};

_Static_assert(sizeof(bp_anchor_entry) == 64 && sizeof(((bp_anchor_entry *)NULL)->session_id) == 33,
               "readers of this version depend on the layout");

/* Only programs of 64 bits are searched for it. */
#if defined(__ELF__) && defined(__LP64__)
/* Name size, descriptor size and type; the name, padded to 4; the descriptor. See elf(5). */
__asm__(".pushsection .note.bugpack,\"a\",%note\n"
        ".balign 4\n"
        ".long 8, 8, 1\n"
        ".asciz \"bugpack\"\n"
        "1: .quad bp_anchor_of_process - 1b\n"
        ".popsection");
#endif

/* The table after this one, made where there is none. NULL without memory. */
static bp_anchor *next_table(bp_anchor *table) {
    uint64_t next = atomic_load_explicit(&table->next, memory_order_acquire);
    if (next != 0) {
        return (bp_anchor *)(uintptr_t)next;
    }
    bp_anchor *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return NULL;
    }
    made->magic = BP_ANCHOR_MAGIC;
    made->version = BP_ANCHOR_VERSION;
    made->entry_bytes = sizeof(bp_anchor_entry);
    made->entry_count = BP_ANCHOR_ENTRY_COUNT;
    if (!atomic_compare_exchange_strong_explicit(&table->next, &next, (uintptr_t)made,
                                                 memory_order_acq_rel, memory_order_acquire)) {
        free(made); /* another thread was faster */
        made = (bp_anchor *)(uintptr_t)next;
    }
    return made;
}

/* Takes a free entry: its sequence is odd, and `*ret_sequence` what it was. NULL: none is free. */
static bp_anchor_entry *take_entry(bp_anchor *table, uint32_t *ret_sequence) {
    for (size_t i = 0; i < BP_ANCHOR_ENTRY_COUNT; i++) {
        bp_anchor_entry *entry = &table->entries[i];
        uint32_t sequence = atomic_load_explicit(&entry->sequence, memory_order_relaxed);
        if (sequence % 2 == 0 && atomic_load_explicit(&entry->address, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong_explicit(&entry->sequence, &sequence, sequence + 1,
                                                    memory_order_acquire, memory_order_relaxed)) {
            *ret_sequence = sequence;
            return entry;
        }
    }
    return NULL;
}

bp_anchor_entry *bp_anchor_add(const void *address, uint64_t mapped_bytes, const char *session_id,
                               uint32_t kind, uint32_t number) {
    uint32_t sequence = 0;
    bp_anchor_entry *entry = NULL;
    for (bp_anchor *table = &bp_anchor_of_process; table != NULL && entry == NULL;
         table = entry == NULL ? next_table(table) : NULL) {
        entry = take_entry(table, &sequence);
    }
    if (entry != NULL) {
        entry->kind = kind;
        entry->mapped_bytes = mapped_bytes;
        entry->number = number;
        (void)snprintf(entry->session_id, sizeof entry->session_id, "%s", session_id);
        atomic_store_explicit(&entry->address, (uintptr_t)address, memory_order_relaxed);
        atomic_store_explicit(&entry->sequence, sequence + 2, memory_order_release);
    }
    return entry;
}

void bp_anchor_remove(bp_anchor_entry *entry) {
    if (entry != NULL) {
        atomic_fetch_add_explicit(&entry->sequence, 1, memory_order_acquire);
        atomic_store_explicit(&entry->address, 0, memory_order_relaxed);
        atomic_fetch_add_explicit(&entry->sequence, 1, memory_order_release);
    }
}

struct bp_anchor_files_item {
    struct bp_anchor_files_item *next;
    bp_anchor_entry *entry;
    unsigned char file[]; /* a bp_anchor_file, which consists of bytes */
};

static char *name_of(struct bp_anchor_files_item *item) {
    return (char *)item->file;
}

static void drop(struct bp_anchor_files_item *item) {
    bp_anchor_remove(item->entry);
    free(item);
}

static void remove_file(bp_anchor_files *files, const char *name) {
    struct bp_anchor_files_item **link = &files->first;
    while (*link != NULL && strcmp(name_of(*link), name) != 0) {
        link = &(*link)->next;
    }
    struct bp_anchor_files_item *found = *link;
    if (found != NULL) {
        *link = found->next;
        drop(found);
    }
}

void bp_anchor_files_put(bp_anchor_files *files, const char *session_id, const char *name,
                         const void *bytes, size_t byte_count) {
    remove_file(files, name);
    size_t file_bytes = sizeof(bp_anchor_file) + byte_count;
    struct bp_anchor_files_item *item = bytes == NULL ? NULL : calloc(1, sizeof *item + file_bytes);
    if (item == NULL) {
        return;
    }
    item->next = files->first;
    (void)snprintf(name_of(item), BP_ANCHOR_FILE_NAME_BYTES, "%s", name);
    memcpy(item->file + sizeof(bp_anchor_file), bytes, byte_count);
    item->entry = bp_anchor_add(item->file, file_bytes, session_id, BP_ANCHOR_FILE, 0);
    if (item->entry == NULL) {
        free(item);
    } else {
        files->first = item;
    }
}

void bp_anchor_files_release(bp_anchor_files *files) {
    while (files->first != NULL) {
        remove_file(files, name_of(files->first));
    }
}
