#include <bugpack/version.h>

#include "unit/unit.h"

Test(version, is_what_its_three_numbers_say) {
    char expected[32];
    (void)snprintf(expected, sizeof expected, "%d.%d.%d", BUGPACK_VERSION_MAJOR,
                   BUGPACK_VERSION_MINOR, BUGPACK_VERSION_PATCH);
    cr_assert(eq(str, BUGPACK_VERSION, expected));
    cr_assert(eq(str, bugpack_version(), expected));
}
