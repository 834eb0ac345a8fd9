#include "process/java_threads.h"

#include <string.h>

/* Java 17 has 2,000 entries, of 200 types; a program has some hundred threads. */
enum { entry_max = 8192, name_max = 48, thread_max = 1024, piece_count = 128 };

/* The last one of what is wanted is not there in all versions. */
enum { wanted_count = 10 };

/* An entry of the table: VMStructEntry in vmStructs.hpp. The library exports its offsets too, which
 * have been the same in all versions, and are checked. The last one, of what is 8 bytes, gives the
 * size; that is exported as well, but not by Java 25. */
struct entry {
    uint64_t type_name, field_name, field_type;
    int32_t is_static, padding;
    uint64_t offset, address;
};

struct wanted {
    const char *type, *field;
    bool is_static;
    uint64_t *value;
    bool is_found;
};

struct table {
    const bp_java_layout *layout;
    struct wanted wanted[wanted_count];
    uint64_t last_type; /* the name that was read last, as entries of a type follow each other */
    char type[name_max];
};

static bool read_name(const struct table *table, uint64_t address, char out[name_max]) {
    bool is_read = table->layout->read(table->layout->context, address, out, name_max);
    return is_read && memchr(out, '\0', name_max) != NULL;
}

/* Members of JavaThread were members of Thread before Java 17. */
static bool is_of_type(const char *type, const char *wanted) {
    return strcmp(type, wanted) == 0 ||
           (strcmp(type, "Thread") == 0 && strcmp(wanted, "JavaThread") == 0);
}

static void take_entry(struct table *table, const struct entry *entry) {
    char field[name_max] = "";
    if (entry->type_name != table->last_type) {
        table->last_type = entry->type_name;
        if (!read_name(table, entry->type_name, table->type)) {
            table->type[0] = '\0';
        }
    }
    for (size_t i = 0; i < wanted_count; i++) {
        struct wanted *wanted = &table->wanted[i];
        if (!is_of_type(table->type, wanted->type) ||
            (entry->is_static != 0) != wanted->is_static ||
            (field[0] == '\0' && !read_name(table, entry->field_name, field)) ||
            strcmp(field, wanted->field) != 0) {
            continue;
        }
        *wanted->value = wanted->is_static ? entry->address : entry->offset;
        wanted->is_found = true;
    }
}

/* The value of a variable that the library exports. */
static bool read_export(bp_elf_object *libjvm, uint64_t base, const bp_java_layout *layout,
                        const char *name, uint64_t *ret_value) {
    Elf64_Sym symbol;
    return bp_elf_find_symbol(libjvm, name, &symbol) &&
           layout->read(layout->context, base + symbol.st_value, ret_value, sizeof *ret_value);
}

static bool has_known_entries(bp_elf_object *libjvm, uint64_t base, const bp_java_layout *layout) {
    static const struct {
        const char *name;
        uint64_t value;
    } rows[] = {{"gHotSpotVMStructEntryTypeNameOffset", offsetof(struct entry, type_name)},
                {"gHotSpotVMStructEntryFieldNameOffset", offsetof(struct entry, field_name)},
                {"gHotSpotVMStructEntryIsStaticOffset", offsetof(struct entry, is_static)},
                {"gHotSpotVMStructEntryOffsetOffset", offsetof(struct entry, offset)},
                {"gHotSpotVMStructEntryAddressOffset", offsetof(struct entry, address)}};
    bool has_it = true;
    for (size_t i = 0; has_it && i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t value;
        has_it = read_export(libjvm, base, layout, rows[i].name, &value) && value == rows[i].value;
    }
    return has_it;
}

static bool has_all(const struct table *table) {
    const struct wanted *wanted = table->wanted;
    bool has_it = true;
    for (size_t i = 0; i + 1 < wanted_count; i++) {
        has_it = has_it && wanted[i].is_found;
    }
    return has_it;
}

