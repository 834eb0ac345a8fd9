/*
 * disconnect-cause.json as it is printed: its keys, what is left out, and times that make no sense.
 */
#include "unit/model_fixture.h"

TestSuite(model_disconnect, .init = begin_printing, .fini = end_printing);

Test(model_disconnect, leaves_out_what_is_not_known) {
    EXPECT_PRINTED(bp_disconnect_print(&sample_disconnect_bare, &out, &error),
                   "{\n"
                   "  \"channel\": \"m\",\n"
                   "  \"keepalive_fired\": false,\n"
                   "  \"time\": \"2026-11-21T00:36:51.000000Z\",\n"
                   "  \"cooldown_ms\": 0,\n"
                   "  \"suppressed_before\": 0,\n"
                   "  \"channels\": []\n"
                   "}\n");
}

Test(model_disconnect, counts_exactly_and_is_never_idle_for_less_than_nothing) {
    EXPECT_PRINTED(bp_disconnect_print(&sample_disconnect_full, &out, &error),
                   "{\n"
                   "  \"channel\": \"main\\n\xee\xbf\xbf\",\n"
                   "  \"error\": \"reset\\r\\n\\u001b[31m\xee\xbf\xbf by \\\"peer\\\"\",\n"
                   "  \"error_kind\": \"io\xee\xbf\xbe\",\n"
                   "  \"keepalive_fired\": true,\n"
                   "  \"time\": \"2026-11-21T00:36:51.000000Z\",\n"
                   "  \"cooldown_ms\": 18446744073709551615,\n"
                   "  \"suppressed_before\": 18446744073709551615,\n"
                   "  \"others\": [\n"
                   "    {\n"
                   "      \"channel\": \"display\",\n"
                   "      \"error\": \"EOF\",\n"
                   "      \"keepalive_fired\": false,\n"
                   "      \"time\": \"2026-11-21T00:36:52.000000Z\"\n"
                   "    }\n"
                   "  ],\n"
                   "  \"channels\": [\n"
                   "    {\n"
                   "      \"name\": \"main\\n\xee\xbf\xbf\",\n"
                   "      \"sent\": {\n"
                   "        \"messages\": 18446744073709551615,\n"
                   "        \"bytes\": 18446744073709551615,\n"
                   "        \"last\": \"2026-11-21T00:36:49.000000Z\",\n"
                   "        \"idle_ms\": 2000\n"
                   "      },\n"
                   "      \"received\": {\n"
                   "        \"messages\": 0,\n"
                   "        \"bytes\": 0\n"
                   "      }\n"
                   "    },\n"
                   "    {\n"
                   "      \"name\": \"display\",\n"
                   "      \"sent\": {\n"
                   "        \"messages\": 1,\n"
                   "        \"bytes\": 0,\n"
                   "        \"last\": \"2026-11-21T00:36:44.000000Z\",\n"
                   "        \"idle_ms\": 7000\n"
                   "      },\n"
                   "      \"received\": {\n"
                   "        \"messages\": 2,\n"
                   "        \"bytes\": 3,\n"
                   "        \"last\": \"2026-11-21T00:36:51.000000Z\",\n"
                   "        \"idle_ms\": 0\n"
                   "      }\n"
                   "    }\n"
                   "  ]\n"
                   "}\n");
}
