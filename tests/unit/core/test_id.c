#include "base/id.h"
#include "unit/unit.h"

Test(id, is_32_lower_case_hexadecimal_digits) {
    for (int round = 0; round < 100; round++) {
        char id[BP_ID_BYTES];
        memset(id, 'x', sizeof id);
        bp_id_new(id);
        cr_assert(eq(sz, strspn(id, "0123456789abcdef"), 32));
        cr_assert(eq(chr, id[32], '\0'));
    }
}

static int compare_ids(const void *one, const void *other) {
    return memcmp(one, other, BP_ID_BYTES);
}

Test(id, never_comes_twice) {
    static char ids[10000][BP_ID_BYTES];
    size_t count = sizeof ids / sizeof ids[0];
    for (size_t i = 0; i < count; i++) {
        bp_id_new(ids[i]);
    }
    qsort(ids, count, BP_ID_BYTES, compare_ids);
    for (size_t i = 1; i < count; i++) {
        cr_assert(ne(int, memcmp(ids[i - 1], ids[i], BP_ID_BYTES), 0), "id %s", ids[i]);
    }
}

Test(id, varies_in_every_digit) {
    for (size_t digit = 0; digit < 32; digit++) {
        unsigned seen = 0;
        for (int round = 0; round < 200; round++) {
            char id[BP_ID_BYTES];
            bp_id_new(id);
            seen |= 1u << strchr("0123456789abcdef", id[digit])[0] % 16;
        }
        cr_assert(gt(int, __builtin_popcount(seen), 4), "digit %zu hardly changes", digit);
    }
}