bool bp_java_layout_read(bp_elf_object *libjvm, uint64_t base, bp_java_layout *layout) {
    struct table table = {
        .layout = layout,
        .wanted = {
            {"JavaThread", "_osthread", false, &layout->system_thread, false},
            {"JavaThread", "_current_pending_monitor", false, &layout->pending_monitor, false},
            {"JavaThread", "_stack_base", false, &layout->stack_base, false},
            {"JavaThread", "_stack_size", false, &layout->stack_bytes, false},
            {"ThreadsSMRSupport", "_java_thread_list", true, &layout->list, false},
            {"ThreadsList", "_length", false, &layout->list_length, false},
            {"ThreadsList", "_threads", false, &layout->list_threads, false},
            {"OSThread", "_thread_id", false, &layout->system_tid, false},
            {"ObjectMonitor", "_owner", false, &layout->owner, false},
            {"JavaThread", "_monitor_owner_id", false, &layout->id, false}}};
    struct entry entries[piece_count];
    uint64_t at;
    if (!has_known_entries(libjvm, base, layout) ||
        !read_export(libjvm, base, layout, "gHotSpotVMStructs", &at)) {
        return false;
    }
    for (size_t i = 0, here = piece_count; i < entry_max && here == piece_count; i += here) {
        if (!layout->read(layout->context, at + i * sizeof entries[0], entries, sizeof entries)) {
            return false;
        }
        for (here = 0; here < piece_count && entries[here].type_name != 0; here++) {
            take_entry(&table, &entries[here]);
        }
    }
    layout->has_id = table.wanted[wanted_count - 1].is_found;
    return has_all(&table);
}

/* The threads of a virtual machine, and how the owner of a monitor is known to be one of them. */
struct threads {
    const bp_java_layout *layout;
    uint64_t items[thread_max];
    uint32_t count;
    bool has_owners;
    uint64_t owners[thread_max], ends[thread_max]; /* the stack, or the number alone; 0: unknown */
};

static bool read(const struct threads *threads, uint64_t address, void *out, size_t bytes) {
    return threads->layout->read(threads->layout->context, address, out, bytes);
}

static bool read_word(const struct threads *threads, uint64_t address, uint64_t *ret_value) {
    return read(threads, address, ret_value, sizeof *ret_value);
}

static bool read_tid(const struct threads *threads, size_t place, uint64_t *ret_tid) {
    uint64_t system_thread;
    int32_t tid;
    if (!read_word(threads, threads->items[place] + threads->layout->system_thread,
                   &system_thread) ||
        !read(threads, system_thread + threads->layout->system_tid, &tid, sizeof tid) || tid <= 0) {
        return false;
    }
    *ret_tid = (uint64_t)tid;
    return true;
}

/* The first who asks needs them, as few programs have a thread that waits. */
static void read_owners(struct threads *threads) {
    const bp_java_layout *layout = threads->layout;
    for (size_t i = 0; !threads->has_owners && i < threads->count; i++) {
        uint64_t *owner = &threads->owners[i], *end = &threads->ends[i], bytes = 0;
        *owner = *end = 0;
        if (layout->has_id) {
            (void)read_word(threads, threads->items[i] + layout->id, owner);
            *end = *owner + 1;
        } else if (read_word(threads, threads->items[i] + layout->stack_base, end) &&
                   read_word(threads, threads->items[i] + layout->stack_bytes, &bytes) &&
                   bytes <= *end) {
            *owner = *end - bytes;
        }
    }
    threads->has_owners = true;
}

/* An owner is a thread; or, of one that locked the object before anybody waited, a place in its
 * stack; or its number, of which 1 and less are no thread's. */
static bool find_owner(struct threads *threads, uint64_t monitor, size_t *ret_place) {
    uint64_t owner;
    if (!read_word(threads, monitor + threads->layout->owner, &owner) || owner <= 1) {
        return false;
    }
    read_owners(threads);
    for (size_t i = 0; i < threads->count; i++) {
        bool is_it = owner >= threads->owners[i] && owner < threads->ends[i];
        if (is_it || (!threads->layout->has_id && owner == threads->items[i])) {
            *ret_place = i;
            return true;
        }
    }
    return false;
}

static bool read_list(struct threads *threads) {
    const bp_java_layout *layout = threads->layout;
    uint64_t list, first;
    return read_word(threads, layout->list, &list) &&
           read(threads, list + layout->list_length, &threads->count, sizeof threads->count) &&
           threads->count > 0 && threads->count <= thread_max &&
           read_word(threads, list + layout->list_threads, &first) &&
           read(threads, first, threads->items, threads->count * sizeof threads->items[0]);
}

size_t bp_java_find_waits(const bp_java_layout *layout, bp_java_wait *waits, size_t wait_max) {
    struct threads threads = {.layout = layout};
    size_t count = 0;
    if (!read_list(&threads)) {
        return 0;
    }
    for (size_t i = 0; i < threads.count && count < wait_max; i++) {
        bp_java_wait wait;
        size_t owner = 0; /* gcc with -Os does not see that it is set */
        if (read_word(&threads, threads.items[i] + layout->pending_monitor, &wait.monitor) &&
            wait.monitor != 0 && find_owner(&threads, wait.monitor, &owner) && owner != i &&
            read_tid(&threads, i, &wait.tid) && read_tid(&threads, owner, &wait.owner_tid)) {
            waits[count++] = wait;
        }
    }
    return count;
}
