/* Finds an exception in memory that is made up, and is damaged in every way. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "platform/linux/crash_collect.h"

enum { heap = 0x10000, text = 0x20000, mapping_bytes = 0x1000, header = heap + 0x100 };
enum { of_gnu, of_llvm };

static unsigned char memory[2][mapping_bytes];
static bp_crash_page page;
static unsigned read_count;

static bool copy(void *context, void *to, uint64_t from, size_t byte_count) {
    (void)context;
    const unsigned char *bytes = from >= text ? memory[1] : memory[0];
    uint64_t at = from - (from >= text ? text : heap);
    read_count++;
    cr_assert(at <= mapping_bytes && byte_count <= mapping_bytes - at, "what is mapped");
    memcpy(to, bytes + at, byte_count);
    return true;
}

static void put(uint64_t address, uint64_t value) {
    memcpy(address >= text ? memory[1] + (address - text) : memory[0] + (address - heap), &value,
           sizeof value);
}

static void put_text(uint64_t address, const char *value) {
    memcpy(memory[1] + (address - text), value, strlen(value) + 1);
}

/* A std::type_info, and that of its own type. */
static void put_type(uint64_t address, const char *name, const char *kind) {
    put(address, address + 0x80);
    put(address + 8, address + 0x100);
    put_text(address + 0x100, name);
    put(address + 0x80 - 8, address + 0x140);
    put(address + 0x148, address + 0x160);
    put_text(address + 0x160, kind);
}

static void make(int runtime) {
    static const char maps[] = "10000-11000 rw-p 00000000 00:00 0 \n"
                               "20000-21000 r--p 00000000 08:01 7 /usr/bin/viewer\n"
                               "7f000000-7f001000 rw-p 00000000 00:00 0 [stack]\n";
    static const uint64_t classes[] = {0x474e5543432b2b00, 0x434c4e47432b2b00};
    memset(memory, 0, sizeof memory);
    memset(&page, 0, sizeof page);
    page.signal = SIGABRT;
    page.pid = page.sender_pid = 7;
    memcpy(page.maps, maps, sizeof maps - 1);
    page.maps_bytes = sizeof maps - 1;
    page.stack_start = 0x7f000000;
    page.stack_bytes = 0x100;
    memcpy(page.stack + 0x40, &(uint64_t){header}, 8);
    put(header - 96, runtime == of_gnu);
    put(header - 88, runtime == of_llvm);
    put(header - 80, text);
    put(header - 40, 1);
    put(header, classes[runtime]);
    put(header + 40, text + 0xf00);
    put_text(text + 0xf00, "in two");
    put_type(text, "4torn", "N10__cxxabiv120__si_class_type_infoE");
    put(text + 16, text + 0x400);
    put_type(text + 0x400, "St13runtime_error", "N10__cxxabiv117__class_type_infoE");
}

static void collect(void) {
    const bp_crash_source source = {.maps_fd = -1, .copy = copy};
    read_count = 0;
    bp_crash_collect_exception(&page, &source);
}

Test(crash_exception, is_found_with_the_message_of_its_base) {
    for (int runtime = of_gnu; runtime <= of_llvm; runtime++) {
        make(runtime);
        collect();
        cr_expect(eq(str, page.exception_type, "4torn"));
        cr_expect(eq(str, page.exception_message, "in two"));
    }
}

Test(crash_exception, is_none_where_it_was_freed_or_is_over_or_the_abort_has_another_reason) {
    for (int i = 0; i < 7; i++) {
        make(of_gnu);
        switch (i) {
        case 0:
            put(header - 96, 0x5591f);
            break; /* what an allocator writes */
        case 1:
            put(header - 96, 0);
            break;
        case 2:
            put(header - 40, 0);
            break;
        case 3:
            put(header, 0x4d4f5a0052555354);
            break; /* of Rust */
        case 4:
            page.signal = SIGSEGV;
            break;
        case 5:
            page.sender_pid = 8;
            break;
        default:
            (void)snprintf(page.abort_message, sizeof page.abort_message, "free()");
            break;
        }
        collect();
        cr_expect(eq(str, page.exception_type, ""), "%d", i);
    }
    page.is_exception_told = 1;
    (void)snprintf(page.exception_type, sizeof page.exception_type, "told");
    collect();
    cr_expect(eq(str, page.exception_type, "told"));
}

Test(crash_exception, ends_with_types_that_are_bases_of_each_other) {
    make(of_gnu);
    put_type(text, "4torn", "N10__cxxabiv121__vmi_class_type_infoE");
    put(text + 16, UINT64_C(0xffffffff) << 32);
    for (uint64_t i = 0; i < 3; i++) {
        put(text + 24 + i * 16, text);
        put(text + 32 + i * 16, 0);
    }
    collect();
    cr_expect(eq(str, page.exception_type, "4torn"));
    cr_expect(eq(str, page.exception_message, ""));
    cr_expect(lt(u32, read_count, 4000));
}

Test(crash_exception, survives_any_word_that_points_elsewhere) {
    static const uint64_t wrong[] = {0,
                                     8,
                                     heap,
                                     heap + mapping_bytes - 1,
                                     text + mapping_bytes - 4,
                                     UINT64_MAX,
                                     UINT64_MAX - 7,
                                     header};
    for (uint64_t at = 0; at < 0x600; at += 8) {
        for (size_t i = 0; i < 2 * sizeof wrong / sizeof wrong[0]; i++) {
            make(of_gnu);
            put((i % 2 == 0 ? text : header - 128) + at, wrong[i / 2]);
            collect();
        }
    }
}
