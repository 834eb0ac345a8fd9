/*
 * Finds the exception of C++ that a thread which aborts has thrown. The runtime of C++ is not
 * asked: its thread-local memory may have to be allocated first, and a core has nobody to ask. A
 * pointer to the exception is on the stack, among the frames of __cxa_throw and std::terminate.
 */
#include "platform/linux/crash_collect.h"

#include <signal.h>
#include <string.h>

#include "platform/linux/proc_text.h"

/* The frames between a throw and the signal, of some handler of std::terminate, too. */
enum { searched_bytes = 16 << 10, word_count = searched_bytes / sizeof(uint64_t) };

/* In front of what is thrown, as libstdc++ (unwind-cxx.h) and libc++abi (cxa_exception.h) have it
 * on processors of 64 bits. */
typedef struct thrown {
    int32_t references, padding; /* libstdc++'s place for them */
    uint64_t primary;            /* libc++abi's place for them, or for what was rethrown */
    uint64_t type;               /* of a rethrown one of libstdc++, the object itself */
    uint64_t destructor, unexpected, terminate, next;
    int32_t handler_count; /* 0: neither caught nor ended by std::terminate */
    int32_t switch_value;
    uint64_t action, language, catch_temp, adjusted;
    uint64_t class; /* the header of unwinding begins here; pointers are to it */
    uint64_t rest_of_header[3];
} thrown;

static const uint64_t class_gnu = 0x474e5543432b2b00, class_llvm = 0x434c4e47432b2b00;

typedef struct finder {
    bp_crash_page *page;
    const bp_crash_source *source;
    bp_proc_map map;     /* the last one that was read: a host may have thousands */
    unsigned types_left; /* to look at: damaged ones may be bases of each other */
} finder;

/* Copies what one mapping has as a whole: no fault is to be raised, which would first be a
 * handler's that was put over ours. */
static bool read_memory(finder *self, uint64_t from, void *to, size_t byte_count) {
    bp_proc_scan scan = {self->page->maps, self->page->maps + self->page->maps_bytes};
    const bp_proc_map *map = &self->map;
    while (from < map->start || from >= map->end) {
        if (!bp_proc_take_map(&scan, &self->map)) {
            self->map = (bp_proc_map){.start = 0};
            return false;
        }
    }
    return map->is_readable && !map->is_shared && byte_count <= map->end - from &&
           self->source->copy(self->source->context, to, from, byte_count);
}

static uint64_t read_word(finder *self, uint64_t from) {
    uint64_t word = 0;
    return read_memory(self, from, &word, sizeof word) ? word : 0;
}

/* As much of a text as fits; "" where it cannot be read. */
static void read_text(finder *self, uint64_t from, char *out, size_t out_bytes) {
    enum { piece_bytes = 16 }; /* no page ends within an aligned piece */
    size_t used = 0;
    while (used < out_bytes - 1 && (used == 0 || out[used - 1] != '\0')) {
        size_t bytes = piece_bytes - (from + used) % piece_bytes;
        bytes = bytes < out_bytes - 1 - used ? bytes : out_bytes - 1 - used;
        if (!read_memory(self, from + used, out + used, bytes)) {
            break;
        }
        const char *end = memchr(out + used, '\0', bytes);
        used += end != NULL ? (size_t)(end - (out + used)) + 1 : bytes;
    }
    out[used] = '\0';
}

/* The name of a std::type_info, which stands behind the pointer to its virtual functions. One that
 * begins with '*' is compared by its address. */
static void read_type(finder *self, uint64_t type, char *out, size_t out_bytes) {
    uint64_t name = read_word(self, type + 8);
    char first = '\0';
    (void)read_memory(self, name, &first, 1);
    read_text(self, name + (first == '*' ? 1 : 0), out, out_bytes);
}

/* Types whose message is where a pointer in the object says. */
static const struct {
    const char *name;
    uint64_t offset;
} messages[] = {{"St13runtime_error", 8},
                {"St11logic_error", 8},
                {"PKc", 0},
                {"NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE", 0}};

enum { type_max = 32, depth_max = 8 };

/* Takes the message that an object was made with, by its type or one of its bases (2.9.5 of the
 * Itanium C++ ABI, "RTTI Layout"). False where there is none. */
