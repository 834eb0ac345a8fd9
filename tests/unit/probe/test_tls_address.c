/*
 * Where thread-local variables lie. The vectors were worked out by hand from the specification;
 * those that say so were taken from executables that GNU ld made.
 */
#include "process/thread_pointers.h"
#include "unit/unit.h"

#define SEGMENT(address, bytes, alignment)                                                         \
    { .p_vaddr = (address), .p_memsz = (bytes), .p_align = (alignment) }

struct vector {
    unsigned arch;
    Elf64_Phdr segment;
    uint64_t value, bytes;
    int64_t offset;
};

static const struct vector vectors[] = {
    /* x86-64: the block ends at the thread pointer, rounded so that its start is aligned. */
    {EM_X86_64, SEGMENT(0x1000, 0x10, 8), 0, 8, -0x10},
    {EM_X86_64, SEGMENT(0x1000, 0x10, 8), 8, 8, -8},
    {EM_X86_64, SEGMENT(0x1000, 0x11, 16), 0, 8, -0x20},
    {EM_X86_64, SEGMENT(0x1000, 0xa48, 64), 0x40, 0x9c0, -0xa40},
    {EM_X86_64, SEGMENT(0x1000, 0xa48, 1), 0x40, 0x9c0, -0xa08},
    {EM_X86_64, SEGMENT(0x1000, 0xa48, 0), 0x40, 0x9c0, -0xa08},
    /* The start of the segment is congruent to its address, which need not be aligned. */
    {EM_X86_64, SEGMENT(0x1008, 0x18, 16), 0, 8, -0x18},
    {EM_X86_64, SEGMENT(0x1008, 0x10, 16), 0, 8, -0x18},
    /* aarch64: it begins behind the 16 bytes of the control block. */
    {EM_AARCH64, SEGMENT(0x1000, 0x10, 8), 0, 8, 0x10},
    {EM_AARCH64, SEGMENT(0x1000, 0x10, 8), 8, 8, 0x18},
    {EM_AARCH64, SEGMENT(0x1000, 0x10, 16), 0, 8, 0x10},
    {EM_AARCH64, SEGMENT(0x1000, 0x40, 64), 0, 8, 0x40},
    {EM_AARCH64, SEGMENT(0x1000, 0xa48, 64), 0x40, 0x9c0, 0x80},
    {EM_AARCH64, SEGMENT(0x1008, 0x40, 64), 0, 8, 0x48},
    {EM_AARCH64, SEGMENT(0x1010, 0x40, 64), 0, 8, 0x10},
    {EM_AARCH64, SEGMENT(0x1000, 0x10, 0), 0, 8, 0x10},
};

Test(tls_address, follows_the_specification_on_both_architectures) {
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        const struct vector *vector = &vectors[i];
        int64_t offset = 0;
        cr_assert(bp_tls_executable_offset(vector->arch, &vector->segment, vector->value,
                                           vector->bytes, &offset),
                  "vector %zu is refused", i);
        cr_assert(eq(i64, offset, vector->offset), "vector %zu", i);
    }
}

Test(tls_address, refuses_symbols_outside_their_segment_and_broken_segments) {
    static const struct vector bad[] = {
        {EM_X86_64, SEGMENT(0, 0x10, 8), 0x10, 8, 0},
        {EM_X86_64, SEGMENT(0, 0x10, 8), 9, 8, 0},
        {EM_X86_64, SEGMENT(0, 0x10, 8), UINT64_MAX, 8, 0},
        {EM_X86_64, SEGMENT(0, 0x10, 8), 0, UINT64_MAX, 0},
        {EM_X86_64, SEGMENT(0, 0x10, 24), 0, 8, 0},
        {EM_AARCH64, SEGMENT(0, UINT64_MAX, 8), 0, 8, 0},
        {EM_AARCH64, SEGMENT(0, 0x10, UINT64_MAX), 0, 8, 0},
        {EM_AARCH64, SEGMENT(0, 0x10, (uint64_t)1 << 63), 0, 8, 0},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t offset = 4711;
        cr_assert(not(bp_tls_executable_offset(bad[i].arch, &bad[i].segment, bad[i].value,
                                               bad[i].bytes, &offset)),
                  "vector %zu is taken", i);
        cr_assert(eq(i64, offset, 4711));
    }
}

Test(tls_address, places_the_thread_pointer_at_the_descriptor_or_behind_it) {
    uint64_t pointer = 4711;
    cr_assert(bp_tls_thread_pointer(EM_X86_64, 0x7f0000001740, 0x900, &pointer));
    cr_assert(eq(u64, pointer, 0x7f0000001740));
    cr_assert(bp_tls_thread_pointer(EM_AARCH64, 0x7f0000001000, 0x740, &pointer));
    cr_assert(eq(u64, pointer, 0x7f0000001740));
    cr_assert(not(bp_tls_thread_pointer(EM_X86_64, 0, 0x900, &pointer)));
    cr_assert(not(bp_tls_thread_pointer(EM_X86_64, UINT64_MAX, 0x900, &pointer)));
    cr_assert(not(bp_tls_thread_pointer(EM_AARCH64, 0x1000, UINT64_MAX, &pointer)));
    cr_assert(eq(u64, pointer, 0x7f0000001740));
}

Test(tls_address, adds_pointer_slot_and_offset) {
    uint64_t address = 0;
    cr_assert(bp_tls_counter_address(EM_X86_64, 0x7f0000001740, -0xa60, true, 824, &address));
    cr_assert(eq(u64, address, 0x7f0000001740 - 0xa60 + 824));
    cr_assert(bp_tls_counter_address(EM_AARCH64, 0x7f0000001740, 0x20, true, 824, &address));
    cr_assert(eq(u64, address, 0x7f0000001740 + 0x20 + 824));
    cr_assert(bp_tls_counter_address(EM_X86_64, 0x7f0000001740, 99, false, -0x40, &address));
    cr_assert(eq(u64, address, 0x7f0000001700));
}

Test(tls_address, refuses_what_no_loader_writes_and_what_no_thread_has) {
    uint64_t address = 4711;
    /* Not relocated yet, and on the wrong side of the thread pointer. */
    cr_assert(not(bp_tls_counter_address(EM_X86_64, 0x1000, 0, true, 8, &address)));
    cr_assert(not(bp_tls_counter_address(EM_X86_64, 0x1000, 16, true, 8, &address)));
    cr_assert(not(bp_tls_counter_address(EM_AARCH64, 0x1000, 0, true, 8, &address)));
    cr_assert(not(bp_tls_counter_address(EM_AARCH64, 0x1000, -16, true, 8, &address)));
    cr_assert(not(bp_tls_counter_address(EM_X86_64, 0x1000, INT64_MIN, true, 8, &address)));
    cr_assert(not(bp_tls_counter_address(EM_X86_64, 0x1000, 0, false, INT64_MAX, &address)));
    cr_assert(not(bp_tls_counter_address(EM_X86_64, 0, -8, true, 8, &address)));
    cr_assert(not(bp_tls_counter_address(EM_X86_64, UINT64_MAX, -8, true, 0, &address)));
    cr_assert(not(bp_tls_counter_address(EM_X86_64, 0x1000, -8, true, 4, &address)));
    cr_assert(not(bp_tls_counter_address(EM_X86_64, 0x10, -0x20, true, 0, &address)));
    cr_assert(eq(u64, address, 4711));
}