static bool find_message(finder *self, uint64_t type, uint64_t object, unsigned depth) {
    char name[64];
    struct {
        uint32_t flags, count;
        uint64_t first;
    } bases = {.count = 0};
    if (self->types_left == 0) {
        return false;
    }
    self->types_left--;
    read_type(self, type, name, sizeof name);
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        if (strcmp(name, messages[i].name) == 0) {
            read_text(self, read_word(self, object + messages[i].offset),
                      self->page->exception_message, sizeof self->page->exception_message);
            return true;
        }
    }
    /* The type of the type_info: what is before its virtual functions. */
    read_type(self, read_word(self, read_word(self, type) - 8), name, sizeof name);
    if (depth == depth_max) {
        return false;
    }
    if (strcmp(name, "N10__cxxabiv120__si_class_type_infoE") == 0) {
        return find_message(self, read_word(self, type + 16), object, depth + 1);
    }
    if (strcmp(name, "N10__cxxabiv121__vmi_class_type_infoE") == 0) {
        (void)read_memory(self, type + 16, &bases, 8);
    }
    for (uint32_t i = 0; i < bases.count && self->types_left > 0; i++) {
        uint64_t base = read_word(self, type + 24 + (uint64_t)i * 16);
        uint64_t place = read_word(self, type + 32 + (uint64_t)i * 16);
        bool is_virtual = (place & 1) != 0;
        if (!is_virtual && find_message(self, base, object + (place >> 8), depth + 1)) {
            return true;
        }
    }
    return false;
}

/* In memory that was freed there is none, or what the allocator wrote there. */
static bool is_count(uint64_t references) {
    return references > 0 && references < 65536;
}

/* True if an exception that is not over is before this header. */
static bool take_exception(finder *self, uint64_t header) {
    thrown it;
    uint64_t object = header + (sizeof it - offsetof(thrown, class));
    if (!self->source->copy(self->source->context, &it, header - offsetof(thrown, class),
                            sizeof it) ||
        it.handler_count == 0) {
        return false;
    }
    bool is_whole = it.class == (class_llvm | 1);
    if (is_whole) { /* of rethrow_exception, as the next one */
        object = it.primary;
    } else if (it.class == (class_gnu | 1)) {
        object = it.type;
        is_whole = read_memory(self, object - sizeof it, &it, sizeof it) &&
                   is_count((uint32_t)it.references);
    } else if (it.class == class_gnu) {
        is_whole = is_count((uint32_t)it.references);
    } else if (it.class == class_llvm) {
        is_whole = is_count(it.primary);
    }
    if (!is_whole) {
        return false;
    }
    read_type(self, it.type, self->page->exception_type, sizeof self->page->exception_type);
    if (self->page->exception_type[0] == '\0') {
        return false;
    }
    (void)find_message(self, it.type, object, 0);
    return true;
}

/* Marks the words of the stack that are pointers to allocated memory: one pass over the mappings.
 */
static void find_pointers(const bp_crash_page *page, const uint64_t *words, size_t count,
                          bool *are_pointers) {
    bp_proc_scan scan = {page->maps, page->maps + page->maps_bytes};
    bp_proc_map map;
    while (bp_proc_take_map(&scan, &map)) {
        bool is_stack = page->stack_start >= map.start && page->stack_start < map.end;
        bool is_heap =
            map.is_readable && map.is_writable && !map.is_shared && map.inode == 0 && !is_stack;
        for (size_t i = 0; is_heap && i < count; i++) {
            are_pointers[i] = are_pointers[i] || (words[i] % 16 == 0 && words[i] < map.end &&
                                                  words[i] > map.start + sizeof(thrown) &&
                                                  map.end - words[i] > sizeof(thrown));
        }
    }
}

void bp_crash_collect_exception(bp_crash_page *page, const bp_crash_source *source) {
    static uint64_t words[word_count]; /* one thread is here at a time */
    static bool are_pointers[word_count];
    finder self = {.page = page, .source = source, .types_left = type_max};
    size_t count = (size_t)page->stack_bytes / sizeof words[0];
    count = count < word_count ? count : word_count;
    if (page->is_exception_told != 0) {
        return;
    }
    page->exception_type[0] = page->exception_message[0] = '\0';
    bool has_other_reason = page->abort_message[0] != '\0'; /* std::terminate gives glibc none */
    if (page->signal != SIGABRT || page->sender_pid != page->pid || has_other_reason) {
        return;
    }
    memcpy(words, page->stack, count * sizeof words[0]);
    memset(are_pointers, 0, sizeof are_pointers);
    find_pointers(page, words, count, are_pointers);
    for (size_t i = 0; i < count; i++) {
        if (are_pointers[i] && take_exception(&self, words[i])) {
            return;
        }
    }
}
